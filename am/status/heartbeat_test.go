package status

import (
	"testing"
	"time"

	"holdfast/am/status/samples"
	"holdfast/proto"
)

// TestHeartbeat: the status has the most memory that a task ever used, its last line also
// after its process has ended, and how many steps the program says it makes.
func TestHeartbeat(t *testing.T) {
	task := &proto.TaskStatus{Task: "w-0"}
	s := New(&proto.JobStatus{State: proto.JobState_JOB_STATE_RUNNING, Tasks: []*proto.TaskStatus{task}}, samples.New("", time.Now(), nil), nil, 0)
	s.hosted = map[string]*proto.TaskStatus{"c": task}
	before := time.Now().UnixMilli()
	s.Heartbeat("c", &proto.Heartbeat{RssBytes: 700, Line: "step 5/40", LineAgeMs: 2000, Step: 5, TotalSteps: 40})
	s.Heartbeat("c", &proto.Heartbeat{RssBytes: 300})
	if task.RssBytes != 300 || task.MemoryPeakBytes != 700 {
		t.Errorf("%d bytes, %d at the most", task.RssBytes, task.MemoryPeakBytes)
	}
	if age := time.Now().UnixMilli() - task.LineAtUnixMs; task.Line != "step 5/40" || age < 2000 || task.LineAtUnixMs < before-2000 {
		t.Errorf("the last line is %q, %d ms old", task.Line, age)
	}
	if s.status.Step != 5 || s.status.TotalSteps != 40 {
		t.Errorf("step %d of %d", s.status.Step, s.status.TotalSteps)
	}
	given := New(&proto.JobStatus{Tasks: []*proto.TaskStatus{task}, TotalSteps: 500}, samples.New("", time.Now(), nil), nil, 0)
	given.hosted = s.hosted
	given.Heartbeat("c", &proto.Heartbeat{RssBytes: 300, Step: 5, TotalSteps: 40})
	given.SetTotalSteps(700, time.Now())
	if given.status.TotalSteps != 500 {
		t.Errorf("the program's %d steps, and not those of the job's user", given.status.TotalSteps)
	}
	begun := time.Now()
	saved := New(&proto.JobStatus{StartedUnixMs: begun.UnixMilli()}, samples.New("", begun, nil), nil, 0)
	saved.SetTotalSteps(700, begun.Add(-time.Minute)) // of another plan, maybe
	saved.SetTotalSteps(0, begun)
	if saved.status.TotalSteps != 0 {
		t.Errorf("an older checkpoint says that there are %d steps", saved.status.TotalSteps)
	}
	if saved.SetTotalSteps(600, begun); saved.status.TotalSteps != 600 {
		t.Errorf("there are %d steps, and not 600 as a checkpoint says", saved.status.TotalSteps)
	}
}

// TestRestoresAreCountedOnce: an agent tells again and again how long its attempt has read its
// checkpoints; one that did so under the last master is shown, and was counted there.
func TestRestoresAreCountedOnce(t *testing.T) {
	task := &proto.TaskStatus{Task: "w-0"}
	s := New(&proto.JobStatus{Tasks: []*proto.TaskStatus{task}}, samples.New("", time.Now(), nil), nil, 0)
	s.began = time.Now().Add(-time.Minute)
	s.hosted = map[string]*proto.TaskStatus{"c": task}
	s.Heartbeat("c", &proto.Heartbeat{})
	if task.RestoreMs != nil {
		t.Error("who has read nothing has restored")
	}
	for _, age := range []int64{100, 1100} {
		s.Heartbeat("c", &proto.Heartbeat{Restore: &proto.Restore{TookMs: 3000, AgeMs: age}})
	}
	s.Exited("c", &proto.Exited{Restore: &proto.Restore{TookMs: 3000, AgeMs: 2000}})
	if got := s.Totals().Restores; got.Count != 1 || got.Sum != 3 || task.GetRestoreMs() != 3000 {
		t.Errorf("one restore of 3 s is counted as %d, of %v s; the task has %d ms", got.Count, got.Sum, task.GetRestoreMs())
	}
	task.RestoreMs = nil // another attempt
	s.Exited("c", &proto.Exited{Restore: &proto.Restore{TookMs: 500, AgeMs: 10}})
	if got := s.Totals().Restores; got.Count != 2 || got.Sum != 3.5 {
		t.Errorf("with that of the next attempt there are %d, of %v s", got.Count, got.Sum)
	}
	s.began, task.RestoreMs = time.Now(), nil
	s.Heartbeat("c", &proto.Heartbeat{Restore: &proto.Restore{TookMs: 3000, AgeMs: 60_000}})
	if got := s.Totals().Restores; got.Count != 2 || task.GetRestoreMs() != 3000 {
		t.Errorf("what a predecessor has counted is counted again: %d; the task has %d ms", got.Count, task.GetRestoreMs())
	}
}
