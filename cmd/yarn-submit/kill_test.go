package main

import (
	"strings"
	"testing"

	"holdfast/client"
	"holdfast/proto"
)

// kill JOB TASK restarts a task that hangs: the others go on, nothing is charged, and the
// event log says who asked and where the program stood.
func TestKillOfATask(t *testing.T) {
	p := newPlace(t)
	write(t, p.dir+"/hangs.py", `import os, time
def stuck():
    time.sleep(1000)
if os.path.exists("was-here"):
    print("again", flush=True)
open("was-here", "w").close()
print("begins", flush=True)
stuck()
`)
	id := p.detached("--ps", "1", "--worker", "1", "--files", "hangs.py", "--framework", "tensorflow", "--no-warm", "--restarts", "0", "--", "python3", "hangs.py")
	p.until(id, "the programs to run", func(*proto.JobStatus) bool {
		out, _, _ := p.call("logs", id)
		return strings.Count(out, "begins") == 2
	})
	out, errs, code := p.call("kill", id, "worker-0")
	if code != 0 || out != "worker-0 of "+id+": attempt 0 is ended, and it is restarted\n" {
		t.Fatalf("kill ended with %d: %s%s", code, out, errs)
	}
	p.until(id, "the next attempt", func(*proto.JobStatus) bool {
		out, _, _ := p.call("logs", id, "worker-0")
		return strings.Contains(out, "again")
	})
	s := p.status(id)
	if a, b := s.Tasks[0], s.Tasks[1]; a.Attempt != 0 || b.Attempt != 1 || b.Failures != 0 || b.State != proto.TaskState_TASK_STATE_RUNNING {
		t.Errorf("ps-0 runs attempt %d; worker-0 is %v", a.Attempt, b)
	}
	var log strings.Builder
	for _, e := range s.Events {
		log.WriteString(e.Task + " " + e.Text + "\n")
	}
	contains(t, log.String(), "worker-0 root asks for its restart; attempt 0 is stopped", "worker-0 attempt 0: restart requested (by root; it stood at File", "in stuck")
	if _, errs, code := p.call("kill", id, "worker-7"); code != client.ExitUsage || !strings.Contains(errs, "worker-0") {
		t.Errorf("kill of a task that does not exist ended with %d: %s", code, errs)
	}
	if out, _, _ := p.call("__complete", "kill", id, ""); !strings.Contains(out, "worker-0\trunning") {
		t.Errorf("the shell completes\n%s", out)
	}
	if _, errs, code := p.call("kill", id); code != 0 {
		t.Errorf("kill ended with %d: %s", code, errs)
	}
	if _, errs, code := p.call("kill", id, "worker-0"); code == 0 || !strings.Contains(errs, id) {
		t.Errorf("kill of a task of a job that has ended ended with %d: %s", code, errs)
	}
	alone(t, id)
}

// A task that has ended is not started again.
func TestKillOfAnEndedTask(t *testing.T) {
	p := newPlace(t)
	id := p.detached("--worker", "2", "--", "sh", "-c", `if test "$HOLDFAST_TASK" = worker-0; then exec sleep 1000; fi; until test -e `+p.dir+`/go; do sleep 0.1; done`)
	write(t, p.dir+"/go", "")
	p.until(id, "the end of worker-1", func(s *proto.JobStatus) bool {
		return len(s.Tasks) == 2 && s.Tasks[1].State == proto.TaskState_TASK_STATE_SUCCEEDED
	})
	if _, errs, code := p.call("kill", id, "worker-1"); code != client.ExitFailed || !strings.Contains(errs, "worker-1 has ended") {
		t.Errorf("kill ended with %d: %s", code, errs)
	}
	if _, errs, code := p.call("kill", id); code != 0 {
		t.Errorf("kill ended with %d: %s", code, errs)
	}
	alone(t, id)
}
