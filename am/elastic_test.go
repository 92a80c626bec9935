package am_test

import (
	"testing"

	"holdfast/proto"
	"holdfast/runtime"
)

// TestRanksAreMetElsewhereWithoutWhoIsLeftBehind: before they start, the others listen on other
// ports, and are told so of each other, and the agent that is left behind is not.
func TestRanksAreMetElsewhereWithoutWhoIsLeftBehind(t *testing.T) {
	j := startAttempt(t, 1, func(spec *proto.JobSpec, c *cluster) {
		spec.Framework = "pytorch"
		spec.Roles = []*proto.RoleSpec{{Name: "worker", Count: 3, Min: 2, MemoryMb: 64, Vcores: 1}}
	})
	lost, _ := j.started("worker-0")
	first, _ := j.started("worker-1")
	second, _ := j.started("worker-2")
	lost.mu.Lock()
	before := lost.routes[1]
	lost.mu.Unlock()

	j.mu.Lock()
	j.silent = true // nothing is free
	conn := j.conns[lost.container]
	j.mu.Unlock()
	conn.Close()
	first.exit(1)
	_, s := j.started("worker-1")
	j.started("worker-2")
	if s.Generation != 1 || len(s.Absent) != 1 || s.Absent[0] != 0 {
		t.Errorf("it is told %v", s)
	}
	port := runtime.PeerPort("job_1", 1) + 3
	for _, a := range []*agent{first, second} {
		a.mu.Lock()
		if now := a.routes[1]; now.Port != port || now.RealPort != port || now.Host == "" {
			t.Errorf("worker-1 is said to be at %v; want port %d", now, port)
		}
		a.mu.Unlock()
	}
	lost.mu.Lock()
	defer lost.mu.Unlock()
	if now := lost.routes[1]; now != before {
		t.Errorf("who is left behind was told that worker-1 is at %v", now)
	}
	if _, err := j.client.Kill(t.Context(), &proto.KillRequest{}); err != nil {
		t.Fatal(err)
	}
	j.end(proto.JobState_JOB_STATE_KILLED)
}
