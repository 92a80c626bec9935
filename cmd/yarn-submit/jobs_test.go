package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/client"
	"holdfast/client/jobs"
	"holdfast/internal/proc"
	"holdfast/proto"
)

// A job is waited for, found by how its name begins, described, run again with other flags,
// and removed.
func TestDaysOfAJob(t *testing.T) {
	p := newPlace(t)
	write(t, filepath.Join(p.dir, "say.sh"), "echo begins; echo step 7; [ $1 = 0 ] || exit 3\n")
	out, errs, code := p.call("run", "--local", "--worker", "1", "--name", "talker", "--files", "say.sh", "--detach", "--", "sh", "say.sh", "0")
	id := strings.TrimSpace(out)
	if code != 0 || !strings.HasPrefix(id, "local-") {
		t.Fatalf("run ended with %d: %s%s", code, out, errs)
	}
	contains(t, errs, "yarn-submit status "+id, "yarn-submit logs "+id, "yarn-submit kill "+id)
	if out, errs, code := p.call("wait", "talk"); code != 0 || out != id+" succeeded\n" {
		t.Errorf("wait ended with %d: %s%s", code, out, errs)
	}
	status, _, _ := p.call("status") // the newest
	contains(t, status, id+"  talker  succeeded")
	out, _, code = p.call("describe", id, "worker-0")
	if code != 0 {
		t.Errorf("describe ended with %d", code)
	}
	contains(t, out, "worker-0 of "+id, "attempt 0 ended with exit code 0", "yarn-submit logs "+id+" worker-0")
	out, _, _ = p.call("describe", id, "worker-0", "-o", "json")
	var described struct {
		Task struct {
			State string
			Step  int
		}
		Incidents, Events []any
	}
	if err := json.Unmarshal([]byte(out), &described); err != nil || described.Task.State != "succeeded" || described.Incidents == nil || len(described.Events) == 0 {
		t.Errorf("described is %s (%v)", out, err)
	}
	for args, want := range map[string]string{"--tail 1": "step 7\n", "--grep ^begin": "begins\n", "--grep e --tail 1": "step 7\n"} {
		out, errs, code := p.call(append([]string{"logs", id, "worker-0", "--attempt", "0"}, strings.Fields(args)...)...)
		if code != 0 || out != want {
			t.Errorf("logs %s ended with %d: %q, want %q; %s", args, code, out, want, errs)
		}
	}
	if out, _, code := p.call("logs", id, "am"); code != 0 || !strings.Contains(out, "==> am, attempt 0 <==") || !strings.Contains(out, "prepared: ") {
		t.Errorf("the master's log ended with %d: %s", code, out)
	}
	if out, _, code := p.call("logs", id, "worker", "--agent"); code != 0 || !strings.Contains(out, "exited with 0") {
		t.Errorf("the agent's log ended with %d: %s", code, out)
	}

	out, errs, code = p.call("rerun", id, "--restarts", "0", "--env", "X=y", "--", "sh", "say.sh", "1")
	if code != client.ExitFailed {
		t.Errorf("rerun ended with %d: %s%s", code, out, errs)
	}
	again := strings.Fields(strings.TrimPrefix(out, "started "))[0]
	contains(t, out, "(talker)", "--restarts 0")
	if s := p.status(again); s.Name != "talker" || s.Tasks[0].GetExitCode() != 3 {
		t.Errorf("the job that was run again is %v", s)
	}
	if _, errs, code := p.call("wait", again); code != client.ExitFailed {
		t.Errorf("wait for a job that failed ended with %d: %s", code, errs)
	}
	listed, _, _ := p.call("list", "--state", "failed", "--name", "talk*", "--output", "json")
	var list proto.JobList
	if err := proto.FromJSON([]byte(listed), &list); err != nil || len(list.Jobs) != 1 || list.Jobs[0].Id != again {
		t.Errorf("listed are %s (%v)", listed, err)
	}
	if out, errs, _ := p.call("list", "--limit", "1"); !strings.Contains(out, again) || strings.Contains(out, id) || !strings.Contains(errs, "1 older") {
		t.Errorf("listed with a limit are %s%s", out, errs)
	}
	if _, errs, code := p.call("list", "--state", "fialed"); code != client.ExitUsage || !strings.Contains(errs, "did you mean failed?") {
		t.Errorf("list of a state that is none ended with %d: %s", code, errs)
	}

	running := p.detached("--worker", "1", "--", "sleep", "1000")
	if _, errs, code := p.call("rm", running); code != client.ExitUsage || !strings.Contains(errs, "yarn-submit kill") {
		t.Errorf("rm of a job that runs ended with %d: %s", code, errs)
	}
	if _, errs, code := p.call("wait", running, "--timeout", "100ms"); code != client.ExitFailed || !strings.Contains(errs, "has not ended within") {
		t.Errorf("wait with a timeout ended with %d: %s", code, errs)
	}
	if out, errs, code := p.call("rm", id, again); code != 0 {
		t.Errorf("rm ended with %d: %s%s", code, out, errs)
	}
	for _, gone := range []string{id, again} {
		if _, err := os.Stat(filepath.Join(p.home, "jobs", gone)); !os.IsNotExist(err) {
			t.Errorf("after rm, %s: %v", gone, err)
		}
	}
	if out, errs, code := p.call("gc"); code != 0 || !strings.Contains(out, "nothing to remove") {
		t.Errorf("gc ended with %d: %s%s", code, out, errs)
	}
	gcRemoves(t, p, running)

	for _, c := range []struct{ args, want []string }{
		{[]string{"status", ""}, []string{running}},
		{[]string{"logs", running, ""}, []string{"worker", "worker-0", "am"}},
		{[]string{"describe", running, "w"}, []string{"worker-0"}},
		{[]string{"list", "--state", ""}, []string{"waiting", "killed"}},
	} {
		out, _, _ := p.call(append([]string{"__complete"}, c.args...)...)
		for _, w := range c.want {
			if !strings.Contains("\n"+out, "\n"+w) {
				t.Errorf("completion of %q has no %s: %q", c.args, w, out)
			}
		}
	}
}

// run --logs shows what tasks write; in a terminal it neither clears the screen nor moves
// the cursor, and a progress bar is shown once.
func TestOutputIsShown(t *testing.T) {
	p := newPlace(t)
	out, errs, code := p.call("run", "--local", "--logs", "--worker", "2", "--", "sh", "-c", "echo I am {task}")
	if code != 0 {
		t.Fatalf("run ended with %d: %s", code, errs)
	}
	contains(t, out, "[worker-0] I am worker-0\n", "[worker-1] I am worker-1\n")

	p.call("run", "--local", "--worker", "1", "--name", "bar", "--", "sh", "-c", `printf '1%%\r50%%\r100%%\n\033[2Jcleared\n'`)
	x := inTerminal(t, p.command("logs", "bar", "--follow"))
	x.See("100%", 1)
	x.See("cleared", 1)
	if code := x.Code(); code != 0 {
		t.Errorf("logs ended with %d", code)
	}
	if text := x.Shown(); strings.Contains(text, "50%") || strings.Contains(text, "\x1b[2J") || !strings.Contains(text, "\x1b[36m[worker-0]\x1b[0m ") {
		t.Errorf("the terminal has shown %q", text)
	}
	plain := p.command("logs", "bar", "--follow")
	plain.Env = append(plain.Env, "NO_COLOR=1")
	x = inTerminal(t, plain)
	x.See("[worker-0] 100%", 1)
	x.Code()
	if text := x.Shown(); strings.Contains(text, "\x1b[3") {
		t.Errorf("with NO_COLOR the terminal has shown %q", text)
	}
}

// top shows a job on the whole terminal, a task's log, its losses, and leaves both alone.
func TestTop(t *testing.T) {
	p := newPlace(t)
	id := p.detached("--worker", "2", "--name", "busy", "--", "sh", "-c", "echo at work; exec sleep 1000")
	x := inTerminal(t, p.command("top", "busy"))
	x.See(id+"  busy", 1)
	x.See("worker 2/2", 1)
	x.Press("j")
	x.Press("l")
	x.See("at work", 1)
	x.Press("q")
	x.Press("i")
	x.See("was never lost", 1)
	x.Press("q")
	x.Press("q")
	if code := x.Code(); code != 0 {
		t.Errorf("top ended with %d", code)
	}
	x.See("\x1b[?1049l", 1)
	if s := p.status(id); s.State != proto.JobState_JOB_STATE_RUNNING {
		t.Errorf("after top the job is %s", s.State)
	}
	if _, errs, code := p.call("top", "busy"); code != client.ExitUsage || !strings.Contains(errs, "needs a terminal") {
		t.Errorf("top without a terminal ended with %d: %s", code, errs)
	}
}

// A job that is called like another that runs says so: its name is not enough for kill.
func TestRunNotesNamesakes(t *testing.T) {
	p := newPlace(t)
	run := []string{"run", "--local", "--detach", "--name", "twin", "--worker", "1", "--", "sleep", "1000"}
	first, errs, code := p.call(run...)
	if code != 0 || strings.Contains(errs, "note") {
		t.Errorf("the first run ended with %d: %s", code, errs)
	}
	second, errs, code := p.call(run...)
	first, second = strings.TrimSpace(first), strings.TrimSpace(second)
	if code != 0 || !strings.Contains(errs, `is called "twin" like another job that has not ended (`+first+")") {
		t.Errorf("the second run ended with %d: %s", code, errs)
	}
	if _, errs, code := p.call("kill", "twin"); code != client.ExitUsage || !strings.Contains(errs, first) || !strings.Contains(errs, second) {
		t.Errorf("kill by the name ended with %d: %s", code, errs)
	}
	for _, id := range []string{first, second} {
		if _, errs, code := p.call("kill", id); code != 0 {
			t.Errorf("kill ended with %d: %s", code, errs)
		}
	}
	alone(t, first)
	alone(t, second)
}

// endedState is the saved state of a job that has ended.
const endedState = `{"state":"JOB_STATE_SUCCEEDED"}`

// TestJobsOfAnotherMachine: of a job on this machine whose home directory is shared with others,
// only the one that it runs on knows whether it does. On another one it is not said to have failed,
// its directory stays, and kill says where to go.
func TestJobsOfAnotherMachine(t *testing.T) {
	p := newPlace(t)
	const id = "local-20260101-000000-abcd"
	dir := filepath.Join(p.home, "jobs", id)
	write(t, filepath.Join(dir, proto.StatusFile), `{"id":"`+id+`","state":"JOB_STATE_RUNNING","tasks":[{"task":"worker-0"}]}`)
	if err := jobs.RecordMaster(dir, os.Getpid()); err != nil {
		t.Fatal(err)
	}
	here, err := os.ReadFile(filepath.Join(dir, jobs.PIDFile))
	if err != nil {
		t.Fatal(err)
	}
	record := func(text string) {
		t.Helper()
		write(t, filepath.Join(dir, jobs.PIDFile), text)
		at := time.Now().Add(-100 * 24 * time.Hour)
		for _, name := range []string{proto.StatusFile, jobs.PIDFile, ""} {
			if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	there := proc.Place{Host: "elsewhere", Boot: "another", Namespace: "pid:[1]"}
	record(fmt.Sprintf("%d\n%s", os.Getpid(), there))
	if s := p.status(id); s.State != proto.JobState_JOB_STATE_RUNNING || !strings.Contains(s.Why, "it runs on the machine elsewhere") {
		t.Errorf("status says %s: %s", s.State, s.Why)
	}
	if out, errs, code := p.call("kill", id); code != client.ExitFailed || !strings.Contains(errs, "which runs on the machine elsewhere") {
		t.Errorf("kill ended with %d: %s%s", code, out, errs)
	}
	if out, errs, code := p.call("gc"); code != 0 || !strings.Contains(out, "nothing to remove") {
		t.Errorf("gc ended with %d: %s%s", code, out, errs)
	}
	if _, errs, code := p.call("run", "--local", "--worker", "1", "--", "true"); code != 0 || strings.Contains(errs, "removed") {
		t.Errorf("run ended with %d: %s", code, errs)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Fatal(err)
	}
	record(string(here))
	if s := p.status(id); s.State != proto.JobState_JOB_STATE_FAILED {
		t.Errorf("on the machine that it was lost on, status says %s: %s", s.State, s.Why)
	}
	if out, errs, code := p.call("gc"); code != 0 || !strings.Contains(out, id+": removed") {
		t.Errorf("gc ended with %d there: %s%s", code, out, errs)
	}
}

// gcRemoves: gc removes directories of jobs in which nothing has changed for so long, says first
// which, and leaves that of a job that runs.
func gcRemoves(t *testing.T, p place, running string) {
	t.Helper()
	for id, days := range map[string]int{"local-old": 40, "local-young": 20} {
		dir := filepath.Join(p.home, "jobs", id)
		write(t, filepath.Join(dir, proto.StatusFile), endedState)
		at := time.Now().Add(-time.Duration(days) * 24 * time.Hour)
		for _, name := range []string{proto.StatusFile, ""} {
			if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	there := func() (names []string) {
		list, err := os.ReadDir(filepath.Join(p.home, "jobs"))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			names = append(names, e.Name())
		}
		return names
	}
	before := there()
	if out, errs, code := p.call("gc", "--dry-run"); code != 0 || out != "local-old: would be removed (last changed 1 month ago)\n" || !slices.Equal(there(), before) {
		t.Errorf("gc --dry-run ended with %d: %s%s", code, out, errs)
	}
	var answer struct {
		Directories []struct {
			ID      string
			Removed bool
		}
	}
	callJSON(t, p, &answer, "gc")
	if want := []string{running, "local-young"}; len(answer.Directories) != 1 || answer.Directories[0].ID != "local-old" || !answer.Directories[0].Removed || !slices.Equal(there(), want) {
		t.Errorf("gc answers %+v; left are %v, want %v", answer, there(), want)
	}
	if out, errs, code := p.call("gc", "--older-than", "7"); code != 0 || out != "local-young: removed (last changed 2 weeks ago)\n" || !slices.Equal(there(), []string{running}) {
		t.Errorf("gc --older-than ended with %d: %s%s; left are %v", code, out, errs, there())
	}
	if _, errs, code := p.call("gc", "--older-than", "0"); code != client.ExitUsage {
		t.Errorf("gc of all jobs ended with %d: %s", code, errs)
	}
}

// TestRemoveWaitsForTheMaster: a job whose application master has not ended yet, although the job
// has, is removed once it has.
func TestRemoveWaitsForTheMaster(t *testing.T) {
	p := newPlace(t)
	out, errs, code := p.call("run", "--local", "--worker", "1", "--", "true")
	if code != 0 {
		t.Fatalf("run ended with %d: %s%s", code, out, errs)
	}
	id := strings.Fields(strings.TrimPrefix(out, "started "))[0]
	dir := filepath.Join(p.home, "jobs", id)
	// A process that looks like it, until it is let go.
	write(t, filepath.Join(p.dir, "am"), "read line\n")
	master := exec.Command("sh", append([]string{"am"}, jobs.MasterCommand(id)[1:]...)...)
	master.Dir = p.dir
	hold, err := master.StdinPipe()
	if err == nil {
		err = master.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Process.Kill(); _ = master.Wait() })
	if err := jobs.RecordMaster(dir, master.Process.Pid); err != nil {
		t.Fatal(err)
	}

	rm := p.command("rm", id)
	said, err := rm.StderrPipe()
	if err == nil {
		err = rm.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	if !lines.Scan() || !strings.Contains(lines.Text(), "waiting until its application master") {
		t.Errorf("rm says %q", lines.Text())
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("while the application master runs: %v", err)
	}
	hold.Close()
	_ = master.Wait() // it has read nothing
	if err := rm.Wait(); err != nil {
		t.Errorf("rm: %v", err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory of the removed job: %v", err)
	}
}
