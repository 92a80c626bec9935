package e2e

import (
	"encoding/json"
	"testing"

	"holdfast/proto"
	"holdfast/test/testcluster"
)

// TestLongSchedulers: parameter servers and ranks are lost, and go on from their
// checkpoints, under each of YARN's schedulers, and in a queue that may not use one of two
// partitions.
func TestLongSchedulers(t *testing.T) {
	training.enter(t)
	python := tensorflow(t)
	partitions := testcluster.Partitions(exclusiveLabel)
	partitions["yarn.scheduler.capacity.queue-mappings"] = "u:root:small"
	partitions["yarn.scheduler.capacity.root.small.maximum-capacity"] = "100"
	partitions["yarn.scheduler.capacity.root.small.user-limit-factor"] = "10"
	for name, conf := range map[string]map[string]string{
		"capacity": nil, "capacity with partitions": partitions,
		"fair": fairScheduler(t),
		"fifo": {"yarn.resourcemanager.scheduler.class": "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler"},
	} {
		t.Run(name, func(t *testing.T) {
			o := testcluster.Options{DataNodes: 1, Conf: conf}
			if name == "capacity with partitions" {
				o.NodeManagers = 2
			}
			w := where{testcluster.ForTest(t, o)}
			if name == "capacity with partitions" {
				must(t, w.cluster.Label(t.Context(), []string{exclusiveLabel}, map[string]string{"nm1": exclusiveLabel}))
				defer w.allJobsOn(t, plainNode)
			}
			t.Run("parameter servers", func(t *testing.T) {
				p := programs[2]
				p.workers = 2
				p.train(t, w, python, w.cluster.HDFS()+"/tests/ps", (*job).killContainer)
			})
			t.Run("ranks", func(t *testing.T) {
				trainInWorkingDirectory(t, w, w.cluster.HDFS()+"/tests/ranks")
			})
		})
	}
}

// allJobsOn fails the test unless there were jobs, and all tasks of all of them on a node.
func (w where) allJobsOn(t *testing.T, node string) {
	t.Helper()
	stdout, stderr, code := w.call(t.Context(), "", "list", "--all", "--output", "json")
	var list struct{ Jobs []struct{ ID string } }
	if code != 0 || json.Unmarshal([]byte(stdout), &list) != nil || len(list.Jobs) == 0 {
		t.Fatalf("list ended with %d: %s%s", code, stdout, stderr)
	}
	for _, j := range list.Jobs {
		stdout, stderr, code := w.call(t.Context(), "", "status", j.ID, "--output", "json")
		s := &proto.JobStatus{}
		if err := proto.FromJSON([]byte(stdout), s); err != nil || len(s.Tasks) == 0 {
			t.Fatalf("status ended with %d: %v: %s%s", code, err, stdout, stderr)
		}
		for _, k := range s.Tasks {
			if k.Node != node && k.Node != "" { // it may have had no container when the job ended
				t.Errorf("%s of %s was on %s, whose partition its queue may not use", k.Task, j.ID, k.Node)
			}
		}
	}
}
