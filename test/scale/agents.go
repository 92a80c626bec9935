package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"holdfast/proto"
)

// runAgents keeps the agents that the parent names until it goes.
func runAgents(ctx context.Context, dir string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	keys, err := readKeys(dir, "agent")
	if err != nil {
		return err
	}
	master, err := readKeys(dir, "master")
	if err != nil {
		return err
	}
	config, err := keys.Dialer()
	if err != nil {
		return err
	}
	ends := map[string]context.CancelFunc{}
	var all sync.WaitGroup
	defer all.Wait()
	address := ""
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		switch verb, object := fields(lines.Text()); verb {
		case "address":
			address = object
		case "launch":
			living, end := context.WithCancel(ctx)
			ends[object] = end
			all.Go(func() {
				a := &agent{container: object, attempt: -1}
				own, err := master.Admit(keys, object)
				if err == nil {
					err = a.live(metadata.AppendToOutgoingContext(living, proto.HeaderContainer, object, proto.HeaderPass, string(own.Pass)), address, config)
				}
				if err != nil {
					fmt.Fprintf(os.Stderr, "agent %s: %v\n", object, err)
				}
			})
		case "end":
			ends[object]()
		}
	}
	cancel()
	return lines.Err()
}

// agent is one whose task does nothing.
type agent struct {
	container string
	task      string
	port      int32
	peerPort  int32
	attempt   int32
	every     time.Duration // between two beats; 0: not told yet
}

// live keeps an agent connected until ctx ends or the master sends it home.
func (a *agent) live(ctx context.Context, address string, config *tls.Config) error {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(config)),
		grpc.WithStaticStreamWindowSize(1<<20), grpc.WithStaticConnWindowSize(1<<20), // as agents have them
		grpc.WithReadBufferSize(0), grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: time.Minute}))
	if err != nil {
		return err
	}
	defer conn.Close()
	for {
		over, err := a.serve(ctx, conn)
		if over || ctx.Err() != nil {
			return nil
		}
		fmt.Fprintf(os.Stderr, "agent %s: %v%s", a.container, err, comesAgain)
	}
}

// serve serves one stream; over: the master has released the agent.
func (a *agent) serve(ctx context.Context, conn *grpc.ClientConn) (over bool, err error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	stream, err := proto.NewAgentServiceClient(conn).Connect(ctx, grpc.WaitForReady(true))
	if err != nil {
		return false, err
	}
	var mu sync.Mutex
	say := func(m *proto.FromAgent) {
		mu.Lock()
		defer mu.Unlock()
		_ = stream.Send(m) // that it is broken is told by Recv
	}
	hello := &proto.Hello{Container: a.container, Host: "127.0.0.1", Pid: 1, Task: a.task, Port: a.port, PeerPort: a.peerPort, Attempt: a.attempt}
	if a.attempt >= 0 {
		hello.TaskPid = 2
	}
	say(&proto.FromAgent{Message: &proto.FromAgent_Hello{Hello: hello}})
	var beats sync.WaitGroup
	defer beats.Wait()
	defer end()
	if a.every > 0 {
		beats.Go(func() { beat(ctx, a.every, say) })
	}
	for {
		m, err := stream.Recv()
		if err != nil {
			return false, err
		}
		switch m := m.Message.(type) {
		case *proto.ToAgent_Assign:
			a.task, a.port = m.Assign.Task, cmp.Or(m.Assign.Port, 20000+m.Assign.Index%10000)
			a.peerPort = a.port
			if a.every == 0 {
				a.every = time.Duration(m.Assign.HeartbeatIntervalMs) * time.Millisecond
				beats.Go(func() { beat(ctx, a.every, say) })
			}
			say(&proto.FromAgent{Message: &proto.FromAgent_Prepared{Prepared: &proto.Prepared{Port: a.port, PeerPort: a.peerPort}}})
		case *proto.ToAgent_ChangePort:
			a.port, a.peerPort = m.ChangePort.Port, m.ChangePort.Port
			say(&proto.FromAgent{Message: &proto.FromAgent_Prepared{Prepared: &proto.Prepared{Port: a.port, PeerPort: a.peerPort}}})
		case *proto.ToAgent_Start:
			a.attempt = m.Start.Attempt
			say(&proto.FromAgent{Message: &proto.FromAgent_Started{Started: &proto.Started{Attempt: m.Start.Attempt, Pid: 2}}})
		case *proto.ToAgent_Release:
			return true, stream.CloseSend()
		}
	}
}

// beat says in intervals that the agent lives, and that its task has made a step.
func beat(ctx context.Context, every time.Duration, say func(*proto.FromAgent)) {
	next := time.NewTimer(rand.N(every))
	defer next.Stop()
	for n := int64(1); ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
			next.Reset(every)
		}
		say(&proto.FromAgent{Message: &proto.FromAgent_Heartbeat{Heartbeat: &proto.Heartbeat{
			Sequence: n, RssBytes: 500e6 + rand.Int64N(1e6), AgentRssBytes: 20e6, Step: n,
		}}})
	}
}
