package client

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/yarn"
	"holdfast/proto"
	"holdfast/test/bound"
)

// crashed is what a ResourceManager 3.4.2 says of an AM that exits with 1.
const crashed = `Application application_1_0001 failed 1 times due to AM Container for appattempt_1_0001_000001 exited with  exitCode: 1
Failing this attempt.Diagnostics: [2026-11-21 12:00:00.000]Exception from container-launch.
Container id: container_1_0001_01_000001
Exit code: 1

[2026-11-21 12:00:00.001]Container exited with a non-zero exit code 1. Error file: prelaunch.err.
Last 4096 bytes of prelaunch.err :
Last 4096 bytes of stderr :
yarn-submit: reading the job's spec: no such file


For more detailed output, check the application tracking page: http://rm:8088/cluster/app/application_1_0001 Then click on links to logs of each attempt.
. Failing the application.`

func TestSettleYARN(t *testing.T) {
	running := func() *proto.JobStatus {
		return &proto.JobStatus{Id: "a", Name: "n", State: proto.JobState_JOB_STATE_RUNNING, Tasks: []*proto.TaskStatus{
			{Task: "w-0", State: proto.TaskState_TASK_STATE_RUNNING, Pid: 7},
			{Task: "w-1", State: proto.TaskState_TASK_STATE_SUCCEEDED},
		}}
	}
	done := func() *proto.JobStatus {
		s := running()
		s.State, s.Why = proto.JobState_JOB_STATE_FAILED, "its own reason"
		return s
	}
	stopping := func() *proto.JobStatus {
		s := running()
		s.State, s.Why = proto.JobState_JOB_STATE_STOPPING, "its own reason"
		return s
	}
	for _, c := range []struct {
		name   string
		saved  *proto.JobStatus
		report *yarn.Report
		state  proto.JobState
		why    string
	}{
		{"the master's last word stands", done(), &yarn.Report{State: yarn.StateFinished, Final: yarn.FinalSucceeded}, proto.JobState_JOB_STATE_FAILED, "its own reason"},
		{"forgotten by YARN, ended well", done(), nil, proto.JobState_JOB_STATE_FAILED, "its own reason"},
		{"forgotten by YARN in the middle", running(), nil, proto.JobState_JOB_STATE_FAILED, "does not know"},
		{"forgotten by YARN while it ended", stopping(), nil, proto.JobState_JOB_STATE_FAILED, "its own reason"},
		{"killed from outside", running(), &yarn.Report{State: yarn.StateKilled, Final: yarn.FinalKilled, Diagnostics: "Application killed by user."}, proto.JobState_JOB_STATE_KILLED, "killed by user"},
		{"the master crashed", running(), &yarn.Report{State: yarn.StateFailed, Final: yarn.FinalFailed, Diagnostics: crashed}, proto.JobState_JOB_STATE_FAILED, "exit code 1: yarn-submit: reading the job's spec: no such file"},
		{"failed without words", running(), &yarn.Report{State: yarn.StateFailed, Final: yarn.FinalFailed}, proto.JobState_JOB_STATE_FAILED, "no reason"},
		{"running", running(), &yarn.Report{State: yarn.StateRunning}, proto.JobState_JOB_STATE_RUNNING, ""},
		{"waiting", &proto.JobStatus{State: proto.JobState_JOB_STATE_WAITING}, &yarn.Report{State: yarn.StateAccepted, Queue: "q", Diagnostics: "[x] Application is added to the scheduler and is not yet activated. Queue's AM resource limit exceeded.  Details : Queue Resource Limit for AM = <memory:1024, vCores:1>;"}, proto.JobState_JOB_STATE_WAITING, `"q"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			settleYARN(c.saved, c.report, "application_1_0001", time.Minute)
			if c.saved.State != c.state || !strings.Contains(c.saved.Why, c.why) {
				t.Errorf("it is %s (%q), want %s (%q)", c.saved.State, c.saved.Why, c.state, c.why)
			}
			for _, k := range c.saved.Tasks {
				if c.saved.State.Done() && c.saved.Why != "its own reason" && k.State == proto.TaskState_TASK_STATE_RUNNING {
					t.Errorf("%s runs in a job that is over", k.Task)
				}
			}
		})
	}
}

func TestSettleLocal(t *testing.T) {
	s := &proto.JobStatus{State: proto.JobState_JOB_STATE_WAITING}
	settleLocal(s, true, "/log")
	if s.State.Done() || s.Why == "" {
		t.Errorf("a job whose master is starting is %s (%s)", s.State, s.Why)
	}
	settleLocal(s, false, "/log")
	if s.State != proto.JobState_JOB_STATE_FAILED || !strings.Contains(s.Why, "/log") {
		t.Errorf("a job whose master is gone is %s (%s)", s.State, s.Why)
	}
}

func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("x"), 1},
		{ErrJobFailed, 1},
		{fmt.Errorf("x: %w", syscall.ENOENT), 1},
		{&net.OpError{Op: "dial", Err: errors.New("y")}, 3},
		{fmt.Errorf("x: %w", Usagef("y")), 2},
		{unreachablef("x"), 3},
		{fmt.Errorf("x: %w", syscall.ECONNREFUSED), 3},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), 3},
		{&rpc.RemoteError{Class: "org.apache.hadoop.ipc.StandbyException"}, 3},
		{fmt.Errorf("x: %w", fs.ErrPermission), 4},
		{fmt.Errorf("x: %w", syscall.EACCES), 4},
		{fmt.Errorf("x: %w", &rpc.RemoteError{Class: "org.apache.hadoop.security.AccessControlException"}), 4},
		{ErrInterrupted, 130},
		{fmt.Errorf("x: %w", context.Canceled), 130},
	} {
		if got := ExitCode(c.err); got != c.want {
			t.Errorf("%v exits with %d, want %d", c.err, got, c.want)
		}
	}
}

func TestFitNodes(t *testing.T) {
	node := func(state string, mb int64, cores int32) yarn.Node {
		return yarn.Node{State: state, Capability: yarn.Resource{MemoryMB: mb, VCores: cores}}
	}
	nodes := []yarn.Node{node("RUNNING", 4096, 8), node("RUNNING", 8192, 2), node("LOST", 65536, 64)}
	ask := func(mb int64, cores int32) error {
		return fitNodes(nodes, []yarn.Demand{{Role: "worker", Count: 1, Resource: yarn.Resource{MemoryMB: mb, VCores: cores}}})
	}
	if err := ask(8192, 2); err != nil {
		t.Error(err)
	}
	for _, err := range []error{ask(8193, 1), ask(8192, 3)} { // the second: no single node has both
		if err == nil || !strings.Contains(err.Error(), "worker") || !strings.Contains(err.Error(), "8 GB") {
			t.Errorf("the error is: %v", err)
		}
	}
	if err := fitNodes([]yarn.Node{node("LOST", 1, 1)}, []yarn.Demand{{Role: "w", Resource: yarn.Resource{MemoryMB: 2}}}); err != nil {
		t.Errorf("without running nodes there is nothing to compare with: %v", err)
	}
}

func TestTaskOrder(t *testing.T) {
	if !taskLess("worker-2", "worker-10") || taskLess("worker-10", "worker-2") || !taskLess("ps-1", "worker-0") {
		t.Error("tasks are in a wrong order")
	}
}

// Without a terminal each line of the story and each change of state is told
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
	s.Events = s.Events[3:] // the master drops the middle of a long story
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
	}, Why: "a reason that is much too long for the line of a terminal"})
	if got := out.String(); !strings.HasPrefix(got, "running 1m0s | ps 1/2 | a reason") || len(got) != 39 {
		t.Errorf("the live line is %q", got)
	}
	p.Line("a line")
	if got := out.String(); !strings.HasSuffix(got, "\r\x1b[Ka line\n") {
		t.Errorf("a line of its own does not replace the live one: %q", got)
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

// What YARN says of an application is text from outside, cut anywhere.
func FuzzMasterEnd(f *testing.F) {
	f.Add(crashed)
	f.Add("AM Container exitCode: ")
	f.Add("Diagnostics: \n\n AM Container Last 4096 bytes of ")
	f.Fuzz(func(t *testing.T, s string) {
		defer bound.Memory(t, len(s), 100)()
		if strings.Count(masterEnd(s), "\n") > 10 {
			t.Errorf("too much of %q", s)
		}
	})
}
