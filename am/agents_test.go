package am_test

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"holdfast/proto"
)

// connected reports whether an agent has a connection.
func (c *cluster) connected(a *agent) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conns[a.container].GetState() == connectivity.Ready
}

// An agent that sends no heartbeats loses its connection. One that connects again is told
// all addresses, since it may have missed a message.
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
		return !slices.ContainsFunc(worker.routes, func(p proto.TaskAddress) bool { return p.Host == "" })
	})
	j.stop()
	j.end(proto.JobState_JOB_STATE_KILLED)
}

// An agent that says Hello for another container is refused, and the other stays connected.
func TestAnAgentThatClaimsToBeAnother(t *testing.T) {
	j := start(t, nil)
	ps, _ := j.started("ps-0")
	worker, _ := j.started("worker-0")
	stream, err := proto.NewAgentServiceClient(dial(t, j.keys.Agent, j.master)).Connect(j.speaking(worker.container))
	if err == nil {
		_ = stream.Send(&proto.FromAgent{Message: &proto.FromAgent_Hello{Hello: &proto.Hello{Container: ps.container, Attempt: -1}}})
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.PermissionDenied {
		t.Errorf("an agent claims to be another: %v", err)
	}
	if !j.connected(ps) {
		t.Error("the agent that another claimed to be has lost its connection")
	}
	j.stop()
	j.end(proto.JobState_JOB_STATE_KILLED)
}

// An agent that opens a stream and sends no Hello loses its connection.
func TestAnAgentThatSaysNothingIsLetGo(t *testing.T) {
	j := start(t, nil)
	ps, _ := j.started("ps-0")
	stream, err := proto.NewAgentServiceClient(dial(t, j.keys.Agent, j.master)).Connect(j.speaking("container-77"))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := stream.Recv()
		ended <- err
	}()
	select {
	case err := <-ended:
		if status.Code(err) != codes.Unavailable {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("it is waited for")
	}
	if !j.connected(ps) {
		t.Error("another has lost its connection")
	}
	j.stop()
	j.end(proto.JobState_JOB_STATE_KILLED)
}

// New tokens reach the connected agents, and agents that connect later get the latest.
func TestNewTokens(t *testing.T) {
	j := start(t, nil)
	ps, _ := j.started("ps-0")
	worker, _ := j.started("worker-0")
	expect := func(a *agent, want string) {
		t.Helper()
		select {
		case got := <-a.tokens:
			if string(got) != want {
				t.Errorf("%s got %q, want %q", a.container, got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s got no tokens", a.container)
		}
	}
	for _, tokens := range []string{"first", "second"} {
		j.app.NewTokens([]byte(tokens))
		expect(ps, tokens)
		expect(worker, tokens)
	}
	j.lose("ps-0")
	again, _ := j.started("ps-0")
	expect(again, "second")
	j.stop()
	j.end(proto.JobState_JOB_STATE_KILLED)
}
