package container_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"holdfast/container"
	"holdfast/internal/jobtls"
	"holdfast/proto"
)

// patience is how long a test waits for anything, on a slow machine too.
const patience = 90 * time.Second

// master is an application master that does what a test says.
type master struct {
	proto.UnimplementedAgentsServer
	t       *testing.T
	address string
	keys    jobtls.Set
	server  *grpc.Server
	agents  chan *connected
	last    *running
}

// connected is the master's end of one agent's stream.
type connected struct {
	t       *testing.T
	hello   *proto.Hello
	stream  proto.Agents_AttendServer
	heard   chan *proto.FromAgent // closed at the stream's end
	drop    chan struct{}
	beats   chan *proto.Beat // the last ones
	commits chan *proto.Committed
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
	m := &master{t: t, address: l.Addr().String(), keys: keys, agents: make(chan *connected, 16)}
	m.server = grpc.NewServer(grpc.Creds(credentials.NewTLS(tlsConfig)))
	proto.RegisterAgentsServer(m.server, m)
	go m.server.Serve(l)
	t.Cleanup(m.server.Stop)
	return m
}

func (m *master) Attend(s proto.Agents_AttendServer) error {
	first, err := s.Recv()
	if err != nil {
		return err
	}
	c := &connected{
		t: m.t, hello: first.GetHello(), stream: s, heard: make(chan *proto.FromAgent, 1000),
		drop: make(chan struct{}), beats: make(chan *proto.Beat, 1000),
		commits: make(chan *proto.Committed, 1000),
	}
	m.agents <- c
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(c.heard)
		for {
			f, err := s.Recv()
			if err != nil {
				return
			}
			if b := f.GetBeat(); b != nil {
				c.beats <- b
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
	case *proto.Routes:
		m.Message = &proto.ToAgent_Routes{Routes: v}
	case *proto.Bye:
		m.Message = &proto.ToAgent_Bye{Bye: v}
	default:
		c.t.Fatalf("cannot send a %T", message)
	}
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
			if tr := m.GetTrouble(); tr != nil {
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
func (c *connected) trouble() *proto.Trouble {
	c.t.Helper()
	return hear(c, (*proto.FromAgent).GetTrouble)
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
		Master: m.address, Container: name, Host: "127.0.0.1", Keys: m.keys.Agent,
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
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	i := bytes.LastIndexByte(b, ')')
	return i > 0 && i+2 < len(b) && b[i+2] != 'Z' && b[i+2] != 'X'
}

// ---------------------------------------------------------------- helpers

// The test binary plays other parts too, as the first argument says.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if part, ok := parts[os.Args[1]]; ok {
			if err := part(os.Args[2:]); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

var parts = map[string]func([]string) error{}

func init() {
	parts["part-agent"] = agentPart
	parts["part-user"] = userPart
}

// agentPart is an agent in a process of its own.
func agentPart(args []string) error {
	var c container.Config
	b, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return err
	}
	c.Log = logrus.NewEntry(logrus.New())
	return container.Run(context.Background(), c)
}

// userPart becomes an ordinary user, for whom /dev/fuse is open, and then an
// agent. It is started as root in a mount namespace of its own.
func userPart(args []string) error {
	uid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	node := filepath.Join(filepath.Dir(args[1]), "fuse")
	for _, step := range []func() error{
		func() error { return syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "") },
		func() error { return syscall.Mknod(node, syscall.S_IFCHR, 10<<8|229) }, // Documentation/admin-guide/devices.txt
		func() error { return os.Chmod(node, 0o666) },
		func() error { return syscall.Mount(node, "/dev/fuse", "", syscall.MS_BIND, "") },
		func() error { return syscall.Setgroups(nil) },
		func() error { return syscall.Setresgid(uid, uid, uid) },
		func() error { return syscall.Setresuid(uid, uid, uid) },
		// A process that changed its user must exec to be looked at by its own.
		func() error {
			return syscall.Exec("/proc/self/exe", []string{os.Args[0], "part-agent", args[1]}, os.Environ())
		},
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// startAgentProcess starts an agent in a process of its own, as a user.
func (m *master) startAgentProcess(name string, uid uint32, change func(*container.Config)) *exec.Cmd {
	m.t.Helper()
	dir, err := os.MkdirTemp("", "agent-")
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { os.RemoveAll(dir) })
	c := container.Config{
		Master: m.address, Container: name, Host: "127.0.0.1", Keys: m.keys.Agent,
		WorkDir: filepath.Join(dir, "container"), LogDir: filepath.Join(dir, "logs"), TmpDir: filepath.Join(dir, "tmp"),
	}
	if change != nil {
		change(&c)
	}
	b, err := json.Marshal(c)
	if err != nil {
		m.t.Fatal(err)
	}
	file := filepath.Join(dir, "config.json")
	if err := os.WriteFile(file, b, 0o644); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Chown(dir, int(uid), int(uid)); err != nil {
		m.t.Fatal(err)
	}
	cmd := exec.Command(testBinary(m.t), "part-agent", file)
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = &testLog{m.t}, &testLog{m.t}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	switch uid {
	case nobody:
		cmd.Args = []string{cmd.Path, "part-user", strconv.Itoa(int(uid)), file}
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS
	case stranger:
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: uid}
	}
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// testBinary is a copy of this binary that every user may run.
func testBinary(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "test-binary-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	path := filepath.Join(dir, "test")
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}
