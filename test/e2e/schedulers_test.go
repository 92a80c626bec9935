package e2e

import (
	"testing"

	"holdfast/test/testcluster"
)

// TestLongSchedulers: parameter servers and ranks are lost, and go on from their
// checkpoints, under each of YARN's schedulers.
func TestLongSchedulers(t *testing.T) {
	training.enter(t)
	python := tensorflow(t)
	for name, conf := range map[string]map[string]string{
		"capacity": nil,
		"fair":     fairScheduler(t),
		"fifo":     {"yarn.resourcemanager.scheduler.class": "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler"},
	} {
		t.Run(name, func(t *testing.T) {
			w := where{testcluster.ForTest(t, testcluster.Options{DataNodes: 1, Conf: conf})}
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
