package am_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/internal/jobtls"
	"holdfast/internal/mailbox"
	"holdfast/proto"
	"holdfast/runtime"
)

// agent is an agent without a task: it prepares at once, reports that attempts have
// started, and ends them when the test or the master says so.
type agent struct {
	container string
	hosts     func(task string) // called with the task that it is assigned
	stream    proto.AgentService_ConnectClient
	assigned  *proto.Assign
	prewarm   *proto.Prewarm
	started   chan *proto.Start
	tokens    chan []byte
	mu        sync.Mutex
	attempt   int32
	exited    *proto.Exited
	silent    atomic.Bool         // it sends no heartbeats
	stubborn  atomic.Bool         // it does not stop when it is told to
	grace     atomic.Int64        // of the latest Stop, in ms
	routes    []proto.TaskAddress // by the task's index in the job
	cuts      []uint32
}

func (a *agent) send(m *proto.FromAgent) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.stream.Send(m) // fails when the master is gone
}

func (a *agent) exit(code int32) {
	a.send(&proto.FromAgent{Message: &proto.FromAgent_Exited{Exited: a.ended(code)}})
}

// ended records that the attempt is over.
func (a *agent) ended(code int32) *proto.Exited {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.exited = &proto.Exited{Attempt: a.attempt, Code: code, Tail: []string{"last words"}}
	return a.exited
}

func (a *agent) run(stream proto.AgentService_ConnectClient) {
	a.mu.Lock()
	a.stream = stream
	hello := &proto.Hello{Container: a.container, Host: "127.0.0.1", Pid: 7, Attempt: -1}
	if a.assigned != nil { // it has lost its connection to a master
		hello.Task, hello.Port, hello.Attempt, hello.Exited = a.assigned.Task, a.assigned.Port, a.attempt, a.exited
		hello.PeerPort = hello.Port
		if a.exited == nil {
			hello.TaskPid = 8
		}
	}
	a.mu.Unlock()
	a.send(&proto.FromAgent{Message: &proto.FromAgent_Hello{Hello: hello}})
	go func() {
		for stream.Context().Err() == nil {
			if !a.silent.Load() {
				a.send(&proto.FromAgent{Message: &proto.FromAgent_Heartbeat{Heartbeat: &proto.Heartbeat{}}})
			}
			select {
			case <-stream.Context().Done():
			case <-time.After(time.Second):
			}
		}
	}()
	for {
		m, err := stream.Recv()
		if err != nil {
			return
		}
		switch m := m.Message.(type) {
		case *proto.ToAgent_Assign:
			a.mu.Lock()
			a.assigned = m.Assign
			a.routes = make([]proto.TaskAddress, runtime.Count(m.Assign.Spec))
			a.take(m.Assign.Routes)
			a.mu.Unlock()
			a.hosts(m.Assign.Task)
			a.send(&proto.FromAgent{Message: &proto.FromAgent_Prepared{Prepared: &proto.Prepared{Port: m.Assign.Port}}})
		case *proto.ToAgent_ChangePort:
			a.mu.Lock()
			a.assigned.Port = m.ChangePort.Port
			a.mu.Unlock()
			a.send(&proto.FromAgent{Message: &proto.FromAgent_Prepared{Prepared: &proto.Prepared{Port: m.ChangePort.Port, PeerPort: m.ChangePort.Port}}})
		case *proto.ToAgent_Prewarm:
			a.mu.Lock()
			a.prewarm = m.Prewarm
			a.mu.Unlock()
		case *proto.ToAgent_Start:
			a.mu.Lock()
			a.attempt = m.Start.Attempt
			a.mu.Unlock()
			a.send(&proto.FromAgent{Message: &proto.FromAgent_Started{Started: &proto.Started{Attempt: a.attempt, Pid: 8}}})
			a.started <- m.Start
		case *proto.ToAgent_Stop:
			a.grace.Store(m.Stop.GraceMs)
			if a.stubborn.Load() {
				break
			}
			a.send(&proto.FromAgent{Message: &proto.FromAgent_Exited{Exited: &proto.Exited{Attempt: a.attempt, Signal: 15, Stopped: true}}})
		case *proto.ToAgent_Routes:
			a.mu.Lock()
			a.take(m.Routes)
			a.mu.Unlock()
		case *proto.ToAgent_Tokens:
			a.tokens <- m.Tokens.Credentials
		case *proto.ToAgent_Release:
			a.mu.Lock() // nothing may be sent meanwhile
			_ = stream.CloseSend()
			a.mu.Unlock()
			return
		}
	}
}

// take applies routes; a.mu is held.
func (a *agent) take(r *proto.Routes) {
	if r == nil {
		return
	}
	if err := r.Apply(a.routes); err != nil {
		panic(err)
	}
	a.cuts = append(a.cuts, r.Disconnect...)
}

// cluster is a driver whose containers are agents in this process.
type cluster struct {
	t      *testing.T
	keys   jobtls.Set
	master string
	events *mailbox.Mailbox[event.Event]

	superseded chan error

	mu       sync.Mutex
	count    int
	agents   map[string]*agent // by task, or what the container was asked for
	byName   map[string]string // container -> task
	conns    map[string]*grpc.ClientConn
	outcome  *action.Finish
	silent   bool   // no container is allocated
	scarce   string // none is allocated for this task
	withdrew []string
	released []string
	previous map[string]string

	// What does not answer any longer: the checkpoint directories, and the job's.
	checkpointsHang, jobDirHangs atomic.Bool
	endLimit                     time.Duration // for each thing that the master does at the end; 0: its own
}

func (c *cluster) Events() *mailbox.Mailbox[event.Event] { return c.events }

func (c *cluster) Superseded() <-chan error { return c.superseded }

func (c *cluster) Ask(a action.Ask) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.silent || c.scarce != "" && strings.HasPrefix(a.Request, c.scarce+"/") {
		return
	}
	c.count++
	name := fmt.Sprintf("c%d", c.count)
	task, _, _ := strings.Cut(a.Request, "/")
	c.byName[name] = task
	node := "n1"
	if slices.Contains(a.Avoid, node) {
		node = "n2"
	}
	c.events.Put(event.Allocated{Request: a.Request, Container: name, Node: node})
}

func (c *cluster) Withdraw(r string) { c.withdrew = append(c.withdrew, r) }

func (c *cluster) Launch(container string) {
	a := &agent{container: container, started: make(chan *proto.Start, 10), tokens: make(chan []byte, 10)}
	c.mu.Lock()
	wanted := c.byName[container]
	c.agents[wanted] = a
	c.mu.Unlock()
	a.hosts = func(task string) { // another's, if it was a spare
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.agents[wanted] == a {
			delete(c.agents, wanted)
		}
		c.agents[task] = a
	}
	c.connect(a)
}

// connect connects an agent to the present master.
func (c *cluster) connect(a *agent) {
	conn := dial(c.t, c.keys.Agent, c.master)
	stream, err := proto.NewAgentServiceClient(conn).Connect(c.speaking(a.container))
	if err != nil {
		if c.t.Context().Err() == nil { // else the test is over
			c.t.Error(err)
		}
		return
	}
	c.mu.Lock()
	c.conns[a.container] = conn
	c.mu.Unlock()
	go a.run(stream)
}

// speaking returns the context of calls by the agent in a container.
func (c *cluster) speaking(container string) context.Context {
	own, err := c.keys.Master.Admit(c.keys.Agent, container)
	if err != nil {
		c.t.Error(err)
	}
	return metadata.AppendToOutgoingContext(context.Background(), proto.HeaderContainer, container, proto.HeaderPass, string(own.Pass))
}

func (c *cluster) PreviousContainers() map[string]string { return c.previous }

// keepContainers makes the present containers those that outlive a master.
func (c *cluster) keepContainers() {
	c.previous = map[string]string{}
	for _, a := range c.agents {
		c.previous[a.container] = "n1"
	}
}

func (c *cluster) Release(container string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.released = append(c.released, container)
}

func (c *cluster) Check(string) {}

func (c *cluster) Finish(ctx context.Context, o action.Finish) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.outcome = &o
	return nil
}

// lose ends a task's agent and its container.
func (c *cluster) lose(task string) {
	c.mu.Lock()
	a := c.agents[task]
	delete(c.agents, task)
	conn := c.conns[a.container]
	c.mu.Unlock()
	conn.Close()
	c.events.Put(event.ContainerEnded{Container: a.container, Cause: event.CauseOwnFault, Exit: 137})
}

// started waits for the next attempt of a task.
func (c *cluster) started(task string) (*agent, *proto.Start) {
	c.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		c.mu.Lock()
		a := c.agents[task]
		c.mu.Unlock()
		if a != nil {
			select {
			case s := <-a.started:
				return a, s
			case <-time.After(time.Until(deadline)):
			}
			break
		}
		time.Sleep(time.Millisecond)
	}
	c.t.Fatalf("%s did not start", task)
	return nil, nil
}

func dial(t *testing.T, k jobtls.Keys, address string) *grpc.ClientConn {
	t.Helper()
	config, err := k.Dialer()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}
