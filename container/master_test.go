package container_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"holdfast/container"
	"holdfast/internal/jobtls"
	"holdfast/internal/proc"
	"holdfast/proto"
)

// patience is how long a test waits for anything, on a slow machine too.
const patience = 90 * time.Second

// master is an application master that does what a test says.
type master struct {
	proto.UnimplementedAgentServiceServer
	t       *testing.T
	address string
	attempt int32  // of the application
	jobDir  string // of the job; every user's
	keys    jobtls.Set
	server  *grpc.Server
	agents  chan *connected
	deaf    atomic.Bool // to the beats of agents that come
	last    *running
}

// connected is the master's end of one agent's stream.
type connected struct {
	t       *testing.T
	hello   *proto.Hello
	stream  proto.AgentService_ConnectServer
	heard   chan *proto.FromAgent // closed at the stream's end
	drop    chan struct{}
	beats   chan *proto.Heartbeat // the last ones
	commits chan *proto.Committed
	deaf    atomic.Bool // beats are not answered
	orderly bool        // the agent has closed the stream; once heard is closed
	sending sync.Mutex
}

func newMaster(t *testing.T) *master {
	t.Helper()
	keys, err := jobtls.New("test")
	if err != nil {
		t.Fatal(err)
	}
	tlsConfig, err := keys.Master.Server()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &master{t: t, attempt: 1, address: l.Addr().String(), keys: keys, agents: make(chan *connected, 16)}
	if m.jobDir, err = os.MkdirTemp("", "job-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(m.jobDir) })
	if err := os.Chmod(m.jobDir, 0o777); err != nil {
		t.Fatal(err)
	}
	m.server = grpc.NewServer(grpc.Creds(credentials.NewTLS(tlsConfig)))
	proto.RegisterAgentServiceServer(m.server, m)
	go m.server.Serve(l)
	t.Cleanup(m.server.Stop)
	return m
}

// successor is another master of the same job.
func (m *master) successor() *master {
	m.t.Helper()
	tlsConfig, err := m.keys.Master.Server()
	if err != nil {
		m.t.Fatal(err)
	}
	return m.announced(credentials.NewTLS(tlsConfig))
}

// announced is a master, true or false, to which the job's directory leads.
func (m *master) announced(creds credentials.TransportCredentials) *master {
	m.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		m.t.Fatal(err)
	}
	next := &master{t: m.t, attempt: 2, address: l.Addr().String(), jobDir: m.jobDir, keys: m.keys, agents: make(chan *connected, 16)}
	next.server = grpc.NewServer(grpc.Creds(creds))
	proto.RegisterAgentServiceServer(next.server, next)
	go next.server.Serve(l)
	m.t.Cleanup(next.server.Stop)
	m.leadTo(next.address)
	return next
}

// leadTo makes the job's directory name an address.
func (m *master) leadTo(address string) {
	m.t.Helper()
	m.tell(proto.Address{Address: address, Attempt: 2})
}

// tell makes the job's directory say where the job's master is.
func (m *master) tell(a proto.Address) {
	m.t.Helper()
	text, err := a.Marshal()
	if err == nil {
		err = os.WriteFile(filepath.Join(m.jobDir, proto.AddressFile), text, 0o644)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *master) Connect(s proto.AgentService_ConnectServer) error {
	first, err := s.Recv()
	if err != nil {
		return err
	}
	c := &connected{
		t: m.t, hello: first.GetHello(), stream: s, heard: make(chan *proto.FromAgent, 1000),
		drop: make(chan struct{}), beats: make(chan *proto.Heartbeat, 1000),
		commits: make(chan *proto.Committed, 1000),
	}
	c.deaf.Store(m.deaf.Load())
	m.agents <- c
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(c.heard)
		for {
			f, err := s.Recv()
			if err != nil {
				c.orderly = errors.Is(err, io.EOF)
				return
			}
			if b := f.GetHeartbeat(); b != nil {
				c.beats <- b
				if !c.deaf.Load() {
					c.sending.Lock()
					_ = s.Send(&proto.ToAgent{Message: &proto.ToAgent_HeartbeatReply{HeartbeatReply: &proto.HeartbeatReply{Sequence: b.Sequence, AmAttempt: m.attempt}}})
					c.sending.Unlock()
				}
				continue
			}
			if m := f.GetCommitted(); m != nil {
				c.commits <- m
				continue
			}
			c.heard <- f
		}
	}()
	select {
	case <-ended:
		return nil
	case <-c.drop:
		return io.ErrUnexpectedEOF
	}
}

func (m *master) agent() *connected {
	m.t.Helper()
	select {
	case c := <-m.agents:
		return c
	case <-time.After(patience):
		m.t.Fatal("no agent came")
		return nil
	}
}

func (c *connected) send(message any) {
	c.t.Helper()
	var m proto.ToAgent
	switch v := message.(type) {
	case *proto.Assign:
		m.Message = &proto.ToAgent_Assign{Assign: v}
	case *proto.Start:
		m.Message = &proto.ToAgent_Start{Start: v}
	case *proto.Stop:
		m.Message = &proto.ToAgent_Stop{Stop: v}
	case *proto.ChangePort:
		m.Message = &proto.ToAgent_ChangePort{ChangePort: v}
	case *proto.Routes:
		m.Message = &proto.ToAgent_Routes{Routes: v}
	case *proto.Prewarm:
		m.Message = &proto.ToAgent_Prewarm{Prewarm: v}
	case *proto.Release:
		m.Message = &proto.ToAgent_Release{Release: v}
	case *proto.EndLingering:
		m.Message = &proto.ToAgent_EndLingering{EndLingering: v}
	case *proto.Exec:
		m.Message = &proto.ToAgent_Exec{Exec: v}
	case *proto.ExecTaken:
		m.Message = &proto.ToAgent_ExecTaken{ExecTaken: v}
	default:
		c.t.Fatalf("cannot send a %T", message)
	}
	c.sending.Lock()
	defer c.sending.Unlock()
	if err := c.stream.Send(&m); err != nil {
		c.t.Fatalf("sending to the agent: %v", err)
	}
}

// hear waits for the next message for which pick gives something, and throws
// others away.
func hear[T any](c *connected, pick func(*proto.FromAgent) *T) *T {
	c.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case m, ok := <-c.heard:
			if !ok {
				c.t.Fatalf("the agent's stream ended while a %T was waited for", new(T))
			}
			if v := pick(m); v != nil {
				return v
			}
			if tr := m.GetAgentFailure(); tr != nil {
				c.t.Fatalf("while a %T was waited for, the agent had trouble: %v", new(T), tr)
			}
		case <-timeout:
			c.t.Fatalf("the agent did not say a %T", new(T))
		}
	}
}

func (c *connected) prepared() *proto.Prepared {
	c.t.Helper()
	return hear(c, (*proto.FromAgent).GetPrepared)
}
func (c *connected) started() *proto.Started {
	c.t.Helper()
	return hear(c, (*proto.FromAgent).GetStarted)
}
func (c *connected) exited() *proto.Exited {
	c.t.Helper()
	return hear(c, (*proto.FromAgent).GetExited)
}
func (c *connected) trouble() *proto.AgentFailure {
	c.t.Helper()
	return hear(c, (*proto.FromAgent).GetAgentFailure)
}

// running is an agent in this process.
type running struct {
	t      *testing.T
	dir    string
	config container.Config
	ended  chan error
	cancel context.CancelFunc
}

// startAgent runs an agent; change may alter its configuration first.
func (m *master) startAgent(name string, change func(*container.Config)) *running {
	m.t.Helper()
	r := &running{t: m.t, dir: m.t.TempDir(), ended: make(chan error, 1)}
	log := logrus.New()
	log.SetOutput(&testLog{t: m.t})
	log.SetLevel(logrus.DebugLevel)
	r.config = container.Config{
		Master: m.address, JobDirectory: m.jobDir, Container: name, Host: "127.0.0.1", Keys: m.keys.Agent,
		WorkDir: filepath.Join(r.dir, "container"), LogDir: filepath.Join(r.dir, "logs"), TmpDir: filepath.Join(r.dir, "tmp"),
		Log: logrus.NewEntry(log),
	}
	if change != nil {
		change(&r.config)
	}
	m.last = r
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() { r.ended <- container.Run(ctx, r.config) }()
	m.t.Cleanup(func() {
		cancel()
		select {
		case <-r.ended:
		case <-time.After(patience):
			m.t.Error("the agent did not end")
		}
	})
	return r
}

// end waits for the agent's end.
func (r *running) end() error {
	r.t.Helper()
	select {
	case err := <-r.ended:
		r.ended <- err
		return err
	case <-time.After(patience):
		r.t.Fatal("the agent did not end")
		return nil
	}
}

// testLog gives the agent's log to the test that runs.
type testLog struct{ t *testing.T }

func (l *testLog) Write(b []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

// eventually polls until ok, or fails with what.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("in vain waited for: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func alive(pid int) bool {
	s, err := proc.ReadStat(pid)
	return err == nil && !s.Ended()
}
