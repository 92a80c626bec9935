package proto_test

import (
	"fmt"
	"testing"

	"holdfast/proto"
)

func TestManyTasks(t *testing.T) {
	s := &proto.JobStatus{}
	add := func(n int, role string, state proto.TaskState) {
		for range n {
			s.Tasks = append(s.Tasks, &proto.TaskStatus{Role: role, State: state})
		}
	}
	add(100, "ps", proto.TaskState_TASK_STATE_STOPPED)
	add(100, "worker", proto.TaskState_TASK_STATE_RUNNING)
	if got := s.Notable(); len(got) != 200 || got[0] != s.Tasks[0] {
		t.Errorf("of 200 tasks %d are shown", len(got))
	}
	add(1, "worker", proto.TaskState_TASK_STATE_WAITING)
	add(1, "worker", proto.TaskState_TASK_STATE_FAILED)
	got := s.Notable()
	if len(got) != 200 || got[0] != s.Tasks[201] || got[1] != s.Tasks[200] || got[2] != s.Tasks[0] {
		t.Errorf("of 202 tasks %d are shown, first %v, %v, %v", len(got), got[0], got[1], got[2])
	}
	if got, want := s.TaskCounts(), "ps: 100 stopped; worker: 1 waiting, 100 running, 1 failed"; got != want {
		t.Errorf("the tasks are %q, not %q", got, want)
	}
}

// TestWhoIsAbsent: those of one cause since the same second are told together, and those
// first that are absent for longest.
func TestWhoIsAbsent(t *testing.T) {
	s := &proto.JobStatus{}
	for i, since := range []int64{0, 70_900, 5_000, 70_100, 0} {
		k := &proto.TaskStatus{Task: fmt.Sprintf("worker-%d", i), State: proto.TaskState_TASK_STATE_PARKED, ParkedSinceUnixMs: since, ParkedCause: "node lost"}
		switch i {
		case 0:
			k.State, k.ParkedCause = proto.TaskState_TASK_STATE_RUNNING, ""
		case 4: // it was never there
			k.ParkedSinceUnixMs, k.ParkedCause = 80_000, ""
		}
		s.Tasks = append(s.Tasks, k)
	}
	clock := func(ms int64) string { return fmt.Sprintf("%d s", ms/1000) }
	if got, want := s.Without(clock), "worker-2 parked since 5 s, node lost; worker-1, worker-3 parked since 70 s, node lost; worker-4 parked since 80 s"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
	if got := (&proto.JobStatus{}).Without(clock); got != "" {
		t.Errorf("of a job without tasks: %q", got)
	}
}

// TestEveryStateIsCounted: also one that was added last.
func TestEveryStateIsCounted(t *testing.T) {
	s := &proto.JobStatus{}
	for state := 1; state < len(proto.TaskState_name); state++ {
		s.Tasks = append(s.Tasks, &proto.TaskStatus{Role: "worker", State: proto.TaskState(state)})
	}
	if got := len(s.Roles()[0].States()); got != len(s.Tasks) {
		t.Errorf("%d tasks in as many states are counted in %d: %s", len(s.Tasks), got, s.TaskCounts())
	}
}
