package status

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	pb "google.golang.org/protobuf/proto"

	"holdfast/am/core"
	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/status/samples"
	"holdfast/proto"
)

// TestTheNextCheckpoint: one is expected where the last ones came in steady distances, of which
// one may be another; and where they did not, none is.
func TestTheNextCheckpoint(t *testing.T) {
	start := time.UnixMilli(1_800_000_000_000)
	for name, c := range map[string]struct {
		distances []int // seconds between completions
		want      int   // seconds from the last; 0: none is expected
	}{
		"none":               {nil, 0},
		"two":                {[]int{600}, 0},
		"three":              {[]int{600, 600}, 0},
		"steady":             {[]int{600, 620, 590}, 600},
		"with a loss":        {[]int{600, 1500, 600, 610}, 610},
		"with two losses":    {[]int{600, 1500, 600, 610, 1800}, 0},
		"as it comes":        {[]int{600, 60, 1500, 200}, 0},
		"seconds":            {[]int{2, 3, 1, 2}, 2},
		"faster than it was": {[]int{600, 600, 60, 60, 60, 60, 60, 60, 60}, 60},
	} {
		var k cadence
		at, step := start, int64(100)
		k.complete(step, at)
		for _, d := range c.distances {
			at, step = at.Add(time.Duration(d)*time.Second), step+100
			k.complete(step, at)
			k.complete(step, at.Add(time.Second)) // it is looked at again
		}
		want := time.Time{}
		if c.want != 0 {
			want = at.Add(time.Duration(c.want) * time.Second)
		}
		if got := k.next(); !got.Equal(want) {
			t.Errorf("%s: the next is expected at %v, want %v", name, got, want)
		}
	}

	// After a rollback, what was before does not count.
	var k cadence
	for i := range 5 {
		k.complete(int64(100*i+100), start.Add(time.Duration(i)*time.Minute))
	}
	k.complete(200, start.Add(10*time.Minute))
	if got := k.next(); !got.IsZero() {
		t.Errorf("after a rollback the next is expected at %v", got)
	}
}

// TestWhenTheNextCheckpointIsExpected: the status says it once the last ones were steady.
func TestWhenTheNextCheckpointIsExpected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		s := New(&proto.JobStatus{StartedUnixMs: begun.UnixMilli()}, samples.New("", begun, nil), nil, 0)
		for i := range 4 {
			if s.status.NextCheckpointUnixMs != 0 {
				t.Errorf("after %d checkpoints the next is expected at %v", i, time.UnixMilli(s.status.NextCheckpointUnixMs))
			}
			time.Sleep(10 * time.Minute)
			s.SetCompleteStep(int64(100*i + 100))
		}
		if want := time.Now().Add(10 * time.Minute).UnixMilli(); s.status.NextCheckpointUnixMs != want || s.status.CompleteStepAtUnixMs != time.Now().UnixMilli() {
			t.Errorf("the next is expected in %v", time.Until(time.UnixMilli(s.status.NextCheckpointUnixMs)))
		}
	})
}

// TestACheckpointFromBefore: its age is that since it was complete, as the predecessor has seen it
// or its last file says it, and the next one is expected as the predecessor did.
func TestACheckpointFromBefore(t *testing.T) {
	at := time.UnixMilli(5000)
	s := New(&proto.JobStatus{CompleteStep: 100, CompleteStepAtUnixMs: 4000, NextCheckpointUnixMs: 9000}, nil, nil, 0)
	s.FoundComplete(100, at)
	if s.status.CompleteStepAtUnixMs != 4000 || s.status.NextCheckpointUnixMs != 9000 {
		t.Errorf("found again, it was complete at %d, and the next is expected at %d", s.status.CompleteStepAtUnixMs, s.status.NextCheckpointUnixMs)
	}
	s.FoundComplete(200, at)
	if s.status.CompleteStep != 200 || s.status.CompleteStepAtUnixMs != 5000 || s.status.NextCheckpointUnixMs != 10000 {
		t.Errorf("step %d was complete at %d, and the next is expected at %d", s.status.CompleteStep, s.status.CompleteStepAtUnixMs, s.status.NextCheckpointUnixMs)
	}
}

// TestTheCadenceIsTakenOver: the first checkpoint that is complete under another application master
// does not make it forget how far apart they are.
func TestTheCadenceIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now()
		saved := &proto.JobStatus{CompleteStep: 100, CompleteStepAtUnixMs: at.UnixMilli(), NextCheckpointUnixMs: at.Add(10 * time.Minute).UnixMilli()}
		s := New(saved, samples.New("", at, nil), nil, 0)
		time.Sleep(10 * time.Minute)
		s.SetCompleteStep(200)
		if want := time.Now().Add(10 * time.Minute).UnixMilli(); s.status.NextCheckpointUnixMs != want {
			t.Errorf("the next is expected at %d, want %d", s.status.NextCheckpointUnixMs, want)
		}
		s = New(&proto.JobStatus{CompleteStep: 100, CompleteStepAtUnixMs: at.UnixMilli()}, samples.New("", at, nil), nil, 0)
		s.SetCompleteStep(200)
		if s.status.NextCheckpointUnixMs != 0 {
			t.Errorf("the next is expected at %d, of which nobody knows", s.status.NextCheckpointUnixMs)
		}
	})
}

// TestLogsAreNotKeptForEver: of containers that have ended, few are remembered.
func TestLogsAreNotKeptForEver(t *testing.T) {
	s := New(&proto.JobStatus{}, samples.New("", time.Now(), nil), nil, 0)
	task := &proto.TaskStatus{Task: "w-0"}
	s.hosted = map[string]*proto.TaskStatus{"c-0": task}
	for i := range 10000 {
		s.SetLogs(fmt.Sprintf("c-%d", i), "url")
	}
	if n := len(s.logs); n > 200 || s.logs["c-0"] == "" || s.logs["c-9999"] == "" {
		t.Errorf("%d are kept", n)
	}
}

// TestLogsOfManyContainers: a large job gets many containers at once, and so does a successor, before
// it is known what is in them. The logs of each are known all the same, however many came before.
func TestLogsOfManyContainers(t *testing.T) {
	const tasks = 300
	worker := &proto.RoleSpec{Name: "worker", Count: tasks}
	var list []core.Task
	for i := range tasks {
		list = append(list, core.Task{Name: fmt.Sprintf("worker-%d", i), Role: worker, Index: i, Port: 20000 + i})
	}
	begun := &proto.JobStatus{Tasks: make([]*proto.TaskStatus, tasks)} // as of a predecessor
	for i := range begun.Tasks {
		begun.Tasks[i] = &proto.TaskStatus{}
	}
	for _, before := range []int{0, 500, 1000} {
		s := New(pb.Clone(begun).(*proto.JobStatus), samples.New("", time.Now(), nil), nil, 0)
		job := core.New(list, 3, 0, core.Limits{})
		for i := range before {
			s.SetLogs(fmt.Sprintf("earlier-%d", i), "url")
		}
		n := 0
		for _, a := range job.Step(time.Now(), event.Begin{}) {
			if ask, ok := a.(action.Ask); ok {
				s.SetLogs("c-"+ask.Task, "logs of "+ask.Task)
				job.Step(time.Now(), event.Allocated{Request: ask.Request, Container: "c-" + ask.Task, Node: "n"})
				n++
			}
		}
		s.Apply(job, nil, nil)
		status, _ := s.Snapshot()
		for _, k := range status.Tasks {
			if k.ContainerLogsUrl != "logs of "+k.Task {
				t.Fatalf("after %d others, of %d containers the logs of %s are at %q", before, n, k.Task, k.ContainerLogsUrl)
			}
		}
	}
}
