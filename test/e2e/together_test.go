package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/proto"
	"holdfast/test/testcluster"
)

// racked is the configuration of a cluster of four nodes with 2 GB each in two racks.
func racked(t *testing.T) map[string]string {
	t.Helper()
	racks := filepath.Join(t.TempDir(), "racks")
	must(t, os.WriteFile(racks, []byte("127.0.0.2 /a\n127.0.0.3 /a\n127.0.0.4 /b\n127.0.0.5 /b\n"), 0o600))
	return map[string]string{
		"dfs.replication":                             "1",
		"yarn.nodemanager.resource.memory-mb":         "2048",
		"net.topology.node.switch.mapping.impl":       "org.apache.hadoop.net.TableMapping",
		"net.topology.table.file.name":                racks,
		"yarn.scheduler.capacity.resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
	}
}

// TestLongPackedAndApart: see packedAndApart.
func TestLongPackedAndApart(t *testing.T) {
	daemons.enter(t)
	packedAndApart(t, testcluster.ForTest(t, testcluster.Options{DataNodes: 1, NodeManagers: 4, Conf: racked(t)}))
}

// TestLongPackedAndApartByTheFairScheduler: it knows no locality by default, and keeps to what is
// asked for all the same.
func TestLongPackedAndApartByTheFairScheduler(t *testing.T) {
	daemons.enter(t)
	c := fairScheduler(t)
	maps.Copy(c, racked(t))
	packedAndApart(t, testcluster.ForTest(t, testcluster.Options{DataNodes: 1, NodeManagers: 4, Conf: c}))
}

// packedAndApart: the tasks of a role that is packed are on one node, or else one rack, after a
// loss too, and where they are on several is told; those of roles that must share no node are on
// different ones, after a loss too, and wait if there are none.
func packedAndApart(t *testing.T, c *testcluster.Cluster) {
	w := where{c}
	nodes := func(s *proto.JobStatus, role string) map[string]int {
		m := map[string]int{}
		for _, n := range nodesOf(s, role) {
			m[n]++
		}
		return m
	}
	j := w.sleepers(t, "--worker", "3", "--worker-memory", "512m", "--worker-pack")
	s := j.until(long, "all to run", running)
	if on := nodes(s, "worker"); len(on) != 1 {
		t.Errorf("there is room for all on one node, and they are on %v", on)
	}
	j.killContainer("worker-1")
	j.back(long, "worker-1")
	if on := nodes(j.status(), "worker"); len(on) != 1 {
		t.Errorf("after a loss they are on %v", on)
	}
	j.kill()

	j = w.sleepers(t, "--worker", "5", "--worker-memory", "512m", "--worker-pack")
	s = j.until(long, "all to run", running)
	on := nodes(s, "worker")
	inA, inB := on["127.0.0.2"]+on["127.0.0.3"], on["127.0.0.4"]+on["127.0.0.5"]
	if len(on) != 2 || inA != 0 && inB != 0 {
		t.Errorf("there is room for all in one rack, and they are on %v", on)
	}
	j.until(long, "it to be told", func(s *proto.JobStatus) bool {
		for _, e := range s.Events {
			if strings.Contains(e.Text, "the tasks of worker are on 2 nodes, in one rack, as none had room for all (--worker-pack)") {
				return true
			}
		}
		return false
	})
	j.kill()

	apart := func(s *proto.JobStatus) bool {
		ps, workers := nodes(s, "ps"), nodes(s, "worker")
		for n := range ps {
			if workers[n] > 0 {
				return false
			}
		}
		return len(ps) > 0 && len(workers) > 0
	}
	j = w.sleepers(t, "--framework", "none", "--ps", "2", "--ps-memory", "256m", "--worker", "4", "--worker-memory", "512m", "--worker-anti-affinity", "ps")
	if s = j.until(long, "all to run", running); !apart(s) {
		t.Errorf("servers are on %v, workers on %v", nodes(s, "ps"), nodes(s, "worker"))
	}
	j.killContainer("worker-2")
	j.killContainer("ps-0")
	j.back(long, "worker-2")
	j.back(long, "ps-0")
	if s = j.status(); !apart(s) {
		t.Errorf("after a loss, servers are on %v, workers on %v", nodes(s, "ps"), nodes(s, "worker"))
	}
	j.kill()

	// What others use leaves one node: one role waits.
	full := w.sleepers(t, "--worker", "3", "--worker-memory", "1792m", "--worker-spread", "--avoid-node", "127.0.0.3")
	full.until(long, "all to run", running)
	j = w.sleepers(t, "--framework", "none", "--ps", "1", "--ps-memory", "320m", "--worker", "1", "--worker-memory", "320m", "--worker-anti-affinity", "ps")
	s = j.until(long, "the wait to be told", func(s *proto.JobStatus) bool {
		return strings.Contains(s.Why, "waiting for 1 container for") && strings.Contains(s.Why, "of those that it may be on (not with")
	})
	t.Logf("the job that waits: %s", s.Why)
	full.kill()
	if s = j.until(long, "all to run", running); !apart(s) {
		t.Errorf("when there was room, servers are on %v, workers on %v", nodes(s, "ps"), nodes(s, "worker"))
	}
	j.kill()
	w.refused(t, "--framework none --ps 1 --worker 1 --worker-anti-affinity ps --avoid-node 127.0.0.2,127.0.0.3,127.0.0.4", "share no node", "they need 2, and the job may use 1")
	w.refused(t, "--framework none --ps 1 --worker 1 --worker-anti-affinity reader", "the job has no such role")
	w.refused(t, "--worker 2 --worker-pack --worker-spread", "leave one of them out")
}
