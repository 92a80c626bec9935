package am_test

import (
	"slices"
	"testing"

	"google.golang.org/grpc/connectivity"

	"holdfast/proto"
)

// connected tells whether an agent has a connection.
func (c *cluster) connected(a *agent) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conns[a.container].GetState() == connectivity.Ready
}

// An agent that says nothing any longer loses its connection; one that comes back
// is told where all tasks are, for it may have missed something.
func TestAgentsThatFallSilentAndComeBack(t *testing.T) {
	j := start(t, nil)
	ps, _ := j.started("ps-0")
	worker, _ := j.started("worker-0")
	j.started("worker-1")

	worker.silent.Store(true)
	j.eventually("the end of a silent agent's connection", func() bool { return !j.connected(worker) })
	if !j.connected(ps) {
		t.Error("one that is not silent has lost its own")
	}
	worker.silent.Store(false)
	worker.mu.Lock()
	clear(worker.routes)
	worker.mu.Unlock()
	j.connect(worker)
	j.eventually("it to be told where all tasks are", func() bool {
		worker.mu.Lock()
		defer worker.mu.Unlock()
		return !slices.ContainsFunc(worker.routes, func(p proto.Place) bool { return p.Host == "" })
	})
	j.stop()
	j.end(proto.JobState_JOB_STATE_KILLED)
}
