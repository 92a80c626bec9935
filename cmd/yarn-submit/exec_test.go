package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"holdfast/client"
	"holdfast/client/jobs"
	"holdfast/proto"
)

// A command runs beside a task as the task does, and the event log says so.
func TestExec(t *testing.T) {
	p := newPlace(t)
	id := p.detached("--worker", "1", "--env", "COLOUR=blue", "--checkpoint", "./out=ck", "--", "sh", "-c", "echo x > here; exec sleep 1000")
	out, errs, code := p.call("exec", id, "worker-0", "--", "sh", "-c", "cat here; echo $COLOUR; echo y > out/file; cat out/file; exit 7")
	if code != 7 || out != "x\nblue\ny\n" {
		t.Errorf("exec ended with %d: %q; %s", code, out, errs)
	}
	if b, err := os.ReadFile(p.dir + "/ck/file"); err != nil || string(b) != "y\n" {
		t.Errorf("what it saved is %q (%v)", b, err)
	}
	s := p.status(id)
	noted := false
	for _, e := range s.Events {
		noted = noted || e.Task == "worker-0" && strings.Contains(e.Text, "runs a command in its container") && strings.Contains(e.Text, "exit 7")
	}
	if !noted {
		t.Errorf("the event log does not say that a command was run: %v", s.Events)
	}
	if s.Tasks[0].Attempt != 0 || s.Tasks[0].State != proto.TaskState_TASK_STATE_RUNNING {
		t.Errorf("the task is %v", s.Tasks[0])
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"exec", id, "worker-0", "--", "no-such-program"}, client.ExitFailed, "no-such-program"},
		{[]string{"exec", id, "worker-7", "--", "true"}, client.ExitUsage, "worker-0"},
		{[]string{"exec", id, "worker-0"}, client.ExitUsage, "-- COMMAND"},
		{[]string{"exec", id, "worker-0", "--", "sh", "-c", "kill -9 $$"}, client.ExitFailed, "signal"},
		{[]string{"stacks", id, "worker-0"}, client.ExitFailed, "no stacks of worker-0: only Python started by yarn-submit, and Java, can print them"},
	} {
		if out, errs, code := p.call(c.args...); code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%v ended with %d: %s%s", c.args, code, out, errs)
		}
	}
	// Ctrl-C ends the command, and with it what it has started.
	x := inTerminal(t, p.command("exec", id, "worker-0", "--", "sh", "-c", "echo $$; exec sleep 1000"))
	x.See("\n", 1)
	pid := strings.TrimSpace(x.Shown())
	x.Press("\x03")
	if code := x.Code(); code != client.ExitInterrupted {
		t.Errorf("exec ended with %d", code)
	}
	p.until(id, "the end of the command", func(*proto.JobStatus) bool {
		_, err := os.Stat("/proc/" + pid)
		return os.IsNotExist(err)
	})
	if _, errs, code := p.call("kill", id); code != 0 {
		t.Errorf("kill ended with %d: %s", code, errs)
	}
	if _, errs, code := p.call("exec", id, "worker-0", "--", "true"); code == 0 {
		t.Errorf("exec in a job that has ended succeeded: %s", errs)
	}
	alone(t, id)
}

// The stacks of a Python program that hangs name the function that it stands in.
func TestStacks(t *testing.T) {
	p := newPlace(t)
	write(t, p.dir+"/hangs.py", "import time\ndef stuck():\n    time.sleep(1000)\nprint('begins', flush=True)\nstuck()\n")
	id := p.detached("--worker", "1", "--files", "hangs.py", "--framework", "tensorflow", "--no-warm", "--", "python3", "hangs.py")
	p.until(id, "the program to run", func(*proto.JobStatus) bool {
		out, _, _ := p.call("logs", id)
		return strings.Contains(out, "begins")
	})
	out, errs, code := p.call("stacks", id)
	if code != 0 {
		t.Errorf("stacks ended with %d: %s", code, errs)
	}
	contains(t, out, "==> worker-0 <==", "most recent call first", "in stuck")
	out, _, _ = p.call("stacks", id, "worker-0", "-o", "json")
	var answer struct{ Tasks []jobs.TaskStacks }
	if err := json.Unmarshal([]byte(out), &answer); err != nil || len(answer.Tasks) != 1 || !strings.Contains(answer.Tasks[0].Stacks, "in stuck") {
		t.Errorf("stacks as JSON: %s (%v)", out, err)
	}
	if s := p.status(id); s.Tasks[0].Attempt != 0 || s.Tasks[0].State != proto.TaskState_TASK_STATE_RUNNING {
		t.Errorf("the task is %v", s.Tasks[0])
	}
}
