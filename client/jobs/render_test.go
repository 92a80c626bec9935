package jobs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/proto"
)

// TestStatusOfManyTasks: a person is told of what does not run, and not of
// thousands of tasks that do.
func TestStatusOfManyTasks(t *testing.T) {
	s := &proto.JobStatus{Id: "application_1_0001", State: proto.JobState_JOB_STATE_RUNNING}
	for i := range 5000 {
		s.Tasks = append(s.Tasks, &proto.TaskStatus{Task: fmt.Sprintf("worker-%d", i), Role: "worker", State: proto.TaskState_TASK_STATE_RUNNING})
	}
	s.Tasks[4321].State = proto.TaskState_TASK_STATE_PREPARING
	var b strings.Builder
	if err := WriteStatus(&b, s, 0); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"worker: 1 preparing, 4999 running", "200 of 5000 tasks", "worker-4321"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("status does not say %q:\n%s", want, b.String())
		}
	}
	if n := strings.Count(b.String(), "\n"); n > 210 {
		t.Errorf("status has %d lines", n)
	}
}

// TestStatusTellsTheLoss: with the step, as the program has reported it last.
func TestStatusTellsTheLoss(t *testing.T) {
	s := &proto.JobStatus{State: proto.JobState_JOB_STATE_RUNNING, Step: 40, StepsPerSecond: 2, Scalars: []*proto.ScalarValue{{Name: "loss", Value: 0.123456}}}
	var b strings.Builder
	if err := WriteStatus(&b, s, 0); err != nil || !strings.Contains(b.String(), "step 40, 2 a second, loss 0.1235\n") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// TestStatusNamesStragglers: with what differs, and how long all tasks' steps take.
func TestStatusNamesStragglers(t *testing.T) {
	s := &proto.JobStatus{State: proto.JobState_JOB_STATE_RUNNING, Tasks: []*proto.TaskStatus{
		{Task: "worker-0", State: proto.TaskState_TASK_STATE_RUNNING, Step: 40, StepSeconds: 0.5},
		{Task: "worker-1", State: proto.TaskState_TASK_STATE_RUNNING, Step: 10, StepSeconds: 2, Straggler: &proto.Straggler{
			SinceUnixMs: 1764079331000, By: proto.ByStep, Value: 2, Median: 0.5, Differs: []string{"it uses 0.2 CPUs, and the others 1.0"}}},
	}}
	var b strings.Builder
	if err := WriteStatus(&b, s, 0); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"  worker-1 is slower than the others of its role\n",
		"40    500 ms  ",
		"10    2.0 s   ",
		"slower than the others since 14:02:11 UTC: a step takes 2.0 s, and 500 ms in the median (4.0 times); it uses 0.2 CPUs, and the others 1.0\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("there is no %q in\n%s", want, b.String())
		}
	}
}

// TestCausesFitATerminal: of 80 columns, with a cause as most are.
func TestCausesFitATerminal(t *testing.T) {
	s := &proto.JobStatus{Incidents: []*proto.Incident{{Task: "worker-1", Cause: "its process failed", Recovery: "in place", RecoveredUnixMs: 1, RecoveredAfterMs: 69, ResumedStep: 40, LostSteps: 100, ProgressAfterMs: 600}}}
	var b strings.Builder
	if err := WriteStatus(&b, s, 80); err != nil || !strings.Contains(b.String(), "its process failed  0.1 s    100         0.6 s     in place\n") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// TestStatusTellsWhoseReasonItIs: why an earlier attempt was lost does not look
// like the present one's state.
func TestStatusTellsWhoseReasonItIs(t *testing.T) {
	lost := func(task string, attempt int32, why string) *proto.Incident {
		return &proto.Incident{Task: task, Attempt: attempt, Evidence: why}
	}
	for _, c := range []struct {
		name      string
		task      *proto.TaskStatus
		incidents []*proto.Incident
		want      string
	}{
		{"an earlier attempt's", &proto.TaskStatus{State: proto.TaskState_TASK_STATE_RUNNING, Attempt: 2, Why: "killed by SIGKILL"},
			[]*proto.Incident{lost("w-0", 0, "exited with 1"), lost("w-0", 1, "killed by SIGKILL"), lost("w-1", 0, "killed by SIGKILL")}, "attempt 1: killed by SIGKILL"},
		{"of one that has ended well", &proto.TaskStatus{State: proto.TaskState_TASK_STATE_STOPPED, Attempt: 1, Why: "killed by SIGKILL"},
			[]*proto.Incident{lost("w-0", 0, "killed by SIGKILL")}, "attempt 0: killed by SIGKILL"},
		{"the last attempt's", &proto.TaskStatus{State: proto.TaskState_TASK_STATE_RESTARTING, Attempt: 1, Why: "KeyError: 'x'"},
			[]*proto.Incident{lost("w-0", 0, "exited with 1"), lost("w-0", 1, "KeyError: 'x'")}, "KeyError: 'x'"},
		{"no loss", &proto.TaskStatus{State: proto.TaskState_TASK_STATE_RUNNING, Attempt: 1, Why: "it makes no steps"},
			[]*proto.Incident{lost("w-0", 0, "killed by SIGKILL")}, "it makes no steps"},
		{"none", &proto.TaskStatus{State: proto.TaskState_TASK_STATE_RUNNING, WarmStatus: "warm"}, nil, "warm"},
	} {
		c.task.Task = "w-0"
		if got := note(&proto.JobStatus{Incidents: c.incidents}, c.task); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestWriteFailure(t *testing.T) {
	var out strings.Builder
	s := &proto.JobStatus{Id: "local-1", State: proto.JobState_JOB_STATE_FAILED, Why: "worker-1 failed", Tasks: []*proto.TaskStatus{
		{Task: "worker-0", State: proto.TaskState_TASK_STATE_STOPPED, Tail: []string{"fine"}},
		{Task: "worker-1", State: proto.TaskState_TASK_STATE_FAILED, Attempt: 2, Node: "n7", Why: "exited with 3", Tail: []string{"Traceback", "ValueError: x"}},
	}}
	if err := WriteFailure(&out, s); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"local-1 failed: worker-1 failed", "worker-1, attempt 2 on n7: exited with 3", "| ValueError: x", "yarn-submit logs local-1 worker-1"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "fine") {
		t.Errorf("another task's output is shown:\n%s", out.String())
	}
}

// TestStatusTellsTheGenerations: with how many tasks the job worked, at 80 columns.
func TestStatusTellsTheGenerations(t *testing.T) {
	s := &proto.JobStatus{State: proto.JobState_JOB_STATE_RUNNING, Generations: []*proto.Generation{
		{Number: 0, StartedUnixMs: 1, EndedUnixMs: 2, Tasks: 4, Of: 4, FirstStep: 1, LastStep: 120, StepsPerSecond: 4.876},
		{Number: 1, StartedUnixMs: 3, Tasks: 2, Of: 4, Least: 2, Parked: []string{"worker-2", "worker-3"}},
	}}
	since := time.Unix(86400, 0)
	for i, cause := range []string{"", "", "container preempted", "container preempted"} {
		k := &proto.TaskStatus{Task: fmt.Sprintf("worker-%d", i), State: proto.TaskState_TASK_STATE_RUNNING}
		if cause != "" {
			k.State, k.ParkedSinceUnixMs, k.ParkedCause, k.Why = proto.TaskState_TASK_STATE_PARKED, since.UnixMilli()+int64(i), cause, "the others work without it: "+cause
		}
		s.Tasks = append(s.Tasks, k)
	}
	at := since.Format("15:04:05")
	var b strings.Builder
	if err := WriteStatus(&b, s, 0); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  works with 2 of 4 tasks (at least 2): worker-2, worker-3 parked since " + at + ", container preempted\n", "since " + at + " the others work without it: container preempted\n", "  4 of 4  1 to 120  4.88      -\n", "  2 of 4  -         -         worker-2, worker-3\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("status does not say %q:\n%s", want, b.String())
		}
	}
	s.Generations = s.Generations[:1]
	b.Reset()
	if err := WriteStatus(&b, s, 80); err != nil || strings.Contains(b.String(), "GENERATION") {
		t.Errorf("%v: one generation is a table of its own:\n%s", err, b.String())
	}
}

// TestDescribeTellsWhatATaskHas: and how much of it is used.
func TestDescribeTellsWhatATaskHas(t *testing.T) {
	k := &proto.TaskStatus{
		Task: "worker-0", State: proto.TaskState_TASK_STATE_RUNNING, RssBytes: 1 << 30, MemoryLimitBytes: 4 << 30, CpuCores: 1.5, Vcores: 2,
		Gpus: 2, GpuPercent: 87.4, GpuMemoryBytes: 60 << 30, GpuMemoryLimitBytes: 160 << 30,
		Resources: map[string]string{"example.com/fpga": "1", "example.com/disk": "100G"},
	}
	s := &proto.JobStatus{Id: "application_1_0001", Tasks: []*proto.TaskStatus{k}}
	var b strings.Builder
	if err := WriteTask(&b, s, k, 80); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"memory         1.0/4.0 GiB", "cores          1.5/2", "GPUs           2", "GPU use        87% 60/160 GiB", "resources      100G example.com/disk, 1 example.com/fpga"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("describe does not say %q:\n%s", want, b.String())
		}
	}
	b.Reset()
	if err := WriteTask(&b, s, &proto.TaskStatus{Task: "ps-0"}, 80); err != nil || strings.Contains(b.String(), "GPU") || strings.Contains(b.String(), "resources") {
		t.Errorf("%v: a task that has nothing is said to have something:\n%s", err, b.String())
	}
}

// TestStatusTellsTheAvoidedNodes: which, why and until when, and none whose time is over.
func TestStatusTellsTheAvoidedNodes(t *testing.T) {
	later, before := time.Now().Add(time.Hour), time.Now().Add(-time.Minute)
	s := &proto.JobStatus{State: proto.JobState_JOB_STATE_RUNNING, AvoidedNodes: []*proto.AvoidedNode{
		{Node: "n1", Why: "worker-0: no /dev/fuse", UntilUnixMs: later.UnixMilli()},
		{Node: "n2", Why: "worker-1: no /dev/fuse", UntilUnixMs: before.UnixMilli()},
		{Node: "n3", Why: "it is taken out of service"},
	}}
	var b strings.Builder
	if err := WriteStatus(&b, s, 80); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"n1            " + later.Format("15:04:05"), "worker-0: no /dev/fuse", "n3            in service again  it is taken out of service"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("status does not say %q:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "n2") {
		t.Errorf("n2 is not avoided any longer:\n%s", b.String())
	}
}

// TestListsAndTasksFitATerminal: of 80 columns, with what is long on clusters: ids, names, users,
// steps and states.
func TestListsAndTasksFitATerminal(t *testing.T) {
	const id = "application_1764000000000_10042"
	list := []*proto.JobSummary{
		{Id: id, Name: "language-model-of-the-team", User: "somebody.with.a.name@EXAMPLE.ORG", State: proto.JobState_JOB_STATE_SUCCEEDED, Step: 12345678, StartedUnixMs: 1, EndedUnixMs: 2},
		{Id: id, Name: "n", User: "u", State: proto.JobState_JOB_STATE_FAILED, Why: "worker-1 failed:\n" + strings.Repeat("it has failed ", 20), StartedUnixMs: 1, EndedUnixMs: 2},
		{Id: id, Name: "n", User: "u", State: proto.JobState_JOB_STATE_RUNNING, Why: "what nobody asks list for", StartedUnixMs: 1},
	}
	fits := func(what, text string) {
		t.Helper()
		for line := range strings.Lines(text) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 {
				t.Errorf("%s has a line of %d columns: %s", what, n, line)
			}
		}
	}
	for _, users := range []bool{false, true} {
		var b strings.Builder
		if err := WriteList(&b, list, ListStyle{Width: 80, Users: users}); err != nil {
			t.Fatal(err)
		}
		fits("list", b.String())
		for _, want := range []string{id + "  language-", "\n  worker-1 failed: it has failed it has", "TOOK"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("list (users: %v) has no %q:\n%s", users, want, b.String())
			}
		}
		if strings.Count(b.String(), "\n") != 6 {
			t.Errorf("list (users: %v) is\n%s", users, b.String())
		}
	}
	task := &proto.TaskStatus{
		Task: "parameter-server-12", State: proto.TaskState_TASK_STATE_RESTARTING, Attempt: 123, Step: 12345678, StepSeconds: 12.3, Node: "node-with-a-long-name.example.org",
		RssBytes: 18 << 20, MemoryLimitBytes: 2 << 30, Why: "exited with 1: its output says why at length",
	}
	var b strings.Builder
	if err := WriteStatus(&b, &proto.JobStatus{Id: id, State: proto.JobState_JOB_STATE_RUNNING, Tasks: []*proto.TaskStatus{task}}, 80); err != nil {
		t.Fatal(err)
	}
	fits("status", b.String())
	if !strings.Contains(b.String(), "parameter-server-12  restarting  ") || !strings.Contains(b.String(), "12345678") {
		t.Errorf("status is\n%s", b.String())
	}
}

// TestAnEndThatIsNotKnown: a job that is over, as its application master was lost before it had saved
// anything, does not go on getting longer.
func TestAnEndThatIsNotKnown(t *testing.T) {
	start := time.Now().Add(-50 * time.Hour).UnixMilli()
	for state, want := range map[proto.JobState]string{proto.JobState_JOB_STATE_FAILED: "-", proto.JobState_JOB_STATE_RUNNING: "2d02h"} {
		var list, status strings.Builder
		err := WriteList(&list, []*proto.JobSummary{{Id: "local-1", Name: "n", State: state, StartedUnixMs: start}}, ListStyle{Width: 100})
		if err == nil {
			err = WriteStatus(&status, &proto.JobStatus{Id: "local-1", State: state, StartedUnixMs: start}, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(strings.TrimSpace(list.String()), "  "+want) {
			t.Errorf("of a job that is %s list says\n%s", proto.StateWord(state), list.String())
		}
		if strings.Contains(status.String(), "50h") != (want != "-") {
			t.Errorf("of a job that is %s status says\n%s", proto.StateWord(state), status.String())
		}
	}
}

// TestTheZoneOfTimesIsNamed: where it is not UTC, once.
func TestTheZoneOfTimesIsNamed(t *testing.T) {
	before := time.Local
	defer func() { time.Local = before }()
	at := time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC).UnixMilli()
	for name, zone := range map[string]*time.Location{"CET": time.FixedZone("CET", 3600), "": time.UTC} {
		time.Local = zone
		var status, list strings.Builder
		err := WriteStatus(&status, &proto.JobStatus{Id: "local-1", Events: []*proto.JobEvent{{AtUnixMs: at, Text: "begun"}}}, 0)
		if err == nil {
			err = WriteList(&list, []*proto.JobSummary{{Id: "local-1", StartedUnixMs: at}}, ListStyle{Width: 100})
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(status.String(), "times are CET\n"); got != len(name)/3 {
			t.Errorf("in %q:\n%s", name, status.String())
		}
		if got := strings.Count(list.String(), "STARTED (CET)"); got != len(name)/3 {
			t.Errorf("in %q:\n%s", name, list.String())
		}
	}
}
