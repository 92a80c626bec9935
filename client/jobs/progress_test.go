package jobs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/proto"
)

// Without a terminal each line of the event log and each change of state is told
// once, however often the state comes.
func TestProgressPlain(t *testing.T) {
	var out strings.Builder
	p := NewProgress(&out, 0)
	s := &proto.JobStatus{State: proto.JobState_JOB_STATE_WAITING, Why: "the queue is full"}
	p.Show(s)
	p.Show(s)
	s.State, s.Why, s.TrackingUrl = proto.JobState_JOB_STATE_RUNNING, "", "http://page"
	for i := range 5 {
		s.Events = append(s.Events, &proto.JobEvent{AtUnixMs: 1000 + int64(i/2), Task: "ps-1", Kind: "lost", Text: fmt.Sprintf("event %d", i), SinceLossMs: int64(i) * 1000})
		p.Show(s)
		p.Show(s)
	}
	s.Events = s.Events[3:] // the master drops the middle of a long event log
	s.Events = append(s.Events, &proto.JobEvent{AtUnixMs: 1010, Text: "the \x1b[31mend\nof it"})
	p.Show(s)
	s.State = proto.JobState_JOB_STATE_SUCCEEDED
	p.Show(s)
	text := out.String()
	for _, want := range []string{"waiting: the queue is full", "running", "page: http://page", "event 0", "event 1", "event 2", "event 3", "event 4  (4.0 s after the loss)", "the [31mend; of it"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%q stands %d times in:\n%s", want, strings.Count(text, want), text)
		}
	}
	if strings.Contains(text, "\x1b") || strings.Contains(text, "\r") {
		t.Errorf("there are control characters in %q", text)
	}
}

func TestProgressLive(t *testing.T) {
	var out strings.Builder
	p := NewProgress(&out, 40)
	p.now = func() time.Time { return time.UnixMilli(61000) }
	p.Show(&proto.JobStatus{State: proto.JobState_JOB_STATE_RUNNING, StartedUnixMs: 1000, Tasks: []*proto.TaskStatus{
		{Role: "ps", State: proto.TaskState_TASK_STATE_RUNNING}, {Role: "ps", State: proto.TaskState_TASK_STATE_WAITING},
	}, Why: "a reason that is much too long for the line of a terminal", Step: 40, StepsPerSecond: 2, CompleteStep: 30, CompleteStepAtUnixMs: 59000})
	want := "running 1m0s | step 40, 2/s | checkpoi…\nps 1/2 (1 waiting)\na reason that is much too long for the…"
	if got := out.String(); got != want {
		t.Errorf("the block is %q, want %q", got, want)
	}
	p.Line("a line")
	if got := out.String(); !strings.HasSuffix(got, "\r\x1b[K\x1b[1A\x1b[K\x1b[1A\x1b[Ka line\n") {
		t.Errorf("a line of its own does not replace the block: %q", got)
	}
	p.width = 100
	out.Reset()
	p.Show(&proto.JobStatus{State: proto.JobState_JOB_STATE_RUNNING, StartedUnixMs: 1000, Step: 40, CompleteStep: 30, CompleteStepAtUnixMs: 59000,
		Scalars: []*proto.ScalarValue{{Name: "accuracy", Value: 0.9}, {Name: "loss", Value: 0.123456}, {Name: "lr", Value: 1e-4}}})
	if got := out.String(); got != "running 1m0s | step 40 | accuracy 0.9 | loss 0.1235 | checkpoint 30, 2s ago" {
		t.Errorf("scalars and the age of a checkpoint are told as %q", got)
	}
	out.Reset()
	p.Show(&proto.JobStatus{State: proto.JobState_JOB_STATE_RUNNING, StartedUnixMs: 1000, Step: 40, StepsPerSecond: 2, TotalSteps: 400})
	if got := out.String(); !strings.HasSuffix(got, "running 1m0s | step 40/400, 2/s, 3m00s left") {
		t.Errorf("the time that is left is told as %q", got)
	}
}
