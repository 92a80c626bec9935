package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/test/testcluster"
)

// protection is how a cluster protects its traffic.
type protection struct {
	rpc, data string
	encrypt   bool // with 3DES or RC4
}

func (p protection) String() string {
	if p.encrypt {
		return p.rpc + "/" + p.data + "/encrypted"
	}
	return p.rpc + "/" + p.data
}

var levels = []string{"authentication", "integrity", "privacy"}

// TestLongProtections trains at all protections of RPC and data transfer, a
// parameter server lost on the way.
func TestLongProtections(t *testing.T) {
	daemons.enter(t)
	var all []protection
	for _, rpc := range levels {
		for _, data := range levels {
			all = append(all, protection{rpc, data, false}, protection{rpc, data, true})
		}
	}
	atProtections(t, all, func(t *testing.T, c *testcluster.Cluster, p protection) {
		begun := time.Now()
		where{c}.trainThroughLoss(t, c.HDFS()+"/user/alice/"+strings.ReplaceAll(p.String(), "/", "-"), (*job).killContainer)
		t.Logf("the job took %s", time.Since(begun).Round(100*time.Millisecond))
		if p == all[0] {
			t.Run("on the wire", func(t *testing.T) { onTheWire(t, c, false) })
			t.Run("another protection of data", func(t *testing.T) { otherProtection(t, c, p.data) })
		}
	})
}

// TestLongTensorFlowAtProtections is the same for each program of TensorFlow's, at
// the protections of which RPC and data transfer have the same.
func TestLongTensorFlowAtProtections(t *testing.T) {
	training.enter(t)
	var all []protection
	for _, level := range levels {
		all = append(all, protection{level, level, level == "privacy"})
	}
	atProtections(t, all, func(t *testing.T, c *testcluster.Cluster, p protection) {
		for _, program := range programs {
			t.Run(program.name, func(t *testing.T) {
				program.train(t, where{c}, tensorflow(t), c.HDFS()+"/user/alice/"+program.name+"-"+p.rpc, (*job).killContainer)
			})
		}
	})
}

// atProtections does something on a cluster with Kerberos at one protection after
// another.
func atProtections(t *testing.T, all []protection, do func(*testing.T, *testcluster.Cluster, protection)) {
	c := secure(t, testcluster.Security{RPC: all[0].rpc, Data: all[0].data, Encrypt: all[0].encrypt}, testcluster.Options{})
	for i, p := range all {
		t.Run(p.String(), func(t *testing.T) {
			if i > 0 {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				begun := time.Now()
				if err := c.Reconfigure(ctx, map[string]string{
					"hadoop.rpc.protection":        p.rpc,
					"dfs.data.transfer.protection": p.data,
					"dfs.encrypt.data.transfer":    fmt.Sprint(p.encrypt),
				}); err != nil {
					t.Fatal(err)
				}
				t.Logf("the daemons were back after %s", time.Since(begun).Round(100*time.Millisecond))
			}
			do(t, c, p)
		})
	}
}

// otherProtection has a client ask for a protection of data that the cluster
// does not offer.
func otherProtection(t *testing.T, c *testcluster.Cluster, offered string) {
	property := "<name>dfs.data.transfer.protection</name><value>%s<"
	env := append(where{c}.env(), "HADOOP_CONF_DIR="+changedConf(t, c, fmt.Sprintf(property, offered), fmt.Sprintf(property, "privacy")))
	begun := time.Now()
	_, stderr, code := call(t.Context(), env, "", "run", "--worker", "1", "--worker-memory", "256m", "--", "true")
	t.Logf("after %s: %s", time.Since(begun).Round(100*time.Millisecond), stderr)
	if code != 4 || !strings.Contains(stderr, "dfs.data.transfer.protection") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit code %d:\n%s", code, stderr)
	}
}
