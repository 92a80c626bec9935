package am_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"
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

// An agent may speak only for its own container, whatever keys it shares with others.
func TestAnAgentSpeaksForItsOwnContainerOnly(t *testing.T) {
	j := start(t, nil)
	ps, _ := j.started("ps-0")
	worker, _ := j.started("worker-0")
	shared := metadata.AppendToOutgoingContext(context.Background(), proto.HeaderContainer, ps.container)
	for name, ctx := range map[string]context.Context{
		"with the pass of its own container": j.speaking(worker.container),
		"with a pass for another container":  metadata.AppendToOutgoingContext(shared, proto.HeaderPass, string(pass(t, j, worker.container))),
		"with two passes": metadata.AppendToOutgoingContext(shared, proto.HeaderPass, string(pass(t, j, worker.container)),
			proto.HeaderPass, string(pass(t, j, ps.container))),
		"with the keys that all agents hold": shared,
		"without saying who it is":           context.Background(),
	} {
		stream, err := proto.NewAgentServiceClient(dial(t, j.keys.Agent, j.master)).Connect(ctx)
		if err == nil {
			_ = stream.Send(&proto.FromAgent{Message: &proto.FromAgent_Hello{Hello: &proto.Hello{Container: ps.container, Attempt: -1}}})
			_, err = stream.Recv()
		}
		if status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s, an agent claims to be another: %v", name, err)
		}
	}
	if !j.connected(ps) {
		t.Error("the agent that another claimed to be has lost its connection")
	}
	j.stop()
	j.end(proto.JobState_JOB_STATE_KILLED)
}

func pass(t *testing.T, j *job, container string) []byte {
	t.Helper()
	own, err := j.keys.Master.Admit(j.keys.Agent, container)
	if err != nil {
		t.Fatal(err)
	}
	return own.Pass
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

// A connection on which nothing is sent is closed, as is one that never completes the TLS
// handshake: neither needs a key.
func TestAConnectionThatSaysNothingIsClosed(t *testing.T) {
	t.Parallel() // it waits for a limit
	j := start(t, nil)
	var conns []net.Conn
	for _, said := range []string{"", "\x16\x03\x01\x02\x00"} { // a handshake record of TLS of 512 bytes
		conn, err := net.Dial("tcp", j.master)
		if err == nil {
			_, err = conn.Write([]byte(said))
		}
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns = append(conns, conn)
	}
	for i, conn := range conns {
		err := conn.SetReadDeadline(time.Now().Add(time.Minute))
		if err == nil {
			_, err = io.Copy(io.Discard, conn)
		}
		if err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("connection %d: %v", i, err)
		}
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
