package status

import (
	"strings"
	"testing"
	"time"

	"holdfast/am/core"
	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/core/pace"
	"holdfast/am/status/samples"
	"holdfast/proto"
)

// TestStragglersAreShown: with how they compare, and what else differs, which the event that
// names one says, too.
func TestStragglersAreShown(t *testing.T) {
	now := time.Unix(1000, 0)
	role := &proto.RoleSpec{Name: "worker", Count: 3, MemoryMb: 100, Loss: proto.LossRule_LOSS_RULE_ALONE, Completion: proto.CompletionRule_COMPLETION_RULE_REQUIRED}
	var tasks []core.Task
	for i, name := range []string{"worker-0", "worker-1", "worker-2"} {
		tasks = append(tasks, core.Task{Name: name, Role: role, Index: i, Port: 20000 + i})
	}
	job := core.New(tasks, 3, 0, core.Limits{})
	s := New(&proto.JobStatus{}, samples.New("", now, nil), nil, 0)
	s.CountEvery(job.CountInterval())
	var events []*proto.JobEvent
	step := func(e event.Event) {
		t.Helper()
		queue := []event.Event{e}
		for ; len(queue) > 0; queue = queue[1:] {
			for _, a := range job.Step(now, queue[0]) {
				switch a := a.(type) {
				case action.Ask:
					queue = append(queue, event.Allocated{Request: a.Request, Container: "c-" + a.Task, Node: "node-" + a.Task})
				case action.Launch:
					queue = append(queue, event.AgentConnected{Container: a.Container, Host: "h", PID: 1})
				case action.Assign:
					queue = append(queue, event.AgentPrepared{Container: a.Container, Port: a.Port})
				case action.PrepareStore:
					queue = append(queue, event.StorePrepared{})
				case action.Start:
					queue = append(queue, event.TaskStarted{Container: a.Container, PID: 2})
				case action.Record:
					events = append(events, &proto.JobEvent{Task: a.Task, Kind: a.Kind, Text: a.Text})
				}
			}
		}
	}
	step(event.Begin{})
	s.Apply(job, events, nil)
	counts := map[string]pace.Count{}
	for i := range 20 {
		now = now.Add(job.CountInterval())
		var e event.StepsReported
		for task, n := range map[string]int64{"worker-0": 60, "worker-1": 20, "worker-2": 60} {
			c := counts[task]
			c = pace.Count{Task: task, Step: c.Step + n, Reports: c.Reports + n, At: now}
			counts[task] = c
			e.Counts = append(e.Counts, c)
			s.mu.Lock() // what heartbeats have told
			k := s.hosted["c-"+task]
			k.RssBytes, k.CpuCores = 50<<20, float64(n)/60
			k.Pressure = &proto.Pressure{Cpu: 0.05}
			if task == "worker-1" {
				k.Pressure.Cpu = 0.8
			}
			s.mu.Unlock()
		}
		events = nil
		step(e)
		if !job.NeedsJournal() {
			s.UpdateSpeeds(job)
		}
		if len(events) > 0 {
			if i < pace.CountsWithin {
				t.Errorf("after %d counts: %v", i+1, events)
			}
			break
		}
	}
	s.Apply(job, events, nil)
	status, _ := s.Snapshot()
	w := status.Tasks[1]
	if w.StepSeconds != 1.5 || w.Straggler == nil || w.Straggler.By != "step" || w.Straggler.Median != 0.5 || w.Straggler.Value != 1.5 {
		t.Fatalf("it is shown as %v", w)
	}
	want := []string{"it uses 0.3 CPUs, and the others 1.0", "where it is, processes wait for a CPU in 80% of the time, and where the others are in 5%"}
	if strings.Join(w.Straggler.Differs, "|") != strings.Join(want, "|") {
		t.Errorf("what differs is %q, want %q", w.Straggler.Differs, want)
	}
	if e := status.Events[len(status.Events)-1]; e.Kind != "straggler" || !strings.HasSuffix(e.Text, "(3.0 times); "+strings.Join(want, "; ")) {
		t.Errorf("the event is %v", e)
	}
	if o := status.Tasks[0]; o.Straggler != nil || o.StepSeconds != 0.5 {
		t.Errorf("another is shown as %v", o)
	}
}

// TestCounts: core is told in intervals what those tasks have done that were heard.
func TestCounts(t *testing.T) {
	p, now := newProgress(), time.Unix(1000, 0)
	p.count(now, "worker-0", &proto.Heartbeat{ReportedSteps: 1})
	if p.due(now) {
		t.Error("core is told what it does not want")
	}
	p.every = 30 * time.Second
	p.count(now, "worker-0", &proto.Heartbeat{})
	p.count(now, "worker-1", &proto.Heartbeat{Step: 7, ReportedSteps: 2, StepAgeMs: 1500, Looks: 9, LooksAtWork: 4})
	want := pace.Count{Task: "worker-1", Step: 7, Reports: 2, At: now.Add(-1500 * time.Millisecond), Looks: 9, Works: 4}
	if e := p.take(now); len(e.Counts) != 1 || e.Counts[0] != want {
		t.Errorf("core is told %v, want %v", e.Counts, want)
	}
	p.count(now, "worker-1", &proto.Heartbeat{ReportedSteps: 3})
	if p.due(now.Add(29*time.Second)) || !p.due(now.Add(30*time.Second)) {
		t.Error("core is told too often, or too seldom")
	}
}
