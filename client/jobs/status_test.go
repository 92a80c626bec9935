package jobs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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

// overLimit is what YARN says of an application master that was killed for its memory
// (ContainersMonitorImpl.formatErrorMessage), lost is of one whose node was
// (SchedulerUtils.LOST_CONTAINER), and unlaunched of one that no node could be told to start
// (AMLauncher).
const (
	overLimit = `Application application_1_0001 failed 2 times due to AM Container for appattempt_1_0001_000002 exited with  exitCode: -104
Failing this attempt.Diagnostics: [2026-11-21 12:00:00.000]Container [pid=4711,containerID=container_1_0001_02_000001] is running 17825792B beyond the 'PHYSICAL' memory limit. Current usage: 273.0 MB of 256 MB physical memory used; 2.5 GB of 537.6 MB virtual memory used. Killing container.
Dump of the process-tree for container_1_0001_02_000001 :
	|- PID PPID PGRPID SESSID CMD_NAME USER_MODE_TIME(MILLIS) SYSTEM_TIME(MILLIS) VMEM_USAGE(BYTES) RSSMEM_USAGE(PAGES) FULL_CMD_LINE
	|- 4711 4709 4711 4711 (bash) 0 0 9728000 704 /bin/bash -c ./yarn-submit am 1>/logs/stdout 2>/logs/stderr 
	|- 4719 4711 4711 4711 (yarn-submit) 812 94 2675654656 69184 ./yarn-submit am 

[2026-11-21 12:00:00.120]Container killed on request. Exit code is 143
[2026-11-21 12:00:00.131]Container exited with a non-zero exit code 143. 
For more detailed output, check the application tracking page: http://rm:8088/cluster/app/application_1_0001 Then click on links to logs of each attempt.
. Failing the application.`
	lost = `Application application_1_0001 failed 2 times due to AM Container for appattempt_1_0001_000002 exited with  exitCode: -100
Failing this attempt.Diagnostics: Container released on a *lost* nodeFor more detailed output, check the application tracking page: http://rm:8088/cluster/app/application_1_0001 Then click on links to logs of each attempt.
. Failing the application.`
	unlaunched = `Application application_1_0001 failed 1 times due to Error launching appattempt_1_0001_000001. Got exception: java.net.ConnectException: Call From rm/10.0.0.1 to n1:45454 failed on connection exception: java.net.ConnectException: Connection refused; For more details see:  http://wiki.apache.org/hadoop/ConnectionRefused
	at java.base/jdk.internal.reflect.DirectConstructorHandleAccessor.newInstance(DirectConstructorHandleAccessor.java:62)
	at org.apache.hadoop.net.NetUtils.wrapWithMessage(NetUtils.java:948)
Caused by: java.net.ConnectException: Connection refused
	... 24 more
. Failing the application.`
)

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
		{"forgotten by YARN in the middle", running(), nil, proto.JobState_JOB_STATE_FAILED, "the ResourceManager does not know the job any longer, so it is over; this is the state that was saved last"},
		{"forgotten by YARN while it ended", stopping(), nil, proto.JobState_JOB_STATE_FAILED, "its own reason"},
		{"killed from outside", running(), &yarn.Report{State: yarn.StateKilled, Final: yarn.FinalKilled, Diagnostics: "Application killed by user."}, proto.JobState_JOB_STATE_KILLED, "Application killed by user."},
		{"the master crashed", running(), &yarn.Report{State: yarn.StateFailed, Final: yarn.FinalFailed, Diagnostics: crashed}, proto.JobState_JOB_STATE_FAILED, "its application master ended with exit code 1: yarn-submit: reading the job's spec: no such file"},
		{"the master was killed for its memory", running(), &yarn.Report{State: yarn.StateFailed, Final: yarn.FinalFailed, Diagnostics: overLimit}, proto.JobState_JOB_STATE_FAILED, "its application master ended with exit code -104: Container [pid=4711,containerID=container_1_0001_02_000001] is running 17825792B beyond the 'PHYSICAL' memory limit. Current usage: 273.0 MB of 256 MB physical memory used; 2.5 GB of 537.6 MB virtual memory used. Killing container; Container killed on request. Exit code is 143"},
		{"the master's node was lost", running(), &yarn.Report{State: yarn.StateFailed, Final: yarn.FinalFailed, Diagnostics: lost}, proto.JobState_JOB_STATE_FAILED, "its application master ended with exit code -100: Container released on a *lost* node"},
		{"the master's node was lost, and no page is known", running(), &yarn.Report{State: yarn.StateFailed, Final: yarn.FinalFailed, Diagnostics: strings.Replace(lost, lost[strings.Index(lost, "For more"):strings.LastIndex(lost, "\n. ")+1], "", 1)}, proto.JobState_JOB_STATE_FAILED, "its application master ended with exit code -100: Container released on a *lost* node"},
		{"the master could not be started", running(), &yarn.Report{State: yarn.StateFailed, Final: yarn.FinalFailed, Diagnostics: unlaunched}, proto.JobState_JOB_STATE_FAILED, "Application application_1_0001 failed 1 times due to Error launching appattempt_1_0001_000001. Got exception: Call From rm/10.0.0.1 to n1:45454 failed on connection exception: Connection refused; For more details see:  http://wiki.apache.org/hadoop/ConnectionRefused"},
		{"the master's own words", running(), &yarn.Report{State: yarn.StateFinished, Final: yarn.FinalFailed, Diagnostics: "worker-0 failed: torch.cuda.OutOfMemoryError: CUDA out of memory.\nIt was restarted 3 times."}, proto.JobState_JOB_STATE_FAILED, "worker-0 failed: torch.cuda.OutOfMemoryError: CUDA out of memory.\nIt was restarted 3 times."},
		{"failed without words", running(), &yarn.Report{State: yarn.StateFailed, Final: yarn.FinalFailed}, proto.JobState_JOB_STATE_FAILED, "YARN gave no reason"},
		{"running", running(), &yarn.Report{State: yarn.StateRunning}, proto.JobState_JOB_STATE_RUNNING, ""},
		{"waiting", &proto.JobStatus{State: proto.JobState_JOB_STATE_WAITING}, &yarn.Report{State: yarn.StateAccepted, Queue: "q", Diagnostics: "[x] Application is added to the scheduler and is not yet activated. Queue's AM resource limit exceeded.  Details : Queue Resource Limit for AM = <memory:1024, vCores:1>;"}, proto.JobState_JOB_STATE_WAITING, `the queue "q" has as many application masters as it allows (1 GB for all of them); the job starts when another job there ends, or in another queue (--queue)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			reconcileYARN(c.saved, c.report, "application_1_0001", time.Minute)
			if c.saved.State != c.state || c.saved.Why != c.why {
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
	reconcileLocal(s, Alive, "", "/log")
	if s.State.Done() || s.Why == "" {
		t.Errorf("a job whose master is starting is %s (%s)", s.State, s.Why)
	}
	reconcileLocal(s, Ended, "", "/log")
	if s.State != proto.JobState_JOB_STATE_FAILED || !strings.Contains(s.Why, "/log") {
		t.Errorf("a job whose master is gone is %s (%s)", s.State, s.Why)
	}
}

// What YARN says of an application is text from outside, cut anywhere.
func FuzzMasterEnd(f *testing.F) {
	f.Add(crashed)
	f.Add("AM Container exitCode: ")
	f.Add("Diagnostics: \n\n AM Container Last 4096 bytes of ")
	f.Fuzz(func(t *testing.T, s string) {
		defer bound.Memory(t, len(s), 100)()
		if strings.Count(MasterFailure(s), "\n") > 10 {
			t.Errorf("too much of %q", s)
		}
	})
}

// TestALocalJobBelongsToAMachine: only there it is known whether it has ended.
func TestALocalJobBelongsToAMachine(t *testing.T) {
	home := t.TempDir()
	t.Setenv(EnvHome, home)
	const id = "local-test"
	dir := filepath.Join(home, Directory(id))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if l := LocalLiveness(id); l != Unknown {
		t.Errorf("before its application master begins: %d", l)
	}
	if err := RecordMaster(dir, os.Getpid()); err != nil { // which is none
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, PIDFile))
	if err != nil {
		t.Fatal(err)
	}
	if l := LocalLiveness(id); l != Ended {
		t.Errorf("a process that is another one now: %d", l)
	}
	lines := strings.Split(string(text), "\n")
	for _, c := range []struct {
		what  string
		lines []int // that differ: the machine, its start, the namespace of process ids
		want  Liveness
	}{
		{"another machine", []int{1, 2}, Unknown},
		{"this machine before it was started again", []int{2}, Ended},
		{"another container of this machine", []int{1, 3}, Unknown},
		{"this machine, under another name", []int{1}, Ended},
	} {
		changed := slices.Clone(lines)
		for _, n := range c.lines {
			changed[n] += "x"
		}
		if err := os.WriteFile(filepath.Join(dir, PIDFile), []byte(strings.Join(changed, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		if l := LocalLiveness(id); l != c.want {
			t.Errorf("%s: %d, want %d", c.what, l, c.want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, PIDFile), []byte(lines[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	if l := LocalLiveness(id); l != Unknown {
		t.Errorf("where it is not known which machine: %d", l)
	}
}
