package am_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"holdfast/am"
	"holdfast/am/core"
	"holdfast/am/recovery"
	"holdfast/am/server"
	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/jobtls"
	"holdfast/internal/mailbox"
	"holdfast/proto"
	"holdfast/runtime"
)

// agent is a container's agent that runs nothing: it prepares at once, says
// that attempts have started, and ends them when the test or the master says so.
type agent struct {
	container string
	hosts     func(task string) // called when it is told its task
	stream    proto.AgentService_ConnectClient
	assigned  *proto.Assign
	rehearse  *proto.Prewarm
	started   chan *proto.Start
	tokens    chan []byte
	mu        sync.Mutex
	attempt   int32
	exited    *proto.Exited
	silent    atomic.Bool   // it says no beats
	stubborn  atomic.Bool   // it does not end when it is told to stop
	grace     atomic.Int64  // that it was given to stop, in ms
	routes    []proto.Place // by the task's place in the job
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

// ended notes that the attempt is over.
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
	if a.assigned != nil { // it has lost a master
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
			a.routes = make([]proto.Place, runtime.Count(m.Assign.Spec))
			a.take(m.Assign.Routes)
			a.mu.Unlock()
			a.hosts(m.Assign.Task)
			a.send(&proto.FromAgent{Message: &proto.FromAgent_Prepared{Prepared: &proto.Prepared{Port: m.Assign.Port}}})
		case *proto.ToAgent_Prewarm:
			a.mu.Lock()
			a.rehearse = m.Prewarm
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
			_ = stream.CloseSend()
			return
		}
	}
}

// take takes in where tasks are; a.mu is held.
func (a *agent) take(r *proto.Routes) {
	if r == nil {
		return
	}
	if err := r.Take(a.routes); err != nil {
		panic(err)
	}
	a.cuts = append(a.cuts, r.Disconnect...)
}

// cluster is a driver whose containers are agents in this process.
type cluster struct {
	t      *testing.T
	keys   jobtls.Set
	master string
	events *mailbox.Mailbox[core.Event]

	superseded chan error

	mu       sync.Mutex
	count    int
	agents   map[string]*agent // by task, or what the container was asked for
	byName   map[string]string // container -> task
	conns    map[string]*grpc.ClientConn
	outcome  *core.Finish
	silent   bool   // asks are not answered
	scarce   string // nor those for this task
	withdrew []string
	released []string
	kept     map[string]string
}

func (c *cluster) Events() *mailbox.Mailbox[core.Event] { return c.events }

func (c *cluster) Superseded() <-chan error { return c.superseded }

func (c *cluster) Ask(a core.Ask) {
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
	c.events.Put(core.Allocated{Request: a.Request, Container: name, Node: node})
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

// speaking is for the calls of the agent in a container.
func (c *cluster) speaking(container string) context.Context {
	own, err := c.keys.Master.Admit(c.keys.Agent, container)
	if err != nil {
		c.t.Error(err)
	}
	return metadata.AppendToOutgoingContext(context.Background(), proto.HeaderContainer, container, proto.HeaderPass, string(own.Pass))
}

func (c *cluster) PreviousContainers() map[string]string { return c.kept }

// keep makes the containers of now those that outlive a master.
func (c *cluster) keep() {
	c.kept = map[string]string{}
	for _, a := range c.agents {
		c.kept[a.container] = "n1"
	}
}

func (c *cluster) Release(container string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.released = append(c.released, container)
}

func (c *cluster) Check(string) {}

func (c *cluster) Finish(_ context.Context, o core.Finish) error {
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
	c.events.Put(core.ContainerEnded{Container: a.container, Cause: core.CauseOwnFault, Exit: 137})
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

// job is a master that runs on a cluster.
type job struct {
	*cluster
	spec   *proto.JobSpec
	logged logtest.Hook // by the masters
	store  store.Store
	client proto.JobServiceClient
	dir    string
	final  chan *proto.JobStatus
	ended  chan struct{}
	stop   context.CancelFunc
	app    *am.Master
}

func start(t *testing.T, change func(*proto.JobSpec, *cluster)) *job {
	t.Helper()
	return startAttempt(t, 0, change)
}

// startAttempt runs a master that another may take over from, unless attempt is 0.
func startAttempt(t *testing.T, attempt int, change func(*proto.JobSpec, *cluster)) *job {
	t.Helper()
	spec := &proto.JobSpec{
		Name: "test", Framework: "none", User: "alice", Restarts: 2,
		Roles:   []*proto.RoleSpec{{Name: "ps", Count: 1, MemoryMb: 64, Vcores: 1}, {Name: "worker", Count: 2, MemoryMb: 64, Vcores: 1}},
		Command: []string{"train", "--ps={ps_hosts}", "--me={role}-{index}"},
	}
	keys, err := jobtls.New("test")
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, keys: keys, events: mailbox.New[core.Event](), superseded: make(chan error, 1), agents: map[string]*agent{}, byName: map[string]string{}, conns: map[string]*grpc.ClientConn{}}
	j := &job{cluster: c, spec: spec, dir: t.TempDir()}
	checkpoints := filepath.Join(j.dir, "checkpoints")
	spec.Checkpoints = []*proto.CheckpointSpec{{Path: "./train_logs", Uri: checkpoints}}
	if change != nil {
		change(spec, c)
	}
	if err := runtime.Complete(spec); err != nil {
		t.Fatal(err)
	}
	if j.store, err = store.Open(t.Context(), j.dir, nil); err != nil {
		t.Fatal(err)
	}
	j.run(attempt, nil)
	return j
}

func (j *job) config(attempt int) am.Config {
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	quiet.AddHook(&j.logged)
	return am.Config{
		ID: "job_1", Spec: j.spec, Dir: j.store, Keys: j.keys.Master, Log: logrus.NewEntry(quiet),
		Attempt:   attempt,
		OpenStore: func(ctx context.Context, uri string) (store.Store, error) { return store.Open(ctx, uri, nil) },
		Limits:    core.Limits{Lease: 4 * time.Second, Stop: 100 * time.Millisecond, Leave: time.Second, Save: time.Hour, QuorumWait: 100 * time.Millisecond},
	}
}

// run runs a master in the background.
func (j *job) run(attempt int, before *recovery.Predecessor) {
	j.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	j.stop, j.final, j.ended = stop, make(chan *proto.JobStatus, 1), make(chan struct{})
	cfg := j.config(attempt)
	cfg.Predecessor = before
	var err error
	if cfg.Listener, err = server.Listen("127.0.0.1"); err != nil {
		j.t.Fatal(err)
	}
	if err := recovery.Announce(ctx, j.store, attempt, cfg.Listener.Address()); err != nil {
		j.t.Fatal(err)
	}
	m, err := am.New(cfg)
	if err != nil {
		j.t.Fatal(err)
	}
	j.master, j.app = cfg.Listener.Address(), m
	j.client = proto.NewJobServiceClient(dial(j.t, j.keys.Client, j.master))
	final, ended := j.final, j.ended
	go func() {
		defer close(ended)
		s, err := m.Run(ctx, j.cluster)
		if err != nil && !errors.Is(err, am.ErrLeft) {
			j.t.Errorf("Run: %v", err)
		}
		final <- s
	}()
	j.t.Cleanup(func() {
		stop()
		<-ended
	})
}

// succeed ends the master as the loss of its host would, and starts the next.
func (j *job) succeed(attempt int) {
	j.t.Helper()
	j.stop()
	<-j.ended
	j.keep()
	before, err := recovery.FindPredecessor(j.t.Context(), j.config(attempt).Recovery())
	if err != nil {
		j.t.Fatal(err)
	}
	j.run(attempt, before)
}

func (j *job) end(want proto.JobState) *proto.JobStatus {
	j.t.Helper()
	select {
	case s := <-j.final:
		if s.State != want {
			j.t.Fatalf("the job ended as %s (%s), want %s", s.State, s.Why, want)
		}
		return s
	case <-time.After(time.Minute):
		j.t.Fatal("the job does not end")
		return nil
	}
}

// eventually waits until ok.
func (j *job) eventually(what string, ok func() bool) {
	j.t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			j.t.Fatalf("in vain waited for %s", what)
		}
	}
}

// story waits until the job tells this of a task; notes count only if one is wanted.
func (j *job) story(task string, want ...string) {
	j.t.Helper()
	var kinds []string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		status, err := j.client.Status(context.Background(), &proto.StatusRequest{})
		if err != nil {
			j.t.Fatal(err)
		}
		kinds = nil
		for _, m := range status.Events {
			if m.Task == task && (m.Kind != core.KindNote || slices.Contains(want, core.KindNote)) {
				kinds = append(kinds, m.Kind)
			}
		}
		if slices.Equal(kinds, want) {
			return
		}
	}
	j.t.Fatalf("the story of %s is %v, want %v", task, kinds, want)
}

func TestAJobRunsToItsEnd(t *testing.T) {
	j := start(t, nil)
	ps, s := j.started("ps-0")
	if want := []string{"train", "--ps={ps_hosts}", "--me={role}-{index}"}; !slices.Equal(s.Command, want) {
		t.Errorf("command %q, want %q", s.Command, want)
	}
	if ps.assigned.Spec.Framework != "none" || ps.assigned.Job != "job_1" || ps.assigned.HeartbeatIntervalMs != 1000 {
		t.Errorf("start %v of %v", s, ps.assigned)
	}
	for i := range 3 {
		port := runtime.PeerPort("job_1", i)
		if want := (proto.Place{Port: port, Host: "127.0.0.1", RealPort: port}); ps.routes[i] != want {
			t.Errorf("task %d is said to be at %v, want %v", i, ps.routes[i], want)
		}
	}
	for i := range 2 {
		a, _ := j.started(fmt.Sprintf("worker-%d", i))
		a.exit(0)
	}
	s2 := j.end(proto.JobState_JOB_STATE_SUCCEEDED)
	if j.outcome == nil || j.outcome.State != proto.JobState_JOB_STATE_SUCCEEDED {
		t.Errorf("the driver was told %+v", j.outcome)
	}
	text, err := os.ReadFile(filepath.Join(j.dir, proto.StatusFile))
	if err != nil {
		t.Fatal(err)
	}
	saved := &proto.JobStatus{}
	if err := protojson.Unmarshal(text, saved); err != nil {
		t.Fatal(err)
	}
	if saved.State != s2.State || saved.EndedUnixMs == 0 || len(saved.Tasks) != 3 {
		t.Errorf("%s says %v", proto.StatusFile, saved)
	}
}

// A task that has no container is named to the others with its address all the same.
func TestAJobThatStartsWithFewerKnowsAllAddresses(t *testing.T) {
	j := start(t, func(spec *proto.JobSpec, c *cluster) {
		spec.Framework = "tensorflow"
		spec.Roles[1].Count, spec.Roles[1].Min = 3, 2
		c.scarce = "worker-1"
	})
	a, _ := j.started("worker-2")
	a.mu.Lock()
	defer a.mu.Unlock()
	ports, tasks := map[string]int{}, runtime.Tasks(j.spec)
	for i, place := range a.routes {
		ports[tasks[i].Name] = place.Port
		if absent := tasks[i].Name == "worker-1"; absent != (place.Host == "") {
			t.Errorf("%s is on %q", tasks[i].Name, place.Host)
		}
	}
	argv, env, err := runtime.Command(j.spec, runtime.Attempt{Task: tasks[3], Ports: ports})
	if err != nil {
		t.Fatal(err)
	}
	if absent := fmt.Sprintf("worker-1:%d", runtime.PeerPort("job_1", 2)); !strings.Contains(env["TF_CONFIG"], absent) || strings.Count(env["TF_CONFIG"], "worker-") != 3 {
		t.Errorf("%v, %s", argv, env["TF_CONFIG"])
	}
}

func TestALostContainerIsReplacedAtTheSameAddress(t *testing.T) {
	j := start(t, nil)
	old, _ := j.started("ps-0")
	worker, _ := j.started("worker-0")
	j.started("worker-1")
	j.story("ps-0", core.KindStarted)
	j.lose("ps-0")
	again, s := j.started("ps-0")
	if again.container == old.container || s.Attempt != 1 {
		t.Errorf("attempt %d in %s", s.Attempt, again.container)
	}
	if again.assigned.Port != int32(runtime.PeerPort("job_1", 0)) || again.assigned.Index != old.assigned.Index {
		t.Errorf("it came back as number %d at port %d", again.assigned.Index, again.assigned.Port)
	}
	j.eventually("the worker to be told to cut its connections", func() bool {
		worker.mu.Lock()
		defer worker.mu.Unlock()
		return slices.Contains(worker.cuts, 0)
	})
	if !slices.Equal(again.routes[1:], worker.routes[1:]) || again.routes[1].Host == "" {
		t.Errorf("what came back is told that tasks are at %v, and a worker knows of %v", again.routes, worker.routes)
	}
	j.story("ps-0", core.KindStarted, core.KindLost, core.KindBack)
	j.stop()
	j.end(proto.JobState_JOB_STATE_KILLED)
}

func TestAFailedTaskSaysWhy(t *testing.T) {
	j := start(t, func(s *proto.JobSpec, _ *cluster) { s.Restarts = 1 })
	for range 2 {
		a, _ := j.started("worker-1")
		a.exit(3)
	}
	s := j.end(proto.JobState_JOB_STATE_FAILED)
	if !strings.Contains(s.Why, "worker-1") || !strings.Contains(s.Why, "exit code 3") {
		t.Errorf("why: %s", s.Why)
	}
	for _, task := range s.Tasks {
		if task.Task == "worker-1" && !slices.Equal(task.Tail, []string{"last words"}) {
			t.Errorf("tail: %q", task.Tail)
		}
	}
}

func TestKillAndWatch(t *testing.T) {
	j := start(t, func(_ *proto.JobSpec, c *cluster) { c.silent = true })
	ctx := context.Background()
	watch, err := j.client.Watch(ctx, &proto.StatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	j.events.Put(core.Waiting{Why: "the queue is full"})
	var last *proto.JobStatus
	killed := false
	for {
		s, err := watch.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		last = s
		if s.Why == "the queue is full" && !killed {
			killed = true
			if _, err := j.client.Kill(ctx, &proto.KillRequest{Why: "enough"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !killed || last.State != proto.JobState_JOB_STATE_KILLED || last.Why != "enough" {
		t.Errorf("watched to the end: %v", last)
	}
	j.end(proto.JobState_JOB_STATE_KILLED)
	if len(j.withdrew) != 3 {
		t.Errorf("withdrew %v", j.withdrew)
	}
}

func TestPartiesMayCallOnlyTheirOwn(t *testing.T) {
	j := start(t, func(_ *proto.JobSpec, c *cluster) { c.silent = true })
	stranger, err := jobtls.New("other")
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for _, c := range []struct {
		name string
		keys jobtls.Keys
		want codes.Code
	}{
		{"an agent asks to kill", j.keys.Agent, codes.PermissionDenied},
		{"a stranger asks to kill", stranger.Client, codes.Unavailable},
	} {
		_, err := proto.NewJobServiceClient(dial(t, c.keys, j.master)).Kill(ctx, &proto.KillRequest{})
		if status.Code(err) != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	stream, err := proto.NewAgentServiceClient(dial(t, j.keys.Client, j.master)).Connect(ctx)
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.PermissionDenied {
		t.Errorf("a client attends as an agent: %v", err)
	}
	if _, err := j.client.Kill(ctx, &proto.KillRequest{Why: "enough\nof it"}); err != nil {
		t.Fatal(err)
	}
	j.end(proto.JobState_JOB_STATE_KILLED)
	// Each of these calls, but that of the stranger, who came to none, has its line.
	var audit []string
	for _, e := range j.logged.AllEntries() {
		if e.Data["audit"] == nil {
			continue
		}
		if who, _ := e.Data["who"].(string); strings.Contains(who, " at 127.0.0.1:") {
			audit = append(audit, fmt.Sprint(e.Data["audit"], " ", strings.Fields(who)[0], " ", e.Data["allowed"], " ", e.Data["why"]))
		}
	}
	if want := []string{"Kill agent false ", "Connect client false <nil>", "Kill client true enough\nof it"}; !slices.Equal(audit, want) {
		t.Errorf("audited are %q, want %q", audit, want)
	}
}

// committed is what an agent says of a file of two bytes.
func committed(t *testing.T, store, name string, crc uint32) *proto.CommittedFile {
	t.Helper()
	st, err := os.Stat(filepath.Join(store, name))
	if err != nil {
		t.Fatal(err)
	}
	return &proto.CommittedFile{
		Name: name, Size: 2, Crc32C: crc, HasCrc32C: true, Inode: st.Sys().(*syscall.Stat_t).Ino, ModifiedUnixNs: st.ModTime().UnixNano(),
	}
}

// TestCheckpointsAreSealed: what agents report as written becomes a sealed
// checkpoint, with the checksums that they computed.
func TestCheckpointsAreSealed(t *testing.T) {
	j := start(t, nil)
	storeURI := filepath.Join(j.dir, "checkpoints")
	w0, _ := j.started("worker-0")
	w1, _ := j.started("worker-1")
	ps, _ := j.started("ps-0")
	var said []*proto.CommittedFile
	for name, crc := range map[string]uint32{"step-7/ps-0.json": 11, "step-7/COMMITTED": 22} {
		if err := os.MkdirAll(filepath.Join(storeURI, "step-7"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(storeURI, name), []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
		said = append(said, committed(t, storeURI, name, crc))
	}
	ps.send(&proto.FromAgent{Message: &proto.FromAgent_Committed{Committed: &proto.Committed{Path: "./train_logs", Files: said}}})
	s, err := store.NewLocal(storeURI)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	sealed := func() *hdfsckpt.Checkpoint {
		list, err := hdfsckpt.Checkpoints(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			if c.State == format.Sealed {
				return &c
			}
		}
		return nil
	}
	for end := time.Now().Add(time.Minute); sealed() == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the checkpoint is not sealed")
		}
	}
	m := sealed().Manifest
	if m.Job != "job_1" || m.Step != 7 {
		t.Errorf("manifest: %+v", m)
	}
	for _, f := range m.Files {
		if want := map[string]uint32{"step-7/ps-0.json": 11, "step-7/COMMITTED": 22}[f.Name]; f.CRC32C != want {
			t.Errorf("%s has the checksum %d, want the agent's, %d", f.Name, f.CRC32C, want)
		}
	}
	w0.exit(0)
	w1.exit(0)
	j.end(proto.JobState_JOB_STATE_SUCCEEDED)
}

// TestSealingByQuiet: what is complete by quiet is sealed once it has been
// quiet, without a further sign; the store keeps the rule.
func TestSealingByQuiet(t *testing.T) {
	j := start(t, func(s *proto.JobSpec, _ *cluster) {
		s.Checkpoints[0].Format, s.Checkpoints[0].QuietSeconds = "plain", 0.2
	})
	storeURI := filepath.Join(j.dir, "checkpoints")
	w0, _ := j.started("worker-0")
	w1, _ := j.started("worker-1")
	j.started("ps-0")
	name := filepath.Join(storeURI, "state-7.npz")
	if err := os.WriteFile(name, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	w0.send(&proto.FromAgent{Message: &proto.FromAgent_Committed{Committed: &proto.Committed{Path: "./train_logs", Files: []*proto.CommittedFile{committed(t, storeURI, "state-7.npz", 33)}}}})
	s, err := store.NewLocal(storeURI)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		list, err := hdfsckpt.Checkpoints(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 1 && list[0].State == format.Sealed {
			if m := list[0].Manifest; m.Step != 7 || m.Files[0].CRC32C != 33 {
				t.Errorf("manifest: %+v", m)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the checkpoint is not sealed: %+v", list)
		}
	}
	w0.exit(0)
	w1.exit(0)
	j.end(proto.JobState_JOB_STATE_SUCCEEDED)
}

// TestTheStoreIsMadeSafeBeforeARestart: a task never starts from a store whose
// file `checkpoint` names what is not whole.
func TestTheStoreIsMadeSafeBeforeARestart(t *testing.T) {
	t.Run("by the first master", func(t *testing.T) { madeSafe(t, false) })
	t.Run("by the next master", func(t *testing.T) { madeSafe(t, true) })
}

func madeSafe(t *testing.T, takenOver bool) {
	attempt := 0
	if takenOver {
		attempt = 1
	}
	j := startAttempt(t, attempt, func(s *proto.JobSpec, _ *cluster) { s.Restarts = 5 })
	store := filepath.Join(j.dir, "checkpoints")
	files, err := filepath.Glob("../hdfsckpt/tfbundle/testdata/sharded.ckpt-1200.*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no checkpoint to try with: %v", err)
	}
	w0, _ := j.started("worker-0")
	w1, _ := j.started("worker-1")
	a, _ := j.started("ps-0")
	if takenOver {
		j.succeed(2)
		for _, a := range []*agent{a, w0, w1} {
			j.connect(a)
		}
		j.eventually("all agents at the next master", func() bool {
			s, err := j.client.Status(context.Background(), &proto.StatusRequest{})
			return err == nil && !slices.ContainsFunc(s.Tasks, func(t *proto.TaskStatus) bool { return t.AgentPid == 0 })
		})
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []string{"1200", "1300"} {
			if step == "1300" && strings.HasSuffix(f, "data-00002-of-00004") {
				continue // torn
			}
			name := strings.ReplaceAll(filepath.Base(f), "1200", step)
			if err := os.WriteFile(filepath.Join(store, name), b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	state := filepath.Join(store, "checkpoint")
	for i, text := range []string{`model_checkpoint_path: "sharded.ckpt-1300"`, "", "rubbish"} {
		os.Remove(state)
		if text != "" {
			if err := os.WriteFile(state, []byte(text+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		ended := a.ended(9)
		ended.Error = []string{"an error", "another", "a third"}[i] // the same each time would end the job
		a.send(&proto.FromAgent{Message: &proto.FromAgent_Exited{Exited: ended}})
		a, _ = j.started("ps-0")
		got, err := os.ReadFile(state)
		if err != nil || !strings.Contains(string(got), `"sharded.ckpt-1200"`) {
			t.Errorf("started with %q in place of %q (%v)", got, text, err)
		}
	}
	status, err := j.client.Status(context.Background(), &proto.StatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(status.Events, func(m *proto.JobEvent) bool {
		return m.Kind == core.KindNote && strings.Contains(m.Text, "sharded.ckpt-1200")
	}) {
		t.Errorf("the story does not tell it: %v", status.Events)
	}
	if !takenOver { // else it would be left to a third one
		j.stop()
		j.end(proto.JobState_JOB_STATE_KILLED)
	}
}
