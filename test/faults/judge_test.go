package faults

import (
	"fmt"
	"testing"
	"time"

	"holdfast/proto"
)

// TestALateChiefIsSeen: that nothing is told of the others' ends shows nothing of when the
// chief came back.
func TestALateChiefIsSeen(t *testing.T) {
	came := time.Now()
	ends := func(at ...time.Time) *proto.JobStatus {
		s := &proto.JobStatus{Tasks: []*proto.TaskStatus{{Task: chief, Role: "worker", Attempt: 1}}}
		for i, at := range at {
			s.Events = append(s.Events, &proto.JobEvent{Task: fmt.Sprintf("worker-%d", i+1), Kind: "ended", AtUnixMs: at.UnixMilli()})
		}
		return s
	}
	before, after := came.Add(-time.Second), came.Add(time.Second)
	for name, c := range map[string]struct {
		end   *proto.JobStatus
		began []mark
		want  int // faults
	}{
		"it came last":           {ends(before, before), []mark{{at: came}}, 0},
		"one ended after it":     {ends(before, after), []mark{{at: came}}, 1},
		"no end is told":         {ends(), []mark{{at: came}}, 1},
		"it has never had begun": {ends(before, before), nil, 3},
	} {
		s := &scene{job: &job{watch: &watch{begins: map[string][]mark{chief: c.began}}}}
		s.judgeLateChief(c.end)
		if len(s.wrong) != c.want {
			t.Errorf("%s: %q", name, s.wrong)
		}
	}
}

// TestWhenATaskStartedIsKnown: a start of which nothing is told took no time.
func TestWhenATaskStartedIsKnown(t *testing.T) {
	begun := time.Now()
	unpacked := &proto.JobEvent{Text: "fetching and unpacking venv.tar.gz"}
	started := &proto.JobEvent{Task: "worker-0", Kind: "started", AtUnixMs: begun.Add(time.Minute).UnixMilli()}
	for _, c := range []struct {
		events []*proto.JobEvent
		want   int // faults
	}{
		{[]*proto.JobEvent{unpacked, started}, 0},
		{[]*proto.JobEvent{unpacked}, 1},
		{[]*proto.JobEvent{started}, 1},
	} {
		s := &scene{job: &job{}}
		took := s.judgeUnpacking(&proto.JobStatus{Events: c.events}, begun)
		if len(s.wrong) != c.want || c.want == 0 && took.Round(time.Second) != time.Minute {
			t.Errorf("%v: %s, %q", c.events, took, s.wrong)
		}
	}
}

// TestTwoProcessesOfATask: it is seen that a lost process of a task makes steps beside the one
// that has replaced it.
func TestTwoProcessesOfATask(t *testing.T) {
	begin := time.Now()
	steps := func(files ...string) []mark { // one a second
		var all []mark
		for i, f := range files {
			all = append(all, mark{begin.Add(time.Duration(i+1) * time.Second), int64(i), f})
		}
		return all
	}
	w := &watch{steps: map[string][]mark{
		"worker-0": steps("a", "a", "b", "a", "b", "b", "b"), // it comes to, and is ended
		"worker-1": steps("a", "b", "a", "b", "a", "b", "a", "b"),
		"worker-2": steps("a", "a", "a", "b", "b", "b"),
	}}
	if both := w.twice(begin); len(both) != 1 || both[0] != "worker-1" {
		t.Errorf("two processes of %q made steps", both)
	}
}
