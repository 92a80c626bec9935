package yarn_test

import (
	"context"
	"encoding/gob"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/token"
	hadoop "holdfast/internal/hadoop/yarn"
	"holdfast/proto"
	"holdfast/test/testcluster"
)

func TestMain(m *testing.M) {
	if os.Getenv(envControl) != "" {
		if err := runMaster(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if hadoopCluster != nil {
		if err := hadoopCluster.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(code)
}

// hadoopCluster is the Hadoop of all tests of this package, once one needed it.
var hadoopCluster *testcluster.Cluster

var startCluster = sync.OnceValue(func() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute) // the first one downloads Hadoop
	defer cancel()
	conf := testcluster.KeptState()
	maps.Copy(conf, map[string]string{
		// Without this, the NodeManager leaves a container that uses too much
		// memory to cgroups (ContainersMonitorImpl.checkLimit), which need the
		// LinuxContainerExecutor.
		"yarn.nodemanager.resource.memory.enforced":      "false",
		"yarn.nodemanager.container-monitor.interval-ms": "500",
		// Another service speaks to masters then (OpportunisticContainerAllocatorAMService).
		"yarn.resourcemanager.opportunistic-container-allocation.enabled": "true",
		"yarn.nodemanager.opportunistic-containers-max-queue-length":      "10",
	})
	hadoopCluster, err = testcluster.Start(ctx, testcluster.Options{DataNodes: 1, Conf: conf})
	return err
})

// cluster returns the running Hadoop.
func cluster(t *testing.T) *testcluster.Cluster {
	t.Helper()
	if err := startCluster(); err != nil {
		t.Fatal(err)
	}
	return hadoopCluster
}

func loadConf(t *testing.T) *conf.Conf {
	t.Helper()
	cf, err := conf.Load(cluster(t).ConfDir())
	if err != nil {
		t.Fatal(err)
	}
	return cf
}

func newClient(t *testing.T) *hadoop.Client {
	t.Helper()
	c, err := hadoop.NewClient(loadConf(t), hadoop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ownBinary is this test binary as a file for containers.
func ownBinary(t *testing.T) hadoop.LocalResource {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(exe)
	if err != nil {
		t.Fatal(err)
	}
	return hadoop.LocalResource{Name: "yarn-submit", URI: "file://" + exe, Size: info.Size(), Timestamp: info.ModTime().UnixMilli(), Visibility: hadoop.Application}
}

// job is an application of a test.
type job struct {
	*master
	id     hadoop.ApplicationID
	client *hadoop.Client
	dir    string // agents' containers write PID files here
	l      *net.TCPListener
}

// runs writes its process id to the test's directory and then does something.
const runs = `echo $$ > "$HOLDFAST_JOB_DIRECTORY/$HOLDFAST_CONTAINER"; exec `

const literal = `it's "quoted", \ $HOME ${HOME} ` + "`id`" + ` {{HOME}} {{{x}}} <LOG_DIR>a<CPS>b !`

// submit starts an AM whose agents run a command of the shell.
func submit(t *testing.T, command string, change ...func(*hadoop.Submission)) *job {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	j := &job{master: &master{t: t}, client: newClient(t), dir: t.TempDir()}
	if err := os.Chmod(j.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	j.l = l.(*net.TCPListener)
	id, _, err := j.client.NewApplication(ctx)
	if err != nil {
		t.Fatal(err)
	}
	j.id = id
	creds := token.New()
	if creds.Secrets[proto.SecretConf], err = loadConf(t).Pack(); err != nil {
		t.Fatal(err)
	}
	binary := ownBinary(t)
	s := hadoop.Submission{
		ID: id, Name: t.Name(), Master: hadoop.Resource{MemoryMB: 256, VCores: 1},
		Launch: hadoop.Launch{
			Resources: []hadoop.LocalResource{binary}, Credentials: creds,
			Environment: map[string]string{
				envControl: l.Addr().String(), envCommand: command, envLiteral: literal,
				proto.EnvJob: id.String(), proto.EnvJobDirectory: j.dir,
			},
		},
		Agents: []hadoop.LocalResource{binary},
	}
	for _, c := range change {
		c(&s)
	}
	if err := j.client.Submit(ctx, s); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if r, err := j.client.Report(ctx, id); err == nil && !r.State.Done() {
			_ = j.client.Kill(ctx, id, "the test is over")
		}
	})
	j.meet()
	return j
}

// meet waits for the AM, or for its next attempt.
func (j *job) meet() {
	t := j.t
	t.Helper()
	if err := j.l.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	conn, err := j.l.Accept()
	if err != nil {
		r, _ := j.client.Report(t.Context(), j.id)
		t.Fatalf("the AM did not come: %v; %s: %s", err, r.State, r.Diagnostics)
	}
	t.Cleanup(func() { conn.Close() })
	m := &master{t: t, conn: conn, out: gob.NewEncoder(conn), in: make(chan report, 1000)}
	go func() {
		defer close(m.in)
		dec := gob.NewDecoder(conn)
		for {
			var h report
			if dec.Decode(&h) != nil {
				return
			}
			m.in <- h
		}
	}()
	hello := m.await("the AM's greeting", func(h report) bool { return h.Hello })
	m.literal, m.process = hello.Literal, hello.Pid
	j.master = m
}

// pid waits until a container's process has written its id.
func (j *job) pid(container string) int {
	j.t.Helper()
	var pid int
	eventually(j.t, "the process of "+container, func() bool {
		select {
		case h, open := <-j.in:
			if !open || h.Failed == container || h.Ended != nil && h.Ended.Container == container {
				j.t.Fatalf("%s has not told its process; AM there: %t; %s", container, open, describe(h))
			}
			j.t.Logf("while waiting for the process of %s: %s", container, describe(h))
		default:
		}
		b, _ := os.ReadFile(filepath.Join(j.dir, container))
		var err error
		pid, err = strconv.Atoi(strings.TrimSpace(string(b)))
		return err == nil
	})
	return pid
}

func (j *job) state(want hadoop.State) hadoop.Report {
	j.t.Helper()
	var r hadoop.Report
	eventually(j.t, "state "+want.String(), func() bool {
		var err error
		if r, err = j.client.Report(j.t.Context(), j.id); err != nil {
			j.t.Fatal(err)
		}
		return r.State == want
	})
	return r
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within two minutes", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestContainersLiveAndEnd(t *testing.T) {
	t.Parallel()
	j := submit(t, runs+"sleep 1000")
	if j.literal != literal {
		t.Errorf("an environment value arrived as\n%q, not as\n%q", j.literal, literal)
	}
	r := j.state(hadoop.StateRunning)
	if r.Port != 4711 || !strings.HasPrefix(r.Host, "127.0.0.") || r.Type != hadoop.ApplicationType || !strings.HasSuffix(r.OriginalURL, ":4712/") {
		t.Errorf("the RM knows the AM as %+v", r)
	}
	begin := time.Now()
	j.ask("ps", 2, 128)
	j.ask("worker", 4, 192)
	got := j.allocated(6)
	t.Logf("6 containers after %v", time.Since(begin))
	nodes := map[string]int{}
	for _, a := range got {
		nodes[a.Node]++
		j.tell(request{Launch: a.Container})
	}
	if len(nodes) < 2 {
		t.Errorf("all containers are on one node of three: %v", nodes)
	}
	pids := map[string]int{}
	for _, a := range got {
		pids[a.Container] = j.pid(a.Container)
	}
	t.Logf("6 processes after %v", time.Since(begin))
	for _, a := range got {
		var env []byte
		var err error
		eventually(t, "the environment of "+a.Container, func() bool { // empty while the process executes its program
			env, err = os.ReadFile(fmt.Sprintf("/proc/%d/environ", pids[a.Container]))
			return err != nil || len(env) > 0
		})
		if want := map[string]string{"ps": "64", "worker": "96"}[strings.Split(a.Request, "-")[0]]; err != nil || !strings.Contains(string(env), "\x00GOMEMLIMIT="+want+"MiB\x00") {
			t.Errorf("the heap of the agent for %s is not bounded by %s MiB: %v", a.Request, want, err)
		}
	}

	killed, released := got[0].Container, got[1].Container
	begin = time.Now()
	if err := syscall.Kill(pids[killed], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if e := j.ended(killed); e.Cause != event.CauseOwnFault || e.Exit != 137 {
		t.Errorf("after kill -9: %+v", e)
	}
	t.Logf("end known after %v", time.Since(begin))
	begin = time.Now()
	j.tell(request{Release: released})
	if e := j.ended(released); e.Cause != event.CauseReleased {
		t.Errorf("after a release: %+v", e)
	}
	t.Logf("release done after %v", time.Since(begin))
	if alive(pids[released]) {
		t.Errorf("the process of the released container runs on after its end was reported")
	}
	begin = time.Now()
	j.tell(request{Ask: &action.Ask{Request: "again", Role: "ps", MemoryMB: 128, VCores: 1, Avoid: []string{got[0].Node}}})
	again := j.allocated(1)[0]
	if again.Request != "again" || again.Node == got[0].Node {
		t.Errorf("the ask that avoids %s got %+v", got[0].Node, again)
	}
	j.tell(request{Launch: again.Container})
	pids[again.Container] = j.pid(again.Container)
	t.Logf("replaced after %v", time.Since(begin))

	j.finish(action.Finish{State: proto.JobState_JOB_STATE_SUCCEEDED, Why: "all done"})
	r = j.state(hadoop.StateFinished)
	if r.Final != hadoop.FinalSucceeded || r.Diagnostics != "all done" {
		t.Errorf("final state: %s, %q", r.Final, r.Diagnostics)
	}
	for c, pid := range pids {
		eventually(t, "the end of "+c, func() bool { return !alive(pid) })
	}
}

func TestEndsAreToldApart(t *testing.T) {
	t.Parallel()
	// The AM's is container 1. The next one exits, the others use 300 MB; one of
	// them obeys SIGTERM and ends with 0, which hides from YARN why it was sent.
	const command = `case $HOLDFAST_CONTAINER in *2) exit 7;; *4) trap 'exit 0' TERM;; esac
		head -c 300M /dev/zero | tail -n 1 | sleep 1000 & wait`
	j := submit(t, command)
	j.ask("exits", 1, 64)
	a := j.allocated(1)[0]
	if !strings.HasSuffix(a.Container, "2") {
		t.Fatalf("the first container is called %s", a.Container)
	}
	j.tell(request{Launch: a.Container})
	if e := j.ended(a.Container); e.Cause != event.CauseOwnFault || e.Exit != 7 {
		t.Errorf("after exit 7: %+v", e)
	}
	j.ask("hogs", 2, 64)
	for _, a := range j.allocated(2) {
		j.tell(request{Launch: a.Container})
		e := j.ended(a.Container)
		if e.Cause != event.CauseOutOfMemory || !strings.Contains(e.Diagnostics, "memory") {
			t.Errorf("after using too much memory: %+v", e)
		}
		t.Logf("%s: exit status %d", a.Container, e.Exit)
	}
	j.finish(action.Finish{State: proto.JobState_JOB_STATE_FAILED, Why: "a role failed"})
	if r := j.state(hadoop.StateFinished); r.Final != hadoop.FinalFailed || r.Diagnostics != "a role failed" {
		t.Errorf("final state: %s, %q", r.Final, r.Diagnostics)
	}
}

func TestFileThatChangedIsSaid(t *testing.T) {
	t.Parallel()
	j := submit(t, runs+"sleep 1000", func(s *hadoop.Submission) { s.Agents[0].Timestamp++ })
	j.ask("ps", 1, 64)
	a := j.allocated(1)[0]
	j.tell(request{Launch: a.Container})
	if e := j.ended(a.Container); e.Cause != event.CauseUnknown || !strings.Contains(e.Diagnostics, "changed on src filesystem") {
		t.Errorf("a file that changed since: %+v", e)
	}
	j.finish(action.Finish{State: proto.JobState_JOB_STATE_FAILED})
}

func TestWaitingIsExplained(t *testing.T) {
	t.Parallel()
	j := submit(t, runs+"sleep 1000", func(s *hadoop.Submission) { s.Queue = "small" })
	j.ask("worker", 4, 1024) // the queue has 2.4 GB
	h := j.await("an explanation", func(h report) bool { return h.Waiting != nil && h.Waiting.Why != "" })
	for _, w := range []string{"for worker", `"small" is full`, "1 GB"} {
		if !strings.Contains(h.Waiting.Why, w) {
			t.Errorf("%q does not say %q", h.Waiting.Why, w)
		}
	}
	t.Log(h.Waiting.Why)
	for i := range 4 {
		j.tell(request{Withdraw: fmt.Sprintf("worker-%d", i)})
	}
	j.await("the end of waiting", func(h report) bool { return h.Waiting != nil && h.Waiting.Why == "" })
	j.ask("giant", 1, 1<<20)
	// Larger nodes may come yet.
	h = j.await("word that no node is large enough", func(h report) bool { return h.Waiting != nil && strings.Contains(h.Waiting.Why, "giant") })
	if w := "1024 GB"; !strings.Contains(h.Waiting.Why, w) {
		t.Errorf("%q does not say %q", h.Waiting.Why, w)
	}
	j.finish(action.Finish{State: proto.JobState_JOB_STATE_KILLED})
	if r := j.state(hadoop.StateFinished); r.Final != hadoop.FinalKilled {
		t.Errorf("final state: %s", r.Final)
	}
}

// TestWhatTheSchedulerDoesNotCountIsTold: the CapacityScheduler as it comes counts memory alone.
func TestWhatTheSchedulerDoesNotCountIsTold(t *testing.T) {
	t.Parallel()
	fpga := map[string]*proto.Amount{"example.com/fpga": {Value: 1}}
	spec, err := protojson.Marshal(&proto.JobSpec{Roles: []*proto.RoleSpec{
		{Name: "ps", Count: 1, MemoryMb: 256, Vcores: 1}, {Name: "worker", Count: 1, MemoryMb: 256, Vcores: 1, Gpus: 1, Resources: fpga},
	}})
	if err != nil {
		t.Fatal(err)
	}
	j := submit(t, runs+"sleep 1000", func(s *hadoop.Submission) { s.Launch.Environment[envSpec] = string(spec) })
	h := j.await("a word of what is not counted", func(h report) bool { return h.Noted != "" })
	for _, want := range []string{"counts memory alone", "without GPUs, example.com/fpga", "DominantResourceCalculator"} {
		if !strings.Contains(h.Noted, want) {
			t.Errorf("%q does not say %q", h.Noted, want)
		}
	}
	j.finish(action.Finish{State: proto.JobState_JOB_STATE_KILLED})
}

func TestKillEndsEverything(t *testing.T) {
	t.Parallel()
	j := submit(t, runs+"sleep 1000")
	j.ask("ps", 2, 64)
	var pids []int
	for _, a := range j.allocated(2) {
		j.tell(request{Launch: a.Container})
		pids = append(pids, j.pid(a.Container))
	}
	if err := j.client.Kill(t.Context(), j.id, "enough of it"); err != nil {
		t.Fatal(err)
	}
	if r := j.state(hadoop.StateKilled); !strings.Contains(r.Diagnostics, "enough of it") {
		t.Errorf("diagnostics: %q", r.Diagnostics)
	}
	for _, pid := range pids {
		eventually(t, "the end of a container", func() bool { return !alive(pid) })
	}
	list, err := j.client.List(t.Context(), hadoop.Filter{Types: []string{hadoop.ApplicationType}, States: []hadoop.State{hadoop.StateKilled}})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, r := range list {
		found = found || r.ID == j.id && r.Name == t.Name()
	}
	if !found {
		t.Errorf("the application is not among the killed: %+v", list)
	}
}

func TestBadSubmissionsAreRefused(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	for name, want := range map[string][]string{
		"nowhere": {`"nowhere"`, "default", "small", "--queue"},
		"root":    {`"root"`, "default"},
	} {
		err := c.CheckQueue(t.Context(), name)
		if err == nil {
			t.Errorf("the queue %q was accepted", name)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("queue %s: %q does not say %q", name, err, w)
			}
		}
	}
	for _, name := range []string{"", "default", "small", "root.small"} {
		if err := c.CheckQueue(t.Context(), name); err != nil {
			t.Errorf("queue %q: %v", name, err)
		}
	}
	id, most, err := c.NewApplication(t.Context())
	if err != nil || most.MemoryMB != 8192 || most.VCores != 4 {
		t.Fatalf("largest container: %v, %v", most, err)
	}
	err = c.Submit(t.Context(), hadoop.Submission{ID: id, Name: "x", Queue: "nowhere", Master: hadoop.Resource{MemoryMB: 64, VCores: 1}})
	if err == nil || !hadoop.IsUnknownQueue(err) && !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("submitted to a queue that does not exist: %v", err)
	}
	if _, err := c.Report(t.Context(), hadoop.ApplicationID{Cluster: 1, Number: 1}); !hadoop.IsUnknownApplication(err) {
		t.Errorf("the report of an application that never was: %v", err)
	}
	nodes, err := c.Nodes(t.Context())
	if err != nil || len(nodes) != 3 || !nodes[0].Running() || nodes[0].Capability.MemoryMB != 8192 || nodes[0].Rack == "" {
		t.Errorf("nodes: %+v, %v", nodes, err)
	}
	if m, err := c.Metrics(t.Context()); err != nil || m.Active != 3 {
		t.Errorf("metrics: %+v, %v", m, err)
	}
}
