package core_test

import (
	"strings"
	"testing"
	"time"

	"holdfast/am/core/event"
	"holdfast/proto"
)

// lingers has a task say that it has done its work, and that its process stays.
func (p *player) lingers(task string) {
	p.t.Helper()
	p.step(event.PeersNeeded{Container: p.hosted["worker-0"]})
	p.step(event.TaskLingers{Container: p.hosted[task], Attempt: p.named(task).Attempt})
}

// letEnd counts how often processes were let end so far.
func (p *player) letEnd() int { return strings.Count(p.log.String(), "action.EndLingering{") }

// TestProcessesLingerForOthers: a process that has done its work stays while another task
// is at work, whatever becomes of that, and its exit code counts when it has ended.
func TestProcessesLingerForOthers(t *testing.T) {
	p := trains(t, psAndWorkers(1, 3), 3)
	p.steps(12, time.Second, "worker-0", "worker-1", "worker-2")
	p.lingers("worker-1")
	p.exit("worker-0", event.TaskExited{Code: 1}) // it is restarted
	p.lingers("worker-2")
	p.wait(time.Minute)
	if s := p.named("worker-1").State; s != proto.TaskState_TASK_STATE_RUNNING || p.letEnd() != 0 {
		t.Fatalf("worker-1 is %s, and %d were let end\n%s", s, p.letEnd(), &p.log)
	}
	p.exit("worker-0", event.TaskExited{})
	if p.letEnd() != 2 {
		t.Fatalf("%d were let end\n%s", p.letEnd(), &p.log)
	}
	p.exit("worker-1", event.TaskExited{})
	if s, _ := p.job.State(); s != proto.JobState_JOB_STATE_RUNNING {
		t.Fatalf("the job is %s before worker-2 has ended", s)
	}
	p.exit("worker-2", event.TaskExited{})
	p.state(proto.JobState_JOB_STATE_SUCCEEDED)
}

// TestNobodyLingersForNothing: where no task needs the others, who has done its work ends at
// once.
func TestNobodyLingersForNothing(t *testing.T) {
	p := trains(t, psAndWorkers(1, 2), 3)
	p.step(event.TaskLingers{Container: p.hosted["worker-1"]})
	if p.letEnd() != 1 {
		t.Fatalf("%d were let end\n%s", p.letEnd(), &p.log)
	}
	p.exit("worker-1", event.TaskExited{})
	if s := p.named("worker-1").State; s != proto.TaskState_TASK_STATE_SUCCEEDED {
		t.Fatalf("worker-1 is %s\n%s", s, &p.log)
	}
}

// TestALingeringProcessMayFailAtItsEnd: then its task is restarted as after any failure.
func TestALingeringProcessMayFailAtItsEnd(t *testing.T) {
	p := trains(t, psAndWorkers(1, 2), 3)
	p.steps(12, time.Second, "worker-0", "worker-1")
	p.lingers("worker-1")
	p.exit("worker-0", event.TaskExited{})
	p.exit("worker-1", event.TaskExited{Code: 3})
	p.wait(time.Minute)
	if w := p.named("worker-1"); w.Attempt != 1 || w.Failures() != 1 {
		t.Fatalf("worker-1 is %+v\n%s", w, &p.log)
	}
	p.exit("worker-1", event.TaskExited{})
	p.state(proto.JobState_JOB_STATE_SUCCEEDED)
}

// TestLingeringIsToldAgain: who was not heard, or was let end by an application master that
// it did not hear, says so again, and is let end again.
func TestLingeringIsToldAgain(t *testing.T) {
	p := trains(t, psAndWorkers(1, 2), 3)
	p.steps(12, time.Second, "worker-0", "worker-1")
	p.lingers("worker-0")
	p.lingers("worker-1")
	if p.letEnd() != 2 {
		t.Fatalf("%d were let end\n%s", p.letEnd(), &p.log)
	}
	p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{p.hosted["ps-0"]: "n1", p.hosted["worker-0"]: "n2", p.hosted["worker-1"]: "n0"}})
	for _, task := range []string{"ps-0", "worker-0", "worker-1"} {
		p.step(event.AgentConnected{Container: p.hosted[task], Host: "h", PID: 100, Task: task, Port: 20000, PeerPort: 20000, TaskPID: 200})
	}
	// The need for others is in the journal, and who has it may be gone.
	p.step(event.TaskLingers{Container: p.hosted["worker-0"]})
	if p.letEnd() != 2 {
		t.Fatalf("%d were let end, and worker-1 is at work for all that is known\n%s", p.letEnd(), &p.log)
	}
	p.lingers("worker-1")
	if p.letEnd() != 4 {
		t.Fatalf("%d were let end\n%s", p.letEnd(), &p.log)
	}
}

// TestWhoReportsLastNeedsTheOthers: without a journal, it is known from the reports that
// processes are needed, in whatever order these come.
func TestWhoReportsLastNeedsTheOthers(t *testing.T) {
	p := trains(t, psAndWorkers(1, 2), 3)
	p.lingers("worker-1")
	p.forgets = true
	p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{p.hosted["ps-0"]: "n1", p.hosted["worker-0"]: "n2", p.hosted["worker-1"]: "n0"}})
	connect := func(task string, needsPeers bool) {
		p.step(event.AgentConnected{Container: p.hosted[task], Host: "h", PID: 100, Task: task, Port: 20000, PeerPort: 20000, TaskPID: 200, NeedsPeers: needsPeers})
	}
	connect("worker-1", false)
	p.step(event.TaskLingers{Container: p.hosted["worker-1"]})
	connect("ps-0", false)
	connect("worker-0", true) // it is the last that is waited for
	if p.letEnd() != 0 {
		t.Fatalf("%d were let end, and worker-0 needs the others\n%s", p.letEnd(), &p.log)
	}
}

// TestAStallIsNotTheFaultOfWhoLingers: it makes no steps, and nobody expects any.
func TestAStallIsNotTheFaultOfWhoLingers(t *testing.T) {
	p := trains(t, psAndWorkers(1, 2), 3)
	p.steps(12, time.Second, "worker-0", "worker-1")
	p.lingers("worker-1")
	p.steps(12, time.Second, "worker-0")
	for p.named("worker-0").Attempt == 0 && p.now.Sub(p.start) < time.Hour {
		p.wait(time.Second)
	}
	if a, b := p.named("worker-0").Attempt, p.named("worker-1").Attempt; a == 0 || b != 0 {
		t.Fatalf("worker-0 runs attempt %d, worker-1 attempt %d\n%s", a, b, &p.log)
	}
	p.wait(time.Hour) // that has not helped, so all are started again
	if n := p.named("worker-1").Attempt; n != 1 {
		t.Fatalf("worker-1 runs attempt %d\n%s", n, &p.log)
	}
}

// TestWhoLingersMoves: off a node that is taken out of service, like a task that works.
func TestWhoLingersMoves(t *testing.T) {
	p := trains(t, psAndWorkers(1, 2), 3)
	p.lingers("worker-1")
	p.step(event.NodeDecommissioning{Node: p.named("worker-1").Node, Within: time.Hour})
	p.wait(time.Minute)
	if w := p.named("worker-1"); w.Attempt != 1 || w.Failures() != 0 {
		t.Fatalf("worker-1 is %+v\n%s", w, &p.log)
	}
}

// TestWhoLingersIsStoppedWithTheJob: an optional task is let end with the others, and a job
// that is killed does not wait for anybody.
func TestWhoLingersIsStoppedWithTheJob(t *testing.T) {
	p := trains(t, append(psAndWorkers(1, 2), optionalRole("evaluator", time.Hour)), 3)
	p.lingers("worker-1")
	p.lingers("evaluator-0")
	p.exit("worker-0", event.TaskExited{})
	p.exit("worker-1", event.TaskExited{})
	p.exit("evaluator-0", event.TaskExited{})
	p.state(proto.JobState_JOB_STATE_SUCCEEDED)
	p = trains(t, psAndWorkers(1, 2), 3)
	p.lingers("worker-1")
	p.step(event.Kill{Why: "wanted"})
	if !strings.Contains(p.log.String(), "action.Stop{Container:"+p.hosted["worker-1"]) {
		t.Errorf("worker-1 was not told to end\n%s", &p.log)
	}
	p.state(proto.JobState_JOB_STATE_KILLED)
}
