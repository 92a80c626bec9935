package yarn_test

import (
	"context"
	"encoding/gob"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/am"
	"holdfast/am/yarn"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/token"
	hadoop "holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

func TestMain(m *testing.M) {
	if os.Getenv(envControl) != "" {
		if err := runMaster(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func confDir(t *testing.T) string { return os.Getenv("HOLDFAST_TEST_CONF") }

func loadConf(t *testing.T) *conf.Conf {
	t.Helper()
	cf, err := conf.Load(confDir(t))
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
}

// runs writes its process id to the test's directory and then does something.
const runs = `echo $$ > "$HOLDFAST_JOB_DIRECTORY/$HOLDFAST_CONTAINER"; exec `

const literal = `it's "quoted", \ $HOME ${HOME} ` + "`id`" + ` {{HOME}} {{{x}}} <LOG_DIR>a<CPS>b !`

// submit starts an AM whose agents run a command of the shell.
func submit(t *testing.T, command string, change ...func(*hadoop.Submission)) *job {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	j := &job{client: newClient(t), dir: t.TempDir()}
	if err := os.Chmod(j.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
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
	if err := l.(*net.TCPListener).SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		r, _ := j.client.Report(ctx, id)
		t.Fatalf("the AM did not come: %v; %s: %s", err, r.State, r.Diagnostics)
	}
	t.Cleanup(func() { conn.Close() })
	j.master = &master{t: t, conn: conn, out: gob.NewEncoder(conn), in: make(chan happening, 1000)}
	go func() {
		defer close(j.in)
		dec := gob.NewDecoder(conn)
		for {
			var h happening
			if dec.Decode(&h) != nil {
				return
			}
			j.in <- h
		}
	}()
	j.literal = j.await("the AM's greeting", func(h happening) bool { return h.Hello }).Literal
	return j
}

// pid waits until a container's process has written its id.
func (j *job) pid(container string) int {
	j.t.Helper()
	var pid int
	eventually(j.t, "the process of "+container, func() bool {
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
		j.tell(order{Launch: a.Container})
	}
	if len(nodes) < 2 {
		t.Errorf("all containers are on one node of three: %v", nodes)
	}
	pids := map[string]int{}
	for _, a := range got {
		pids[a.Container] = j.pid(a.Container)
	}
	t.Logf("6 processes after %v", time.Since(begin))

	killed, released := got[0].Container, got[1].Container
	begin = time.Now()
	if err := syscall.Kill(pids[killed], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if e := j.ended(killed); e.Cause != am.EndExited || e.Exit != 137 {
		t.Errorf("after kill -9: %+v", e)
	}
	t.Logf("end known after %v", time.Since(begin))
	begin = time.Now()
	j.tell(order{Release: released})
	if e := j.ended(released); e.Cause != am.EndReleased {
		t.Errorf("after a release: %+v", e)
	}
	t.Logf("release done after %v", time.Since(begin))
	if alive(pids[released]) {
		t.Errorf("the process of the released container runs on after its end was reported")
	}
	begin = time.Now()
	j.tell(order{Ask: &am.Ask{Request: "again", Role: "ps", MemoryMB: 128, VCores: 1, Avoid: []string{got[0].Node}}})
	again := j.allocated(1)[0]
	if again.Request != "again" || again.Node == got[0].Node {
		t.Errorf("the ask that avoids %s got %+v", got[0].Node, again)
	}
	j.tell(order{Launch: again.Container})
	pids[again.Container] = j.pid(again.Container)
	t.Logf("replaced after %v", time.Since(begin))

	j.finish(am.Outcome{Succeeded: true, Why: "all done"})
	r = j.state(hadoop.StateFinished)
	if r.Final != hadoop.FinalSucceeded || r.Diagnostics != "all done" {
		t.Errorf("final state: %s, %q", r.Final, r.Diagnostics)
	}
	for c, pid := range pids {
		eventually(t, "the end of "+c, func() bool { return !alive(pid) })
	}
}

var _ = yarn.AgentCommand
