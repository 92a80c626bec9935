package container_test

import (
	"strings"
	"testing"
	"time"

	"holdfast/proto"
)

// TestLease: an agent whose beats are answered goes on; once they are not, it
// ends its task and itself, though the connection stands.
func TestLease(t *testing.T) {
	m := newMaster(t)
	agent := m.startAgent("c1", nil)
	c := m.agent()
	const length = 3 * time.Second
	answer := func() {
		select {
		case b := <-c.beats:
			err := c.stream.Send(&proto.ToAgent{Message: &proto.ToAgent_Renewed{Renewed: &proto.Renewed{SentNs: b.SentNs}}})
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(patience):
			t.Fatal("no beat came")
		}
	}
	c.send(assignment(t, func(a *proto.Assign) { a.LeaseMs = length.Milliseconds() }))
	c.prepared()
	c.send(&proto.Start{Command: shell("exec sleep 1000")})
	pid := c.started().Pid
	for begin := time.Now(); time.Since(begin) < length+length/2; {
		answer()
	}
	if !alive(int(pid)) {
		t.Fatal("the task has ended while the lease was renewed")
	}
	if e := c.exited(); e.Signal == 0 {
		t.Errorf("exited: %v", e)
	}
	if err := agent.end(); err == nil || !strings.Contains(err.Error(), "not been heard of") {
		t.Errorf("the agent ended with: %v", err)
	}
	if alive(int(pid)) {
		t.Error("the task is still there")
	}
}
