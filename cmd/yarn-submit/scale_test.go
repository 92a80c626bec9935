package main

import (
	"strings"
	"testing"

	"holdfast/proto"
)

// scale has tasks of a job leave and come while the others work on.
func TestScale(t *testing.T) {
	p := newPlace(t)
	id := p.detached("--ps", "1", "--worker", "1..3", "--elastic-wait", "1m", "--", "sleep", "1000")
	states := func(worker1, worker2 proto.TaskState) func(*proto.JobStatus) bool {
		return func(s *proto.JobStatus) bool {
			return len(s.Tasks) == 4 && s.Tasks[1].Pid != 0 && s.Tasks[2].State == worker1 && s.Tasks[3].State == worker2
		}
	}
	const runs, parked = proto.TaskState_TASK_STATE_RUNNING, proto.TaskState_TASK_STATE_PARKED
	p.until(id, "all to run", states(runs, runs))
	if out, errs, code := p.call("scale", id, "worker=1"); code != 0 || out != id+": the role worker is to have 1 tasks\n" {
		t.Fatalf("scale ended with %d: %s%s", code, out, errs)
	}
	p.until(id, "two workers to leave", states(parked, parked))
	text, _, _ := p.call("status", id)
	contains(t, strings.Join(strings.Fields(text), " "), "worker-1 parked 0", "the others work without it: scaled down", "root wants 1 tasks of the role worker")
	if out, errs, code := p.call("scale", id, "worker=2", "-o", "json"); code != 0 || !strings.Contains(out, `"state": "running"`) {
		t.Errorf("scale ended with %d: %s%s", code, out, errs)
	}
	p.until(id, "a worker to come back", states(runs, parked))
	s := p.status(id)
	if a, b := s.Tasks[0], s.Tasks[1]; a.Attempt != 0 || b.Attempt != 0 || s.OpenIncidents() != 0 {
		t.Errorf("ps-0 runs attempt %d, worker-0 attempt %d; %d incidents are open", a.Attempt, b.Attempt, s.OpenIncidents())
	}
	for arg, want := range map[string]string{
		"worker=4":  "was submitted with 1 to 3 tasks",
		"ps=2":      "the others work on what the 1 tasks of the role ps hold",
		"evil=1":    "there is no role evil: its roles are ps, worker",
		"worker":    `"worker" is not ROLE=N`,
		"worker=-1": `"worker=-1" is not ROLE=N`,
	} {
		if _, errs, code := p.call("scale", id, arg); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("scale %s ended with %d: %s", arg, code, errs)
		}
	}
	if out, _, _ := p.call("__complete", "scale", id, ""); !strings.HasPrefix(out, "ps=\nworker=\n") {
		t.Errorf("the shell completes\n%s", out)
	}
	if _, errs, code := p.call("kill", id); code != 0 {
		t.Errorf("kill ended with %d: %s", code, errs)
	}
	if _, errs, code := p.call("scale", id, "worker=1"); code == 0 || !strings.Contains(errs, id) {
		t.Errorf("scale of a job that has ended ended with %d: %s", code, errs)
	}
	alone(t, id)
}
