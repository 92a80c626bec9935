package container_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/container"
	"holdfast/proto"
)

// assignment is a task like any other; change may alter it.
func assignment(change func(*proto.Assign)) *proto.Assign {
	a := &proto.Assign{
		Job: "job-1", Task: "ps-1", Role: "ps", Index: 1,
		Spec: &proto.JobSpec{Roles: []*proto.RoleSpec{{Name: "ps", Count: 2}, {Name: "worker", Count: 1}}},
	}
	if change != nil {
		change(a)
	}
	return a
}

func shell(script string) []string { return []string{"sh", "-c", script} }

func TestAttemptsRunInPlace(t *testing.T) {
	m := newMaster(t)
	r := m.startAgent("c1", nil)
	c := m.agent()
	if c.hello.Container != "c1" || c.hello.Host != "127.0.0.1" || c.hello.Pid == 0 {
		t.Fatalf("hello: %v", c.hello)
	}
	c.send(assignment(nil))
	p := c.prepared()
	if p.Port < 10000 || p.Port >= 32768 {
		t.Errorf("port %d is in the ephemeral range or below 10000", p.Port)
	}
	for i := range int32(3) {
		c.send(&proto.Start{Attempt: i, Command: shell(`echo attempt $N of $X; test -e old && echo again; touch old; exit $N`), Env: map[string]string{"N": fmt.Sprint(i), "X": "a b"}})
		s := c.started()
		if s.Attempt != i || s.Pid == 0 || s.AtUnixMs == 0 {
			t.Fatalf("started: %v", s)
		}
		e := c.exited()
		if e.Attempt != i || e.Code != i || e.Signal != 0 || e.Stopped || e.CommandMissing {
			t.Fatalf("exited: %v", e)
		}
		want := []string{fmt.Sprintf("attempt %d of a b", i)}
		if i > 0 {
			want = append(want, "again")
		}
		if !slices.Equal(e.Tail, want) {
			t.Fatalf("tail %q, want %q", e.Tail, want)
		}
	}
	c.send(&proto.Release{Why: "done"})
	if err := r.end(); err != nil {
		t.Fatalf("after Release: %v", err)
	}
	for i := range 3 {
		for _, file := range []string{
			filepath.Join(r.config.LogDir, fmt.Sprintf("ps-1.%d.log", i)),
			filepath.Join(m.jobDir, "logs", "ps-1", fmt.Sprintf("%d.log", i)),
		} {
			b, err := os.ReadFile(file)
			if err != nil || !strings.HasPrefix(string(b), fmt.Sprintf("attempt %d of a b\n", i)) {
				t.Errorf("%s: %q, %v", file, b, err)
			}
		}
	}
}

func TestOutputReachesTheJobsDirectoryWhileTheTaskRuns(t *testing.T) {
	m := newMaster(t)
	m.startAgent("c1", nil)
	c := m.agent()
	c.send(assignment(nil))
	c.prepared()
	c.send(&proto.Start{Command: shell(`echo early; printf '\n\r'; while :; do :; done`)})
	c.started()
	file := filepath.Join(m.jobDir, "logs", "ps-1", "0.log")
	eventually(t, "the first line of a running task in "+file, func() bool {
		b, _ := os.ReadFile(file)
		return string(b) == "early\n\n\r"
	})
	eventually(t, "a heartbeat with the memory of task and agent, what the task has used, and what it says", func() bool {
		b := <-c.beats
		return b.RssBytes > 0 && b.AgentRssBytes > 0 && b.CpuMs > 0 && b.IoBytes > 0 && b.Line == "early" && b.LineAgeMs > 0
	})
	c.send(&proto.Stop{GraceMs: 60000})
	e := c.exited()
	if !e.Stopped || e.Signal != 15 || e.Code != -1 {
		t.Fatalf("exited: %v", e)
	}
}

func TestStopKillsWhatDoesNotListen(t *testing.T) {
	m := newMaster(t)
	m.startAgent("c1", nil)
	c := m.agent()
	c.send(assignment(nil))
	c.prepared()
	// A child in a session of its own, whose parent has ended: nothing but the
	// tree finds it.
	c.send(&proto.Start{Command: shell(`trap '' TERM; setsid sh -c 'sleep 1000 & echo $! >orphan; exit' ; echo ready; while :; do sleep 1000; done`)})
	c.started()
	orphan := readPid(t, filepath.Join(lastWorkDir(m), "orphan"))
	c.send(&proto.Stop{GraceMs: 600000})
	c.send(&proto.Stop{GraceMs: 100}) // there is less time than was said
	e := c.exited()
	if !e.Stopped || e.Signal != 9 {
		t.Fatalf("exited: %v", e)
	}
	if alive(orphan) {
		t.Fatalf("the orphan %d is still there after Exited", orphan)
	}
}

// TestWhatIsKilledIsOfTheAttemptThatWasStopped: the next one, which starts as soon as the end of that
// is known, is left alone.
func TestWhatIsKilledIsOfTheAttemptThatWasStopped(t *testing.T) {
	m := newMaster(t)
	m.startAgent("c1", nil)
	c := m.agent()
	c.send(assignment(nil))
	c.prepared()
	for n := int32(0); n < 200; n += 2 {
		c.send(&proto.Start{Attempt: n, Command: shell(`for i in 1 2 3 4 5 6 7 8; do sleep 1000 & done; wait`)})
		c.started()
		c.send(&proto.Stop{GraceMs: 0})
		if e := c.exited(); e.Attempt != n || !e.Stopped {
			t.Fatalf("exited: %v", e)
		}
		c.send(&proto.Start{Attempt: n + 1, Command: shell(`sleep 0.02; exit 7`)})
		c.started()
		if e := c.exited(); e.Attempt != n+1 || e.Code != 7 {
			t.Fatalf("exited: %v", e)
		}
	}
}

// A program that is stopped because it stands still says where.
func TestStopAsksWhereAPythonProgramStands(t *testing.T) {
	for name, grace := range map[string]int64{"with time to end": 60000, "with none": 0} {
		t.Run(name, func(t *testing.T) { testStopAsks(t, grace) })
	}
}

func testStopAsks(t *testing.T, grace int64) {
	m := newMaster(t)
	m.startAgent("c1", nil)
	c := m.agent()
	c.send(assignment(nil))
	c.prepared()
	script := "import time\ndef waits_for_ever():\n    print('here', flush=True)\n    while True: time.sleep(1000)\nwaits_for_ever()\n"
	c.send(&proto.Start{Command: []string{"sh", "-c", `python3 -c "$SCRIPT"; exit $?`}, Env: map[string]string{"SCRIPT": script}})
	c.started()
	file := filepath.Join(m.jobDir, "logs", "ps-1", "0.log")
	eventually(t, "the program's line in "+file, func() bool {
		b, _ := os.ReadFile(file)
		return string(b) == "here\n"
	})
	c.send(&proto.Stop{GraceMs: grace, DumpStacks: true})
	e := c.exited()
	if killed := e.Signal == int32(syscall.SIGKILL); !e.Stopped || killed != (grace == 0) || len(e.Stack) < 2 || !strings.Contains(e.Stack[1], "in waits_for_ever") {
		t.Fatalf("exited: %v", e)
	}
}

// The stacks that a client gets are those that were printed because it asked, however many
// the output has already, and also where they come at once.
func TestStacksAreThoseOfNow(t *testing.T) {
	m := newMaster(t)
	m.startAgent("c1", nil)
	c := m.agent()
	c.send(assignment(nil))
	c.prepared()
	script := `
import signal, sys
def show(frames):
    print("Current thread 0x00007f0000000000 (most recent call first):", *frames, sep="\n", flush=True)
asked = 0
def on_quit(*_):
    global asked
    asked += 1
    show(['  File "x.py", line %d in answer' % asked])
for i in range(300):
    show(['  File "x.py", line 1 in before'])
signal.signal(signal.SIGQUIT, on_quit)
print("here", flush=True)
while True: signal.pause()
`
	c.send(&proto.Start{Command: []string{"python3", "-c", script}})
	c.started()
	file := filepath.Join(m.jobDir, "logs", "ps-1", "0.log")
	eventually(t, "the program's line in "+file, func() bool {
		b, _ := os.ReadFile(file)
		return strings.HasSuffix(string(b), "here\n")
	})
	for n := 1; n <= 20; n++ {
		c.send(&proto.Exec{Id: int64(n), Stacks: true})
		o := hear(c, (*proto.FromAgent).GetExecOutput)
		want := fmt.Sprintf("Current thread 0x00007f0000000000 (most recent call first):\n  File \"x.py\", line %d in answer\n", n)
		if string(o.Output) != want || !o.Done || o.Code != 0 {
			t.Fatalf("the answer to request %d: %v; want %q", n, o, want)
		}
	}
	c.send(&proto.Stop{GraceMs: 60000})
	c.exited()
}

// What ended an attempt is what torch.distributed.elastic wrote of it, not what came last.
func TestTheErrorFileOfTorchElasticTellsTheCause(t *testing.T) {
	m := newMaster(t)
	m.startAgent("c1", nil)
	c := m.agent()
	c.send(assignment(func(a *proto.Assign) {
		a.Spec = &proto.JobSpec{Framework: "pytorch", Roles: []*proto.RoleSpec{{Name: "ps", Count: 2}}}
		a.Routes = proto.NewRoutes(nil, []proto.TaskAddress{{Port: 20000}, {Port: 20001}}, nil)
	}))
	c.prepared()
	file := `{"message": {"message": "ValueError: bad batch", "extraInfo": {"py_callstack": "Traceback (most recent call last):\n  File \"x.py\", line 1, in main\nValueError: bad batch", "timestamp": "1700000000"}}}`
	c.send(&proto.Start{Command: shell(`printf '%s' "$FILE" > "$TORCHELASTIC_ERROR_FILE"; echo 'RuntimeError: Connection closed by peer'; exit 1`), Env: map[string]string{"FILE": file}})
	c.started()
	if e := c.exited(); e.PeerLost || e.Error != "ValueError: bad batch" || e.AtUnixMs != 1700000000000 {
		t.Fatalf("exited: %v", e)
	}
	c.send(&proto.Start{Attempt: 1, Command: shell(`echo 'RuntimeError: Connection closed by peer'; exit 1`)})
	c.started()
	if e := c.exited(); !e.PeerLost || e.Error != "RuntimeError: Connection closed by peer" || e.AtUnixMs == 1700000000000 {
		t.Fatalf("exited: %v", e)
	}
	c.send(&proto.Start{Attempt: 2, Command: shell(`printf 'terminate called: \033[31mno space\033[0m\n\n'; kill -ABRT $$`)})
	c.started()
	if e := c.exited(); e.Error != "terminate called: no space" || e.Detail != "killed by SIGABRT" {
		t.Fatalf("exited: %v", e)
	}
}

// What is told of a signal that ended a program is told also where a shell was around it, which
// then exits with 128 more than the signal's number. Only of signals by which programs end by
// what they did themselves, their output tells more.
func TestSignalsUnderAShell(t *testing.T) {
	m := newMaster(t)
	m.startAgent("c1", nil)
	c := m.agent()
	c.send(assignment(func(a *proto.Assign) { a.Spec.Framework = "none" }))
	c.prepared()
	attempt := int32(0)
	for _, k := range []struct {
		script   string
		signal   syscall.Signal
		error    string
		peerLost bool
	}{
		{`echo why; echo; kill -ABRT $$`, syscall.SIGABRT, "why", false},
		{`echo 'ValueError: bad batch'; kill -SEGV $$`, syscall.SIGSEGV, "ValueError: bad batch", false},
		{`echo step 5; kill -SEGV $$`, syscall.SIGSEGV, "", false},
		{`echo 'RuntimeError: Connection closed by peer'; kill -SEGV $$`, syscall.SIGSEGV, "RuntimeError: Connection closed by peer", true},
		{`echo 'ConnectionResetError: of before'; kill -KILL $$`, syscall.SIGKILL, "", false},
	} {
		for script, want := range map[string]*proto.Exited{
			k.script: {Code: -1, Signal: int32(k.signal), Detail: "killed by " + unix.SignalName(k.signal)},
			"sh -c '" + strings.ReplaceAll(k.script, "'", `'\''`) + "'; exit $?": {Code: 128 + int32(k.signal), Detail: fmt.Sprintf("exited with %d (a shell's code for %s)", 128+k.signal, unix.SignalName(k.signal))},
		} {
			c.send(&proto.Start{Attempt: attempt, Command: shell(script)})
			c.started()
			if e := c.exited(); e.Code != want.Code || e.Signal != want.Signal || e.Detail != want.Detail || e.Error != k.error || e.PeerLost != k.peerLost {
				t.Errorf("%s: exited: %v", script, e)
			}
			attempt++
		}
	}
}

// A program is told whether it goes on from what the parameter servers hold, unless its user
// does not want that.
func TestAProgramIsToldThatTheModelIsKept(t *testing.T) {
	m := newMaster(t)
	m.startAgent("c1", nil)
	c := m.agent()
	c.send(assignment(nil))
	c.prepared()
	for i, tt := range []struct {
		kept bool
		env  map[string]string
		want string
	}{
		{true, nil, "1"},
		{true, map[string]string{proto.EnvKept: "0"}, "0"},
		{false, nil, "unset"},
		{false, map[string]string{proto.EnvKept: "0"}, "0"},
	} {
		c.send(&proto.Start{Attempt: int32(i), ConsistentServerState: tt.kept, Env: tt.env, Command: shell(`echo "${` + proto.EnvKept + `-unset}"; exit 1`)})
		c.started()
		if e := c.exited(); !slices.Equal(e.Tail, []string{tt.want}) {
			t.Errorf("kept %v, and the user says %v: the program sees %q, want %q", tt.kept, tt.env, e.Tail, tt.want)
		}
	}
}

// A NodeManager that ends a container asks its agent to end first: if that told
// of the attempt's end, the next one would be started in what is left.
func TestAnAgentThatIsAskedToEndTellsOfNoExit(t *testing.T) {
	m := newMaster(t)
	r := m.startAgent("c1", nil)
	c := m.agent()
	c.send(assignment(nil))
	c.prepared()
	c.send(&proto.Start{Command: shell(`sleep 1000`)})
	pid := int(c.started().Pid)
	r.cancel()
	for f := range c.heard {
		if e := f.GetExited(); e != nil {
			t.Errorf("it tells of %v", e)
		}
	}
	if err := r.end(); err != nil || alive(pid) {
		t.Errorf("the agent ended with %v; does its task live? %t", err, alive(pid))
	}
}

func TestWhatAnAttemptLeavesBehindIsEnded(t *testing.T) {
	m := newMaster(t)
	m.startAgent("c1", nil)
	c := m.agent()
	c.send(assignment(nil))
	c.prepared()
	c.send(&proto.Start{Command: shell(`setsid sleep 1000 & echo $! >orphan; exit 3`)})
	c.started()
	e := c.exited()
	if e.Code != 3 {
		t.Fatalf("exited: %v", e)
	}
	if p := readPid(t, filepath.Join(lastWorkDir(m), "orphan")); alive(p) {
		t.Fatalf("the child %d of an ended attempt is still there after Exited", p)
	}
}

func TestCommandsThatCannotRun(t *testing.T) {
	m := newMaster(t)
	r := m.startAgent("c1", nil)
	c := m.agent()
	c.send(assignment(nil))
	c.prepared()
	work := filepath.Join(r.config.WorkDir, "work")
	for name, text := range map[string]string{"no-x": "#!/bin/sh\n", "no-x.py": "print()\n", "no-interpreter": "#!/no/such/thing\n", "no-format": "hello\n"} {
		mode := os.FileMode(0o755)
		if strings.HasPrefix(name, "no-x") {
			mode = 0o644
		}
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	for i, test := range []struct{ command, says string }{
		{"no-such-command", "PATH"},
		{"./no-such-file", "no-such-file"},
		{"./no-x", "permission denied; chmod +x no-x, or run it with its interpreter"},
		{"./no-x.py", "permission denied; chmod +x no-x.py, or run it with python"},
		{"./no-interpreter", "interpreter"},
		{"./no-format", "#!"},
		{"/", "directory"},
	} {
		c.send(&proto.Start{Attempt: int32(i), Command: []string{test.command}})
		e := c.exited()
		if !e.CommandMissing || e.Code != 127 || e.Attempt != int32(i) || !strings.Contains(e.Detail, test.says) || !strings.Contains(e.Detail, strings.TrimPrefix(test.command, ".")) {
			t.Errorf("%s: %v", test.command, e)
		}
		b, err := os.ReadFile(filepath.Join(r.config.LogDir, fmt.Sprintf("ps-1.%d.log", i)))
		if err != nil || !strings.Contains(string(b), test.says) {
			t.Errorf("%s: the attempt's log says %q, %v", test.command, b, err)
		}
	}
	c.send(&proto.Start{Attempt: 99, Command: []string{"true"}})
	c.started()
	if e := c.exited(); e.Code != 0 || e.CommandMissing {
		t.Fatalf("after commands that could not run: %v", e)
	}
}

func TestEnvironment(t *testing.T) {
	m := newMaster(t)
	m.startAgent("c1", func(c *container.Config) {
		c.TmpDir = sharedDir(t, 0)
		c.Env = []string{"PATH=/usr/bin:/bin", "HOME=/h", "LC_ALL=C", "SECRET=1", "HOLDFAST_CREDENTIALS=/x", "HADOOP_TOKEN_FILE_LOCATION=/y"}
	})
	c := m.agent()
	c.send(assignment(nil))
	c.prepared()
	c.send(&proto.Start{Command: []string{"env"}, Env: map[string]string{"GIVEN": "1", "PYTHONPATH": "/mine"}, PythonPath: []string{"/shim"}})
	c.started()
	e := c.exited()
	var names []string
	for _, line := range e.Tail {
		name, value, _ := strings.Cut(line, "=")
		if !strings.HasPrefix(name, "HOLDFAST_") || name == proto.EnvCredentials { // but for what is told of every task
			names = append(names, name)
		}
		if name == "PYTHONPATH" && !(strings.HasSuffix(value, ":/shim:/mine")) {
			t.Errorf("PYTHONPATH is %q", value)
		}
	}
	slices.Sort(names)
	if want := []string{"GIVEN", "HOME", "LC_ALL", "PATH", "PYTHONPATH", "TMPDIR"}; !slices.Equal(names, want) {
		t.Errorf("the task sees %q, want %q", names, want)
	}
}

func TestFilesAreFetchedAndChecked(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "t.sh")
	content := []byte("#!/bin/sh\necho it runs\n")
	if err := os.WriteFile(script, content, 0o644); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	spec := &proto.FileSpec{Name: "sub/train.sh", Uri: script, Size: int64(len(content)), Sha256: hex.EncodeToString(sum[:]), Mode: 0o755}

	m := newMaster(t)
	m.startAgent("c1", nil)
	c := m.agent()
	c.send(assignment(func(a *proto.Assign) { a.Files = []*proto.FileSpec{spec} }))
	c.prepared()
	c.send(&proto.Start{Command: []string{"sub/train.sh"}})
	c.started()
	if e := c.exited(); e.Code != 0 || !slices.Equal(e.Tail, []string{"it runs"}) {
		t.Fatalf("exited: %v", e)
	}

	for name, test := range map[string]struct {
		change func(*proto.FileSpec)
		says   string
	}{
		"changed content": {func(s *proto.FileSpec) { s.Sha256 = strings.Repeat("0", 64) }, "SHA-256"},
		"changed size":    {func(s *proto.FileSpec) { s.Size++ }, "bytes"},
		"gone":            {func(s *proto.FileSpec) { s.Uri += ".gone" }, "no such file"},
		"outside":         {func(s *proto.FileSpec) { s.Name = "../x" }, "outside"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMaster(t)
			m.startAgent("c1", nil)
			c := m.agent()
			bad := &proto.FileSpec{Name: spec.Name, Uri: spec.Uri, Size: spec.Size, Sha256: spec.Sha256, Mode: spec.Mode}
			test.change(bad)
			c.send(assignment(func(a *proto.Assign) { a.Files = []*proto.FileSpec{bad} }))
			if tr := c.trouble(); !tr.Permanent || !strings.Contains(tr.Detail, test.says) {
				t.Fatalf("trouble: %v", tr)
			}
		})
	}
}

// lastWorkDir is where the only agent of a test works.
func lastWorkDir(m *master) string { return filepath.Join(m.last.config.WorkDir, "work") }

func readPid(t *testing.T, file string) int {
	t.Helper()
	pid := 0
	eventually(t, file, func() bool {
		b, _ := os.ReadFile(file)
		n, _ := fmt.Sscan(string(b), &pid)
		return n == 1
	})
	return pid
}

// TestNamesAndTextsThatAreNotUTF8: Linux allows any bytes in a file's name, and programs print
// any. The name is reported as it is, and none of it costs the agent its connection.
func TestNamesAndTextsThatAreNotUTF8(t *testing.T) {
	m := newMaster(t)
	m.startAgent("c1", nil)
	c := m.agent()
	c.send(assignment(func(a *proto.Assign) {
		a.HeartbeatIntervalMs = 100
		a.Checkpoints = []*proto.CheckpointSpec{{Path: "./out", Uri: t.TempDir()}}
	}))
	c.prepared()
	c.send(&proto.Start{Command: shell(`printf x > "$(printf 'out/r\351.txt')"; mv "$(printf 'out/r\351.txt')" "$(printf 'out/s\351.txt')"
		printf 'loss=1.5 \351\n'; while [ ! -e out/end ]; do sleep 0.05; done; printf 'ValueError: \351\n'; exit 1`)})
	c.started()
	var named []string
	for len(named) < 2 {
		select {
		case m := <-c.commits:
			for _, f := range m.Files {
				named = append(named, string(f.From)+">"+string(f.Name))
			}
		case <-c.heard:
			t.Fatal("the agent's stream has ended, or its task")
		case <-time.After(patience):
			t.Fatalf("only %q are reported", named)
		}
	}
	if want := []string{">r\xe9.txt", "r\xe9.txt>s\xe9.txt"}; !slices.Equal(named, want) {
		t.Errorf("reported are %q, want %q", named, want)
	}
	eventually(t, "the line that it has printed", func() bool { return strings.HasPrefix((<-c.beats).Line, "loss=1.5 ") })
	c.send(&proto.Exec{Id: 1, Command: shell("touch out/end")})
	if e := c.exited(); !strings.HasPrefix(e.Tail[len(e.Tail)-1], "ValueError: ") {
		t.Errorf("exited: %v", e)
	}
}
