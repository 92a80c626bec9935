package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"holdfast/client"
	"holdfast/client/jobs"
	"holdfast/doctor/check"
	"holdfast/hdfsckpt/inspect"
	"holdfast/proto"
)

// envBinary makes the test binary behave as yarn-submit, which it also is for
// the application masters and agents that it starts.
const envBinary = "YARN_SUBMIT_TEST_BINARY"

func TestMain(m *testing.M) {
	if os.Getenv(envBinary) != "" {
		main()
	}
	os.Exit(m.Run())
}

// limit is much more than a local job of these tests takes.
const limit = 2 * time.Minute

// place is a home and a working directory of its own.
type place struct {
	t         *testing.T
	home, dir string
	program   []string // runs yarn-submit there
}

func newPlace(t *testing.T) place { return newPlaceIn(t, t.TempDir(), t.TempDir(), os.Args[0]) }

func newPlaceIn(t *testing.T, home, dir string, program ...string) place {
	p := place{t, home, dir, program}
	// No process of a job outlives its test.
	t.Cleanup(func() {
		list, _ := os.ReadDir(filepath.Join(p.home, "jobs"))
		for _, e := range list {
			_ = p.command("kill", e.Name()).Run()
		}
	})
	return p
}

func (p place) command(args ...string) *exec.Cmd {
	cmd := exec.Command(p.program[0], append(p.program[1:len(p.program):len(p.program)], args...)...)
	cmd.Dir = p.dir
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "HADOOP_") {
			cmd.Env = append(cmd.Env, e)
		}
	}
	cmd.Env = append(cmd.Env, envBinary+"=1", jobs.EnvHome+"="+p.home)
	return cmd
}

// call runs a command to its end.
func (p place) call(args ...string) (stdout, stderr string, code int) {
	p.t.Helper()
	cmd := p.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	timer := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait()
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func (p place) status(job string) *proto.JobStatus {
	p.t.Helper()
	out, errs, code := p.call("status", job, "--output", "json")
	s := &proto.JobStatus{}
	if err := proto.FromJSON([]byte(out), s); err != nil {
		p.t.Fatalf("status ended with %d: %v\n%s%s", code, err, out, errs)
	}
	return s
}

// detached starts a job and waits until its tasks run.
func (p place) detached(args ...string) string {
	p.t.Helper()
	out, errs, code := p.call(append([]string{"run", "--local", "--detach", "--output", "json"}, args...)...)
	var started struct{ ID, Directory string }
	if err := json.Unmarshal([]byte(out), &started); code != 0 || err != nil || started.ID == "" {
		p.t.Fatalf("run ended with %d: %v\n%s%s", code, err, out, errs)
	}
	p.until(started.ID, "all tasks to run", func(s *proto.JobStatus) bool {
		for _, t := range s.Tasks {
			if t.State != proto.TaskState_TASK_STATE_RUNNING {
				return false
			}
		}
		return len(s.Tasks) > 0
	})
	return started.ID
}

func (p place) until(job, what string, ok func(*proto.JobStatus) bool) *proto.JobStatus {
	p.t.Helper()
	for deadline := time.Now().Add(limit); ; {
		s := p.status(job)
		if ok(s) {
			return s
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("waited for %s, and the job is: %s", what, protojson.Format(s))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func contains(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%q is missing in:\n%s", w, text)
		}
	}
}

func TestJobThatSucceeds(t *testing.T) {
	p := newPlace(t)
	write(t, filepath.Join(p.dir, "data/in.txt"), "input\n")
	out, errs, code := p.call("run", "--local", "--worker", "2", "--ps", "1", "--files", "data", "--env", "WHO={task}", "--checkpoint", "./logs=ck", "--",
		"sh", "-c", `if [ {role} = ps ]; then echo serving; : > logs/serving; exec sleep 1000; fi
until [ -e logs/serving ]; do sleep 0.05; done
cat data/in.txt; echo "$WHO of {worker_hosts}"; echo "$WHO" > logs/{task}`)
	if code != 0 {
		t.Fatalf("run ended with %d:\n%s%s", code, out, errs)
	}
	contains(t, out, "started local-", "worker-1", "succeeded in", "its output: yarn-submit logs local-")
	for _, task := range []string{"worker-0", "worker-1"} {
		if b, err := os.ReadFile(filepath.Join(p.dir, "ck", task)); err != nil || string(b) != task+"\n" {
			t.Errorf("the checkpoint directory has %q of %s (%v)", b, task, err)
		}
	}
	id := strings.Fields(strings.TrimPrefix(out, "started "))[0]

	logs, errs, code := p.call("logs", id)
	if code != 0 {
		t.Errorf("logs ended with %d: %s", code, errs)
	}
	contains(t, logs, "==> ps-0, attempt 0 <==\nserving\n", "==> worker-1, attempt 0 <==\ninput\nworker-1 of worker-0:")
	logs, _, _ = p.call("logs", id, "worker-0", "--attempt", "0")
	if !strings.HasPrefix(logs, "input\nworker-0 of ") {
		t.Errorf("one attempt's output is %q", logs)
	}
	logs, _, _ = p.call("logs", "sh", "ps-0", "--output", "json") // by the job's name
	if strings.TrimSpace(logs) != `{"task":"ps-0","attempt":0,"text":"serving"}` {
		t.Errorf("the output of ps-0 is %q", logs)
	}
	_, errs, code = p.call("logs", id, "worker-7")
	if code != client.ExitUsage || !strings.Contains(errs, "worker-0, worker-1") {
		t.Errorf("logs of a task that is not there ended with %d: %s", code, errs)
	}
	logs, _, code = p.call("logs", id, "worker") // a role
	if code != 0 || !strings.HasPrefix(logs, "==> worker-0, attempt 0 <==\ninput\n") || !strings.Contains(logs, "==> worker-1, attempt 0 <==") || strings.Contains(logs, "ps-0, ") {
		t.Errorf("logs of a role ended with %d: %s", code, logs)
	}
	_, errs, code = p.call("logs", id, "worker-0", "--attempt", "7")
	if code != client.ExitUsage || !strings.Contains(errs, "only attempt 0") {
		t.Errorf("logs of an attempt that is not there ended with %d: %s", code, errs)
	}
	bad := filepath.Join(p.home, "jobs", id, proto.LogsDir, "ps-0", "1.log") // nobody can read a directory
	if err := os.Mkdir(bad, 0o700); err != nil {
		t.Fatal(err)
	}
	logs, errs, code = p.call("logs", id)
	if code != client.ExitFailed {
		t.Errorf("with a log that cannot be read, logs ended with %d", code)
	}
	contains(t, logs, "serving", "worker-0 of ", "worker-1 of ")
	contains(t, errs, "attempt 1 of ps-0", "is a directory")
	if err := os.Remove(bad); err != nil {
		t.Fatal(err)
	}

	if s := p.status(id); s.State != proto.JobState_JOB_STATE_SUCCEEDED || len(s.Tasks) != 3 || s.EndedUnixMs == 0 {
		t.Errorf("the state afterwards is %s", protojson.Format(s))
	}
	text, _, _ := p.call("status", id)
	contains(t, text, id, "succeeded", "ps-0", "worker-1", filepath.Join(p.dir, "ck"))

	listed, _, _ := p.call("list", "--output", "json")
	var list proto.JobList
	if err := proto.FromJSON([]byte(listed), &list); err != nil || len(list.Jobs) != 1 || list.Jobs[0].Id != id || list.Jobs[0].State != proto.JobState_JOB_STATE_SUCCEEDED || list.Jobs[0].Where != "local" {
		t.Errorf("the list is %s (%v)", listed, err)
	}
	killed, _, code := p.call("kill", id)
	if code != 0 || !strings.Contains(killed, id+": had already ended: succeeded") {
		t.Errorf("kill of a job that is over ended with %d: %s", code, killed)
	}
	killed, _, code = p.call("kill", id, "--output", "json")
	if ended, s := hadEnded(t, killed); code != 0 || !ended || s.Id != id || s.State != proto.JobState_JOB_STATE_SUCCEEDED {
		t.Errorf("in JSON it ended with %d: %s", code, killed)
	}
	alone(t, id)
}

// hadEnded reads what kill says in JSON of a job: whether that had ended already, and its state.
func hadEnded(t *testing.T, text string) (bool, *proto.JobStatus) {
	t.Helper()
	var said struct {
		HadEnded *bool `json:"had_ended"`
	}
	s := &proto.JobStatus{}
	if err := errors.Join(json.Unmarshal([]byte(text), &said), proto.FromJSON([]byte(text), s)); err != nil || said.HadEnded == nil {
		t.Fatalf("kill says in JSON (%v):\n%s", err, text)
	}
	return *said.HadEnded, s
}

// A failed job shows which task failed, why, and what it wrote last.
func TestJobThatFails(t *testing.T) {
	p := newPlace(t)
	out, _, code := p.call("run", "--local", "--worker", "2", "--restarts", "1", "--", "sh", "-c",
		`if [ {index} = 1 ]; then echo "on the way"; echo "ValueError: bad" >&2; exit 7; fi; exec sleep 1000`)
	if code != client.ExitFailed {
		t.Errorf("run ended with %d", code)
	}
	contains(t, out, "failed", "worker-1", "| on the way", "| ValueError: bad", "yarn-submit logs local-", "in the same way")
	id := strings.Fields(strings.TrimPrefix(out, "started "))[0]
	if s := p.status(id); s.State != proto.JobState_JOB_STATE_FAILED {
		t.Errorf("the state is %s", s.State)
	}
	logs, _, _ := p.call("logs", id, "worker-1")
	contains(t, logs, "==> worker-1, attempt 0 <==", "==> worker-1, attempt 1 <==")
	if _, errs, code := p.call("logs", id, "worker-1", "--attempt", "7"); code != client.ExitUsage || !strings.Contains(errs, "only 0 and 1") {
		t.Errorf("logs of an attempt that is not there ended with %d: %s", code, errs)
	}
	for _, args := range [][]string{{"worker-0"}, {"worker-0", "--attempt", "0"}, {"worker-0", "--follow"}} { // it only sleeps
		out, errs, code := p.call(append([]string{"logs", id}, args...)...)
		if code != 0 || out != "" || !strings.Contains(errs, "worker-0 of "+id+" has written nothing: it is stopped") {
			t.Errorf("logs %v of a silent task ended with %d: %s%s", args, code, out, errs)
		}
	}
	if _, _, code := p.call("status", id, "--follow"); code != client.ExitFailed {
		t.Errorf("status --follow of a failed job ended with %d", code)
	}
	alone(t, id)
}

// The state of a job tells the error that it failed by, and not that of an
// attempt which is over as if it were the present one's.
func TestStatusTellsErrors(t *testing.T) {
	p := newPlace(t)
	write(t, filepath.Join(p.dir, "bad.py"), "import sys\nprint('\\033[32mon the way\\033[0m')\n{}['lr']\n")
	if _, errs, code := p.call("run", "--local", "--worker", "1", "--restarts", "0", "--name", "bad", "--files", "bad.py", "--", "python3", "bad.py"); code != client.ExitFailed {
		t.Errorf("run ended with %d: %s", code, errs)
	}
	text, _, _ := p.call("status", "bad")
	contains(t, text, "KeyError: 'lr'", "| on the way", "yarn-submit logs local-")

	id := p.detached("--worker", "1", "--", "sleep", "1000")
	if err := syscall.Kill(int(p.status(id).Tasks[0].Pid), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.until(id, "the next attempt", func(s *proto.JobStatus) bool {
		return s.Tasks[0].Attempt == 1 && s.Tasks[0].State == proto.TaskState_TASK_STATE_RUNNING
	})
	text, _, _ = p.call("status", id)
	contains(t, text, "attempt 0: killed by SIGKILL")
}

// An incident tells the exception by which a task was lost, also once the job goes on.
func TestIncidentsTellTheException(t *testing.T) {
	p := newPlace(t)
	write(t, filepath.Join(p.dir, "once.py"), "import os\nprint('step 1', flush=True)\nif os.environ['HOLDFAST_ATTEMPT'] == '0': {}['lr']\n")
	if out, errs, code := p.call("run", "--local", "--worker", "1", "--restarts", "1", "--name", "once", "--files", "once.py", "--", "python3", "once.py"); code != 0 {
		t.Fatalf("run ended with %d: %s%s", code, out, errs)
	}
	if i := p.status("once").Incidents; len(i) != 1 || i[0].Task != "worker-0" || i[0].Evidence != "KeyError: 'lr'" {
		t.Errorf("incidents: %v", i)
	}
}

func TestCommandThatIsNotThere(t *testing.T) {
	p := newPlace(t)
	out, _, code := p.call("run", "--local", "--worker", "1", "--", "no-such-program")
	if code != client.ExitFailed {
		t.Errorf("run ended with %d", code)
	}
	contains(t, out, "no-such-program")
	if strings.Contains(out, "attempt 1") {
		t.Errorf("it was tried again:\n%s", out)
	}
}

func TestKill(t *testing.T) {
	p := newPlace(t)
	id := p.detached("--worker", "2", "--name", "to-be-killed", "--", "sleep", "1000")
	out, errs, code := p.call("kill", "to-be-killed")
	if code != 0 || !strings.Contains(out, id+": killed") {
		t.Errorf("kill ended with %d: %s%s", code, out, errs)
	}
	if s := p.status(id); s.State != proto.JobState_JOB_STATE_KILLED {
		t.Errorf("the state is %s", s.State)
	}
	alone(t, id)
}

// A name means the job that runs, and none where several do.
func TestJobsOfOneName(t *testing.T) {
	p := newPlace(t)
	running := p.detached("--worker", "1", "--name", "dup", "--", "sleep", "1000")
	if out, errs, code := p.call("run", "--local", "--worker", "1", "--name", "dup", "--", "true"); code != 0 {
		t.Fatalf("run ended with %d: %s%s", code, out, errs)
	}
	if s := p.status("dup"); s.Id != running {
		t.Errorf("the job that is meant is %s (%s), want %s, which runs", s.Id, s.State, running)
	}
	second := p.detached("--worker", "1", "--name", "dup", "--", "sleep", "1000")
	for _, args := range [][]string{{"kill", "dup"}, {"status", "dup"}, {"logs", "dup"}, {"ckpt", "ls", "dup"}} {
		out, errs, code := p.call(args...)
		if code != client.ExitUsage {
			t.Errorf("%v with two that run ended with %d: %s%s", args, code, out, errs)
		}
		contains(t, errs, running, second)
	}
	if out, errs, code := p.call("kill", second); code != 0 || !strings.Contains(out, second+": killed") {
		t.Errorf("kill by id ended with %d: %s%s", code, out, errs)
	}
	if out, errs, code := p.call("kill", "dup"); code != 0 || !strings.Contains(out, running+": killed") {
		t.Errorf("kill of the older one, which alone runs, ended with %d: %s%s", code, out, errs)
	}
	alone(t, running)
	alone(t, second)
}

// A job whose application master is killed is over, and says so.
func TestMasterKilled(t *testing.T) {
	p := newPlace(t)
	id := p.detached("--worker", "1", "--", "sleep", "1000")
	pid := masterOf(t, p, id).PID
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s := p.until(id, "the end", func(s *proto.JobStatus) bool { return s.State.Done() })
	if s.State != proto.JobState_JOB_STATE_FAILED {
		t.Errorf("the state is %s", s.State)
	}
	contains(t, s.Why, "application master", "am.log")
	alone(t, id)
}

// An application master that does not answer is ended by force.
func TestKillOfAStoppedMaster(t *testing.T) {
	t.Parallel() // the kill waits for an answer
	p := newPlace(t)
	id := p.detached("--worker", "1", "--", "sleep", "1000")
	pid := masterOf(t, p, id).PID
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := p.call("kill", id); code != 0 {
		t.Errorf("kill ended with %d: %s%s", code, out, errs)
	}
	alone(t, id)
}

// Without a terminal an interrupt kills the job; when it has ended, run has.
func TestInterrupt(t *testing.T) {
	p := newPlace(t)
	cmd := p.command("run", "--local", "--worker", "1", "--name", "interrupted", "--", "sleep", "1000")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	id := ""
	for deadline := time.Now().Add(limit); id == "" && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if list, err := filepath.Glob(filepath.Join(p.home, "jobs", "local-*", proto.AddressFile)); err == nil && len(list) == 1 {
			id = filepath.Base(filepath.Dir(list[0]))
		}
	}
	p.until(id, "the task to run", func(s *proto.JobStatus) bool { return s.State == proto.JobState_JOB_STATE_RUNNING })
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != client.ExitInterrupted {
		t.Errorf("run ended with %d:\n%s", code, out.String())
	}
	contains(t, out.String(), "killing "+id, "killed")
	alone(t, id)
}

// Who only looks on at a job does nothing to it by an interrupt.
func TestInterruptOfAnOnlooker(t *testing.T) {
	p := newPlace(t)
	id := p.detached("--worker", "1", "--", "sleep", "1000")
	cmd := p.command("status", id, "--follow")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil { // it follows
		t.Errorf("it has shown %q: %v", line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != client.ExitInterrupted {
		t.Errorf("it ended with %d", code)
	}
	if s := p.status(id); s.State != proto.JobState_JOB_STATE_RUNNING {
		t.Errorf("the job is %s", s.State)
	}
}

func TestUsage(t *testing.T) {
	p := newPlace(t)
	if err := os.Mkdir(filepath.Join(p.dir, "saved"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{"frobnicate"}, `"frobnicate" is not a command`, client.ExitUsage},
		{[]string{"stauts", "x"}, "did you mean status?", client.ExitUsage},
		{[]string{"rnu", "--local", "--", "true"}, "did you mean run?", client.ExitUsage},
		{[]string{"run", "--local", "job.yaml"}, "is run with -f job.yaml\n", client.ExitUsage},
		{[]string{"help", "stauts"}, "did you mean status?", client.ExitUsage},
		{[]string{"ckpt", "ls", "saved"}, "for the directory of that name in this one, write ./saved", client.ExitUsage},
		{[]string{"submit", "--help"}, `"submit" is not a command`, client.ExitUsage},
		{[]string{"ckpt", "l", "x"}, `"l" is not a command of yarn-submit ckpt: see yarn-submit ckpt --help; did you mean ls?`, client.ExitUsage},
		{[]string{"list", "ux-30"}, `"ux-30" is one too many: write yarn-submit list` + "\n", client.ExitUsage},
		{[]string{"run", "--local", "--wroker", "1", "--", "true"}, "no flag --wroker: see yarn-submit run --help; did you mean --worker?\n", client.ExitUsage},
		{[]string{"run", "--local", "--worker", "two", "--", "true"}, "--worker two: write a whole number; see yarn-submit run --help\n", client.ExitUsage},
		{[]string{"run", "--local", "--start-limit", "10", "--", "true"}, "--start-limit 10: write a length of time", client.ExitUsage},
		{[]string{"logs", "x", "-z"}, "-z: see yarn-submit logs --help", client.ExitUsage},
		{[]string{"run", "--local", "--", "true"}, "--worker", client.ExitUsage},
		{[]string{"run", "--local", "--worker", "1", "--files", "none.py", "--", "true"}, "none.py", client.ExitUsage},
		{[]string{"run", "--local", "--worker", "1", "--", "python3", "-u", "none.py"}, "no script none.py", client.ExitUsage},
		{[]string{"run", "--local", "--worker", "1", "--", "/none/x.sh"}, "no script /none/x.sh", client.ExitUsage},
		{[]string{"run", "--local", "--worker", "1", "--", "python3 hello.py"}, "leave out the quotes", client.ExitUsage},
		{[]string{"run", "--worker", "1", "--", "true"}, "HADOOP_CONF_DIR", client.ExitUsage},
		{[]string{"run", "--worker", "1", "--output", "xml", "--", "true"}, "--output xml", client.ExitUsage},
		{[]string{"run", "--local", "--worker", "1", "--checkpoint", "x=/proc/none", "--", "true"}, "/proc/none", client.ExitFailed},
		{[]string{"status"}, "there is no job on this machine", client.ExitUsage},
		{[]string{"status", "a", "b"}, "status [JOB]", client.ExitUsage},
		{[]string{"status", "nobody"}, `no job "nobody"`, client.ExitUsage},
		{[]string{"status", "application_x"}, "application_x", client.ExitUsage},
		{[]string{"status", "local-../../etc"}, "local-../../etc", client.ExitUsage},
		{[]string{"logs", "nobody", "--attempt", "-3"}, "--attempt", client.ExitUsage},
	} {
		out, errs, code := p.call(c.args...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%v ended with %d, want %d and %q:\n%s%s", c.args, code, c.code, c.want, out, errs)
		}
	}
	if list, _ := os.ReadDir(filepath.Join(p.home, "jobs")); len(list) != 0 {
		t.Errorf("jobs that were refused left %v", list)
	}
}

func TestDryRun(t *testing.T) {
	p := newPlace(t)
	write(t, filepath.Join(p.dir, "train.py"), "")
	write(t, filepath.Join(p.dir, "other.py"), "")
	out, errs, code := p.call("run", "--ps", "1", "--worker", "1", "--files", "train.py", "--dry-run", "--", "python", "train.py", "other.py")
	if code != 0 {
		t.Errorf("it ended with %d: %s", code, errs)
	}
	contains(t, errs, "HADOOP_CONF_DIR is not set") // so nobody was asked
	write(t, filepath.Join(p.dir, "printed.yaml"), out)
	out, errs2, code := p.call("run", "-f", "printed.yaml", "--dry-run", "--output", "json")
	spec := &proto.JobSpec{}
	if err := proto.FromJSON([]byte(out), spec); code != 0 || err != nil || len(spec.Roles) != 2 || spec.Framework != "tensorflow" || len(spec.Files) != 1 {
		t.Errorf("what was printed, read again, ended with %d (%v):\n%s%s", code, err, out, errs2)
	}
	contains(t, errs, "other.py", "--files other.py") // the tasks would not find it
	_, errs, code = p.call("run", "--worker", "1", "--dry-run", "--", "python", "train.py")
	if code != client.ExitUsage || !strings.Contains(errs, "the tasks do not get it: add --files train.py") {
		t.Errorf("a job without its script ended with %d: %s", code, errs)
	}
}

// TestRunTellsWhatItTakesAJobFor: a job that names no framework is told which one it gets, and
// what that has to say of its command.
func TestRunTellsWhatItTakesAJobFor(t *testing.T) {
	p := newPlace(t)
	write(t, filepath.Join(p.dir, "train.py"), "import jax\n")
	for _, c := range []struct{ command, says string }{
		{"torchrun --max-restarts=3 train.py", "the framework is taken to be pytorch, because the command runs torchrun; --framework names another one, or none"},
		{"torchrun --max-restarts=3 train.py", "--rdzv-backend=c10d --rdzv-endpoint={master_addr}:{master_port}"},
		{"python train.py", "the framework is taken to be jax, because train.py imports jax"},
	} {
		args := append([]string{"run", "--worker", "2", "--files", "train.py", "--dry-run", "--"}, strings.Fields(c.command)...)
		if _, errs, code := p.call(args...); code != 0 || strings.Count(errs, c.says) != 1 {
			t.Errorf("%s ended with %d and said:\n%s\nwant once: %s", c.command, code, errs, c.says)
		}
	}
	if _, errs, code := p.call("run", "--framework", "none", "--worker", "2", "--files", "train.py", "--dry-run", "--", "python", "train.py"); code != 0 || strings.Contains(errs, "taken to be") {
		t.Errorf("a job that names its framework ended with %d and said:\n%s", code, errs)
	}
}

func TestCheckpoints(t *testing.T) {
	p := newPlace(t)
	out, errs, code := p.call("run", "--local", "--worker", "1", "--name", "saver", "--checkpoint", "./logs=ck", "--", "sh", "-c",
		`for s in 5 10; do mkdir logs/step-$s; echo {} > logs/step-$s/ps-0.json; echo {} > logs/step-$s/ps-1.json; touch logs/step-$s/COMMITTED; done
mkdir logs/step-15; echo {} > logs/step-15/ps-0.json`)
	if code != 0 {
		t.Fatalf("run ended with %d:\n%s%s", code, out, errs)
	}
	for _, ref := range []string{"saver", "./ck", filepath.Join(p.dir, "ck"), "file://" + filepath.Join(p.dir, "ck")} {
		out, errs, code := p.call("ckpt", "ls", ref, "--output", "json")
		var listed inspect.Listing
		err := json.Unmarshal([]byte(out), &listed)
		list := listed.Checkpoints
		if err != nil || code != 0 || len(list) != 3 {
			t.Fatalf("ls %s ended with %d (%v):\n%s%s", ref, code, err, out, errs)
		}
		if c := list[1]; *c.Step != 10 || c.State != "sealed" || !c.Complete || c.Name != "step-10" || c.Shards != 2 {
			t.Errorf("the second is %+v", c)
		}
		if c := list[2]; *c.Step != 15 || c.Complete || c.Why == "" {
			t.Errorf("the third is %+v", c)
		}
	}
	text, _, _ := p.call("ckpt", "ls", "saver")
	contains(t, text, filepath.Join(p.dir, "ck"), "STEP", "step-10", "sealed")
	text, _, _ = p.call("ckpt", "show", "saver") // the newest that is complete
	contains(t, text, "step-10/ps-0.json", "step-10/ps-1.json", "step-10/COMMITTED")
	text, _, _ = p.call("ckpt", "show", "saver", "5")
	contains(t, text, "step-5/ps-0.json")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"ckpt", "show", "saver", "7"}, "no checkpoint 7"},
		{[]string{"ckpt", "ls", "./none"}, "none"},
		{[]string{"ckpt", "ls", "nobody"}, `no job "nobody"`},
		{[]string{"ckpt", "ls", "s3://b/x"}, "s3://b/x"},
		{[]string{"ckpt", "frobnicate"}, "frobnicate"},
	} {
		if _, errs, code := p.call(c.args...); code != client.ExitUsage || !strings.Contains(errs, c.want) {
			t.Errorf("%v ended with %d: %s", c.args, code, errs)
		}
	}
}

// Errors are JSON, too, where JSON is asked for.
func TestErrorsAsJSON(t *testing.T) {
	p := newPlace(t)
	for _, args := range [][]string{{"status", "none", "-o", "json"}, {"logs", "--output=json", "none"}, {"list", "--output", "json", "--stat", "x"}} {
		out, errs, code := p.call(args...)
		var answer struct {
			Version int `json:"json_version"`
			Error   proto.Failure
		}
		if err := json.Unmarshal([]byte(errs), &answer); err != nil || code != client.ExitUsage || out != "" {
			t.Errorf("%v ended with %d (%v): %s%s", args, code, err, out, errs)
		} else if e := answer.Error; answer.Version != proto.JSONVersion || e.Code != code || e.Kind != "usage" || e.Message == "" {
			t.Errorf("%v: %+v", args, answer)
		}
	}
}

func TestDoctorAndVersion(t *testing.T) {
	p := newPlace(t)
	out, _, code := p.call("doctor", "--output", "json")
	var list struct{ Findings []check.Finding }
	if err := json.Unmarshal([]byte(out), &list); code != 0 || err != nil || len(list.Findings) < 4 {
		t.Errorf("doctor ended with %d (%v):\n%s", code, err, out)
	}
	if out, _, code := p.call("version"); code != 0 || !strings.HasPrefix(out, "yarn-submit ") {
		t.Errorf("version ended with %d: %s", code, out)
	}
}

// A cluster that is not there is told within seconds, and with its own exit code.
func TestClusterThatIsNotThere(t *testing.T) {
	p := newPlace(t)
	conf := noCluster(t)
	for _, args := range [][]string{{"run", "--worker", "1", "--", "true"}, {"run", "--dry-run", "--worker", "1", "--", "true"}, {"list"}, {"doctor"}, {"status", "application_1_0001"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel() // each tries for some seconds
			cmd := p.command(args...)
			cmd.Env = append(cmd.Env, "HADOOP_CONF_DIR="+conf)
			out, err := runFor(cmd, limit)
			if cmd.ProcessState.ExitCode() != client.ExitUnreachable {
				t.Errorf("%v ended with %v:\n%s", args, err, out)
			}
			contains(t, out, "127.0.0.1:1", "HADOOP_CONF_DIR")
		})
	}
}

// TestACompletionEnds: a shell that completes a word is not kept waiting by a service that says nothing.
func TestACompletionEnds(t *testing.T) {
	p := newPlace(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, and nobody answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	at := silent.Addr().String()
	conf := t.TempDir()
	write(t, filepath.Join(conf, "core-site.xml"), `<configuration><property><name>fs.defaultFS</name><value>hdfs://`+at+`</value></property></configuration>`)
	write(t, filepath.Join(conf, "yarn-site.xml"), `<configuration><property><name>yarn.resourcemanager.address</name><value>`+at+`</value></property></configuration>`)
	for name, words := range map[string][]string{
		"steps": {"ckpt", "show", "hdfs://" + at + "/ck"}, "steps of a job": {"ckpt", "show", "mnist"}, "jobs": {"status"}, "tasks": {"describe", "mnist"}, "queues": {"run", "--queue"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits for some seconds
			cmd := p.command(append(append([]string{"__complete"}, words...), "")...)
			cmd.Env = append(cmd.Env, "HADOOP_CONF_DIR="+conf)
			begin := time.Now()
			if out, err := runFor(cmd, limit); err != nil || time.Since(begin) > 10*time.Second {
				t.Errorf("it ended after %v with %v: %s", time.Since(begin), err, out)
			}
		})
	}
}

// noCluster returns a Hadoop configuration of a cluster that does not answer.
func noCluster(t *testing.T) string {
	t.Helper()
	conf := t.TempDir()
	write(t, filepath.Join(conf, "core-site.xml"), `<configuration><property><name>fs.defaultFS</name><value>hdfs://127.0.0.1:1</value></property></configuration>`)
	write(t, filepath.Join(conf, "yarn-site.xml"), `<configuration><property><name>yarn.resourcemanager.address</name><value>127.0.0.1:1</value></property></configuration>`)
	return conf
}

func runFor(cmd *exec.Cmd, d time.Duration) (string, error) {
	timer := time.AfterFunc(d, func() {
		if cmd.Process != nil {
			_ = cmd.Process.Kill()
		}
	})
	defer timer.Stop()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func masterOf(t *testing.T, p place, id string) proto.Address {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(p.home, "jobs", id, proto.AddressFile))
	if err != nil {
		t.Fatal(err)
	}
	where, err := proto.UnmarshalAddress(b)
	if err != nil || where.PID == 0 {
		t.Fatalf("%s is %s (%v)", proto.AddressFile, b, err)
	}
	return where
}

// alone waits until no process of the job is left.
func alone(t *testing.T, id string) {
	t.Helper()
	if id == "" {
		t.Fatal("there is no job")
	}
	for deadline := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
		left := processesOf(id)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("processes of %s are left: %v", id, left)
			return
		}
	}
}

// processesOf finds processes by what every process of a job has in its environment.
func processesOf(id string) []string {
	var left []string
	list, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, name := range list {
		b, err := os.ReadFile(name)
		if err == nil && bytes.Contains(b, []byte("HOLDFAST_JOB="+id+"\x00")) {
			cmdline, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
			left = append(left, filepath.Base(filepath.Dir(name))+" "+strings.ReplaceAll(string(cmdline), "\x00", " "))
		}
	}
	return left
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestCheckpointsAreKeptInOrder: verify, get, prune and rollback, on what
// TensorFlow wrote.
func TestCheckpointsAreKeptInOrder(t *testing.T) {
	p := newPlace(t)
	files, err := filepath.Glob("../../hdfsckpt/tfbundle/testdata/sharded.ckpt-1200.*")
	if err != nil || len(files) < 5 {
		t.Fatalf("no checkpoint to try with: %v", err)
	}
	for _, step := range []string{"1200", "1300", "1400", "1500"} {
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(p.dir, "ck", strings.ReplaceAll(filepath.Base(f), "1200", step)), string(b))
		}
	}
	state := filepath.Join(p.dir, "ck", "checkpoint")
	write(t, state, "model_checkpoint_path: \"sharded.ckpt-1500\"\n")

	if out, errs, code := p.call("ckpt", "verify", "./ck"); code != 0 || !strings.Contains(out, "1500") {
		t.Errorf("verify ended with %d: %s%s", code, out, errs)
	}
	shard := filepath.Join(p.dir, "ck", "sharded.ckpt-1300.data-00001-of-00004")
	b, err := os.ReadFile(shard)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	write(t, shard, string(b))
	out, _, code := p.call("ckpt", "verify", "./ck", "1300")
	if code != client.ExitFailed {
		t.Errorf("verify of a damaged checkpoint ended with %d", code)
	}
	contains(t, out, "sharded.ckpt-1300.data-00001-of-00004", "tensor")

	for _, args := range [][]string{{"rollback", "./ck", "1400"}, {"prune", "./ck", "--keep", "1"}, {"prune", "./ck", "--keep", "1", "--output", "json"}} {
		out, errs, code := p.call(append([]string{"ckpt"}, args...)...)
		if code != client.ExitUsage || !strings.Contains(errs, "--yes") || !strings.Contains(out, "1400") {
			t.Errorf("%v that nobody could be asked about ended with %d: %s%s", args, code, out, errs)
		}
	}
	if text, _ := os.ReadFile(state); !strings.Contains(string(text), "1500") {
		t.Errorf("rollback did not ask: %s", text)
	}
	if _, errs, code := p.call("ckpt", "rollback", "./ck", "1400", "--yes"); code != 0 {
		t.Errorf("rollback ended with %d: %s", code, errs)
	}
	if text, _ := os.ReadFile(state); !strings.Contains(string(text), `model_checkpoint_path: "sharded.ckpt-1400"`) {
		t.Errorf("after the rollback: %s", text)
	}
	if _, errs, code := p.call("ckpt", "rollback", "./ck", "17", "--yes"); code != client.ExitUsage || !strings.Contains(errs, "sharded.ckpt-1200") {
		t.Errorf("rollback to what is not there ended with %d: %s", code, errs)
	}

	if _, errs, code := p.call("ckpt", "get", "./ck", "1200", "copy"); code != 0 {
		t.Errorf("get ended with %d: %s", code, errs)
	}
	if out, errs, code := p.call("ckpt", "verify", "./copy"); code != 0 || !strings.Contains(out, "1200") {
		t.Errorf("verify of the copy ended with %d: %s%s", code, out, errs)
	}

	if _, _, code := p.call("ckpt", "prune", "./ck"); code != client.ExitUsage {
		t.Errorf("prune without --keep ended with %d", code)
	}
	if out, errs, code := p.call("ckpt", "prune", "./ck", "--keep", "1", "--yes"); code != 0 {
		t.Errorf("prune ended with %d: %s%s", code, out, errs)
	}
	if out, errs, code := p.call("ckpt", "prune", "./ck", "--keep", "1"); code != 0 {
		t.Errorf("prune with nothing to remove, and so to ask, ended with %d: %s%s", code, out, errs)
	}
	listed, _, _ := p.call("ckpt", "ls", "./ck", "--output", "json")
	var list inspect.Listing
	if err := json.Unmarshal([]byte(listed), &list); err != nil {
		t.Fatal(err)
	}
	var steps []int64
	for _, c := range list.Checkpoints {
		steps = append(steps, *c.Step)
	}
	if want := []int64{1400, 1500}; !slices.Equal(steps, want) { // the current one, and the newest
		t.Errorf("after the prune there are %v, want %v", steps, want)
	}
}

// TestTensorsAreShown compares cat with what TensorFlow itself read back.
func TestTensorsAreShown(t *testing.T) {
	p := newPlace(t)
	for _, name := range []string{"dtypes.ckpt-7", "sharded.ckpt-1200"} {
		files, err := filepath.Glob("../../hdfsckpt/tfbundle/testdata/" + name + ".[id]*")
		if err != nil || len(files) < 2 {
			t.Fatalf("no checkpoint to try with: %v", err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(p.dir, "ck", filepath.Base(f)), string(b))
		}
	}
	text, err := os.ReadFile("../../hdfsckpt/tfbundle/testdata/dtypes.ckpt-7.json")
	if err != nil {
		t.Fatal(err)
	}
	var truth map[string]struct {
		DType  string
		Shape  []int64
		Values []any
	}
	if err := json.Unmarshal(text, &truth); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"deep/er/name_1", "f/float64", "i/int32", "i/int64", "bool"} {
		out, errs, code := p.call("ckpt", "cat", "./ck", "7", name, "--values", "--output", "json")
		var got struct {
			DType    string
			Shape    []int64
			Elements int
			Values   []any
		}
		d := json.NewDecoder(strings.NewReader(out))
		d.UseNumber()
		if err := d.Decode(&got); err != nil || code != 0 {
			t.Fatalf("cat %s ended with %d (%v): %s%s", name, code, err, out, errs)
		}
		want := truth[name]
		if got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) || len(got.Values) != len(want.Values) {
			t.Errorf("%s is %s %v with %d values, want %s %v with %d", name, got.DType, got.Shape, len(got.Values), want.DType, want.Shape, len(want.Values))
			continue
		}
		for i, v := range got.Values {
			g, gerr := strconv.ParseFloat(fmt.Sprint(v), 64)
			w, werr := strconv.ParseFloat(fmt.Sprint(want.Values[i]), 64)
			if want.DType == "float32" { // printed with as many digits as it needs
				g, w = float64(float32(g)), float64(float32(w))
			}
			if gerr != nil || werr != nil || g != w && !(math.IsNaN(g) && math.IsNaN(w)) {
				t.Errorf("%s[%d] is %v, want %v", name, i, v, want.Values[i])
			}
		}
	}
	out, _, _ := p.call("ckpt", "cat", "./ck", "7", "deep/er/name_1")
	contains(t, out, "15 elements", "mean", "#")
	if _, errs, code := p.call("ckpt", "cat", "./ck", "7", "none"); code != client.ExitUsage || !strings.Contains(errs, "no tensor none") {
		t.Errorf("cat of what is not there ended with %d: %s", code, errs)
	}
	out, _, _ = p.call("ckpt", "diff", "./ck", "7", "7")
	contains(t, out, "the same")
	out, _, _ = p.call("ckpt", "diff", "./ck", "7", "1200")
	contains(t, out, "removed", "deep/er/name_1", "added")
}
