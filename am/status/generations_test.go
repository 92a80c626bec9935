package status

import (
	"testing"
	"time"

	pb "google.golang.org/protobuf/proto"

	"holdfast/am/core"
	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/core/journal"
	"holdfast/proto"
)

// TestGenerations: each has who worked, from which step to which, and how fast.
func TestGenerations(t *testing.T) {
	role := &proto.RoleSpec{Name: "worker", Count: 2, Min: 1, Loss: proto.LossRule_LOSS_RULE_ALL}
	job := core.New([]core.Task{{Name: "worker-0", Role: role}, {Name: "worker-1", Role: role, Index: 1}}, 3, 0, core.Limits{})
	s := New(&proto.JobStatus{}, nil, nil, 0)
	at := time.Now().Truncate(time.Millisecond)
	step := func(events ...event.Event) {
		for _, e := range events {
			var list []*proto.JobEvent
			for _, a := range job.Step(at, e) {
				if r, ok := a.(action.Record); ok {
					list = append(list, &proto.JobEvent{AtUnixMs: at.UnixMilli(), Task: r.Task, Kind: r.Kind, Text: r.Text})
				}
			}
			s.Apply(job, list, nil)
		}
	}
	step(event.Begin{})
	for i, c := range []string{"c1", "c2"} {
		step(event.Allocated{Request: []string{"worker-0/1", "worker-1/2"}[i], Container: c, Node: "n"},
			event.AgentConnected{Container: c, Host: "h", PID: 1, Attempt: -1}, event.AgentPrepared{Container: c, Port: 20000 + i})
	}
	step(event.StorePrepared{}, event.TaskStarted{Container: "c1", PID: 7}, event.TaskStarted{Container: "c2", PID: 8})
	makes := func(n int64, after time.Duration) {
		s.Update(func(status *proto.JobStatus) { recordStep(status, s.totals, status.Tasks[0], n, at.Add(after)) })
	}
	makes(10, time.Second)
	makes(30, 11*time.Second)
	at = at.Add(20 * time.Second)
	step(event.PreemptionWarned{Containers: []string{"c2"}, Strict: true, Within: time.Minute}, event.CheckpointSealed{}, event.TaskExited{Container: "c1", Signal: 15, Stopped: true})
	makes(31, 0) // told late
	at = at.Add(time.Second)
	// Its loss, and that the others go on without it, come in one step.
	step(event.TaskExited{Container: "c2", Signal: 15, Stopped: true}, event.AgentDisconnected{Container: "c2", Orderly: true}, event.StorePrepared{}, event.TaskStarted{Container: "c1", Attempt: 1, PID: 9})
	makes(21, 2*time.Second)
	makes(22, 2*time.Second+10*time.Millisecond) // by another rank

	status, _ := s.Snapshot()
	if len(status.Generations) != 2 {
		t.Fatalf("the generations are %v", status.Generations)
	}
	a, b := status.Generations[0], status.Generations[1]
	if a.Tasks != 2 || a.Of != 2 || a.FirstStep != 10 || a.LastStep != 31 || a.StepsPerSecond != 2 || a.StartedUnixMs == 0 || a.EndedUnixMs < a.StartedUnixMs {
		t.Errorf("the first is %v", a)
	}
	if b.Number != 1 || b.Tasks != 1 || b.Of != 2 || len(b.Parked) != 1 || b.Parked[0] != "worker-1" || b.FirstStep != 21 || b.LastStep != 22 || b.StepsPerSecond != 0 || b.EndedUnixMs != 0 {
		t.Errorf("the second is %v", b)
	}
	if want := "works with 1 of 2 tasks (at least 1)"; status.Group() != want {
		t.Errorf("%q; want %q", status.Group(), want)
	}
	if k := status.Tasks[1]; k.ParkedSinceUnixMs != at.UnixMilli() || k.ParkedCause != "container preempted" || k.Why != "the others work without it: container preempted" {
		t.Errorf("the one without which it works is %v", k)
	}
	if k := status.Tasks[0]; k.ParkedSinceUnixMs != 0 || k.ParkedCause != "" {
		t.Errorf("the one that works is %v", k)
	}
	if i := status.Incidents[0]; i.TasksBefore != 2 || i.TasksAfter != 1 {
		t.Errorf("the loss was that of one of %d, and %d work after it", i.TasksBefore, i.TasksAfter)
	}

	// The generation goes on under the next master, whether or not that knows it at first.
	for name, journal := range map[string]journal.Journal{"journal": job.Journal(), "none": {Partial: true}} {
		saved, _ := s.Snapshot()
		begun := &proto.JobStatus{}
		TakeOver(begun, saved)
		next := core.New([]core.Task{{Name: "worker-0", Role: role}, {Name: "worker-1", Role: role, Index: 1}}, 3, 0, core.Limits{})
		next.Resume(journal)
		store := New(begun, nil, nil, 0)
		store.Apply(next, nil, nil)
		for _, e := range []event.Event{
			event.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n"}},
			event.AgentConnected{Container: "c1", Host: "h", PID: 1, Task: "worker-0", Port: 20000, PeerPort: 20000, Attempt: 1, Generation: 1, TaskPID: 9},
		} {
			next.Step(at, e)
			store.Apply(next, nil, nil)
		}
		status, _ := store.Snapshot()
		if n := len(status.Generations); n != 2 || !pb.Equal(status.Generations[1], b) {
			t.Errorf("%s: the generations are %v", name, status.Generations)
		}
	}
}
