package delegation_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/delegation"
	"holdfast/internal/hadoop/hdfs"
	"holdfast/internal/hadoop/kerberos"
	"holdfast/internal/hadoop/login"
	"holdfast/internal/hadoop/notice"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/token"
	"holdfast/test/testcluster"
	"holdfast/test/testcluster/kdc"
)

// life is the tokens' maximum lifetime in these tests; half of it is for how
// long they are good without being renewed.
const life = 12 * time.Second

func start(t *testing.T) (*testcluster.Cluster, *conf.Conf) {
	t.Helper()
	c := testcluster.ForTest(t, testcluster.Options{HDFSOnly: true, DataNodes: 1, Security: &testcluster.Security{RPC: "integrity", TokenLife: life}})
	t.Setenv(kerberos.EnvConfig, c.KDC().Config())
	t.Setenv(kerberos.EnvCache, filepath.Join(t.TempDir(), "none"))
	cf, err := conf.Load(c.ConfDir())
	if err != nil {
		t.Fatal(err)
	}
	u, err := kerberos.FromKeytab(kdc.Alice, c.KDC().Keytab(kdc.Alice))
	if err != nil {
		t.Fatal(err)
	}
	login.As(u)
	return c, cf
}

// stat asks the NameNode for something over a new connection.
func stat(t *testing.T, c *conf.Conf, uri string) error {
	t.Helper()
	client, err := hdfs.New(uri, c, hdfs.Options{})
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = client.Stat(t.Context(), "/user/alice")
	return err
}

// TestTokens: tokens are exchanged with Hadoop's own tools in both directions,
// end in time, and are replaced before they do.
func TestTokens(t *testing.T) {
	cluster, c := start(t)
	uris := []string{cluster.HDFS() + "/user/alice/logs", cluster.HDFS() + "/elsewhere", "/a/local/directory"}
	file := filepath.Join(t.TempDir(), "tokens")
	all, err := delegation.HDFS(t.Context(), c, "rm", uris)
	if err != nil {
		t.Fatal(err)
	}
	service := strings.TrimPrefix(cluster.HDFS(), "hdfs://")
	k, ok := all.Find(token.KindHDFS, service)
	if !ok || len(all.Tokens) != 1 {
		t.Fatalf("got %v, want one for %s", all.Tokens, service)
	}
	d, err := k.Delegation()
	if err != nil || d.Owner != "alice@HOLDFAST.TEST" || d.Renewer != "rm" || d.Max.Sub(d.Issued) != life {
		t.Errorf("it says %+v, %v", d, err)
	}
	all.Secrets["a secret"] = []byte("of ours")
	if err := all.WriteFile(file); err != nil {
		t.Fatal(err)
	}

	t.Run("Hadoop reads ours", func(t *testing.T) {
		out, err := cluster.Hadoop(t.Context(), "dtutil", "print", file)
		if err != nil || !strings.Contains(out, service) || !strings.Contains(out, token.KindHDFS) || !strings.Contains(out, " rm ") {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("ours reads Hadoop's", func(t *testing.T) {
		theirs := filepath.Join(t.TempDir(), "tokens")
		tickets, err := cluster.KDC().Tickets(t.Context(), kdc.Bob)
		if err != nil {
			t.Fatal(err)
		}
		cmd := cluster.HadoopCommand(t.Context(), "dtutil", "get", cluster.HDFS(), "-format", "protobuf", "-renewer", "rm", theirs)
		cmd.Env = append(cmd.Env, "KRB5CCNAME="+tickets)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		t.Setenv(token.EnvFile, theirs)
		if name, err := login.Name(c); err != nil || name != "bob" {
			t.Errorf("the user is %q, %v", name, err)
		}
		got, err := delegation.HDFS(t.Context(), c, "rm", uris)
		if err != nil {
			t.Fatal(err)
		}
		if k, ok := got.Find(token.KindHDFS, service); !ok {
			t.Errorf("the token that is there is not taken: %v", got.Tokens)
		} else if d, err := k.Delegation(); err != nil || d.Owner != "bob@HOLDFAST.TEST" {
			t.Errorf("it says %+v, %v", d, err)
		}
	})

	t.Run("an end", func(t *testing.T) {
		t.Setenv(token.EnvFile, file)
		var err error
		for deadline := time.Now().Add(time.Minute); err == nil && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
			err = stat(t, c, uris[0])
		}
		if !rpc.IsInvalidToken(err) || rpc.Refusal(err) == nil {
			t.Errorf("with a token that was not renewed: %v", err)
		}
	})

	t.Run("and new ones", func(t *testing.T) {
		t.Setenv(token.EnvFile, file)
		keytab, err := os.ReadFile(cluster.KDC().Keytab(kdc.Alice))
		if err != nil {
			t.Fatal(err)
		}
		sets := make(chan *token.Credentials, 100)
		refresher := &delegation.Refresher{
			Conf: c, Principal: "alice", Keytab: keytab, Source: "the test", URIs: uris, Log: notice.None,
			Use: func(c *token.Credentials) {
				if err := token.Replace(c.Marshal()); err != nil {
					t.Error(err)
				}
				sets <- c
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { refresher.Run(ctx) })
		defer wg.Wait()
		defer cancel()
		<-sets
		for until := time.Now().Add(life + 2*time.Second); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
			if err := stat(t, c, uris[0]); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(sets); n < 2 || n > 8 {
			t.Errorf("%d more sets of tokens in more than %s", n, life)
		}
		all, err := token.ReadFile(file)
		if err != nil || len(all.Tokens) != 1 || string(all.Secrets["a secret"]) != "of ours" {
			t.Errorf("the file has %v, %v", all, err)
		}
	})
}

// warnings is a log that keeps the warnings.
type warnings chan string

func (w warnings) Debugf(string, ...any)            {}
func (w warnings) Infof(string, ...any)             {}
func (w warnings) Warnf(format string, args ...any) { w <- fmt.Sprintf(format, args...) }

// TestARefusedKeytab: a keytab that the KDC refuses is not tried again every second, which would
// lock the account, and the log says when it is.
func TestARefusedKeytab(t *testing.T) {
	c := testcluster.ForTest(t, testcluster.Options{KDCOnly: true})
	k := c.KDC()
	t.Setenv(kerberos.EnvConfig, k.Config())
	if err := k.Admin(t.Context(), "addprinc -randkey +requires_preauth carol", "ktadd -k "+k.Keytab("carol")+" carol", "cpw -randkey carol"); err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(k.Keytab("carol"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	said := make(chan string, 1000)
	r := &delegation.Refresher{
		Conf: conf.New(nil), Principal: "carol", Keytab: old, Source: "a keytab",
		Use: func(*token.Credentials) { t.Error("there are tokens") },
		Log: warnings(said),
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Run(ctx)
	}()
	select {
	case text := <-said:
		if !strings.Contains(text, "the key is wrong") || !strings.Contains(text, "trying again in 4m") && !strings.Contains(text, "trying again in 5m") {
			t.Errorf("it logs %q", text)
		}
	case <-time.After(time.Minute):
		t.Error("nothing is logged")
	}
	cancel()
	<-ended
}
