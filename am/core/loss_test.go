package core_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/am/core"
	"holdfast/am/core/event"
	"holdfast/proto"
)

// TestLossesThatEndAJob: containers that are lost again and again are a reason
// to give up, but not where the cluster loses or wants back the nodes.
func TestLossesThatEndAJob(t *testing.T) {
	for cause, want := range map[event.Cause]proto.JobState{
		event.CauseKilled:    proto.JobState_JOB_STATE_FAILED,
		event.CauseNodeLost:  proto.JobState_JOB_STATE_RUNNING,
		event.CausePreempted: proto.JobState_JOB_STATE_RUNNING,
	} {
		p := play(t, psAndWorkers(1, 1), 3)
		p.step(event.Begin{})
		for range 12 {
			if state, _ := p.job.State(); state == proto.JobState_JOB_STATE_RUNNING {
				p.step(event.ContainerEnded{Container: p.named("ps-0").Container, Cause: cause})
				p.wait(time.Minute)
			}
		}
		p.state(want)
	}
}

// TestAServiceEnds: that it ended with exit code 0 is no failure of its process, and the loss says
// what was expected of it instead.
func TestAServiceEnds(t *testing.T) {
	p := play(t, psAndWorkers(1, 1), 0)
	p.step(event.Begin{})
	p.exit("ps-0", event.TaskExited{Detail: "exited with 0"})
	p.says("attempt 0: its process ended (exit code 0, but a ps must run until the others are done)")
	p.state(proto.JobState_JOB_STATE_FAILED)
	p.says("ps-0 failed once, and --restarts 0 allows no restart; the last time: exit code 0, but a ps must")
}

// TestNothingIsAskedForOnceTheJobEnds: also by what is found lost at the same time, and
// by a container whose agent cannot be started.
func TestNothingIsAskedForOnceTheJobEnds(t *testing.T) {
	for name, lose := range map[string]func(p *player){
		"two agents are silent for too long": func(p *player) {
			p.step(event.ContainerEnded{Container: "c1", Cause: event.CauseKilled})
			p.mute["TaskExited"], p.mute["AgentDisconnected"] = true, true
			p.step(event.AgentDisconnected{Container: p.named("worker-0").Container})
			p.step(event.AgentDisconnected{Container: "c2"})
			p.wait(13 * time.Second)
		},
		"an agent cannot be started": func(p *player) {
			p.mute["AgentConnected"], p.mute["ContainerEnded"] = true, true
			p.step(event.ContainerEnded{Container: p.named("worker-1").Container, Cause: event.CausePreempted})
			p.mute["TaskExited"], p.mute["AgentDisconnected"] = true, true
			p.step(event.Kill{Why: "killed"})
			p.step(event.LaunchFailed{Container: p.named("worker-1").Container, Why: "no"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := playWith(t, psAndWorkers(0, 2), 3, 0, core.Limits{Losses: 1})
			p.step(event.Begin{})
			lose(p)
			_, after, ends := strings.Cut(p.log.String(), "the job is stopped")
			if !ends || strings.Contains(after, "action.Ask") || strings.Contains(after, "action.Assign") {
				t.Errorf("it ends: %v, and asks for containers after that\n%s", ends, p.log.String())
			}
		})
	}
}

func TestCausesAreNamed(t *testing.T) {
	seen := map[string]bool{}
	for c := event.CauseUnknown; c <= event.CauseVirtualLimit; c++ {
		s := c.String()
		if s == "" || seen[s] {
			t.Errorf("cause %d has no text of its own: %q", c, s)
		}
		seen[s] = true
	}
}

// TestAnAgentThatSavesItsLogsIsAwaited: also one whose connection breaks while the job ends,
// for as long as agents get.
func TestAnAgentThatSavesItsLogsIsAwaited(t *testing.T) {
	for _, s := range []struct {
		name string
		do   func(p *player, c string)
	}{
		{"it is back", func(p *player, c string) {
			p.step(event.AgentConnected{Container: c, Host: "h", PID: 100, Task: "worker-0", Port: 20000, Exited: &event.TaskExited{}})
			p.says("action.ReleaseAgent{Container:" + c)
			p.step(event.AgentDisconnected{Container: c, Orderly: true})
		}},
		{"its container ends", func(p *player, c string) { p.step(event.ContainerEnded{Container: c, Exit: 0}) }},
		{"nothing is heard of it", func(p *player, c string) { p.wait(10 * time.Second) }},
	} {
		t.Run(s.name, func(t *testing.T) {
			p := trains(t, psAndWorkers(0, 1), 3)
			p.mute["AgentDisconnected"] = true
			c := p.hosted["worker-0"]
			p.exit("worker-0", event.TaskExited{})
			p.step(event.AgentDisconnected{Container: c})
			p.wait(9 * time.Second)
			if p.job.Finished() {
				t.Fatalf("the container was given back under the agent:\n%s", p.log.String())
			}
			s.do(p, c)
			p.state(proto.JobState_JOB_STATE_SUCCEEDED)
		})
	}
}

// TestRanksThatSaveTogether: ranks that SIGTERM does not end, as they would agree on a step
// to save at, do not get the time for that once one of them is lost, and do when all are
// there.
func TestRanksThatSaveTogether(t *testing.T) {
	roles := ranks(3)
	roles[0].SavesTogether = true
	p := playWith(t, roles, 3, 0, core.Limits{Stop: 8 * time.Second})
	p.step(event.Begin{})
	p.exit("worker-1", event.TaskExited{Signal: 9})
	for _, want := range []string{"action.Vacate{Container:c1 Grace:500ms}", "action.Vacate{Container:c3 Grace:500ms}"} {
		if !strings.Contains(p.log.String(), want) {
			t.Errorf("no %s\n%s", want, p.log.String())
		}
	}
	p.wait(time.Minute)
	mark := p.log.Len()
	p.step(event.PreemptionWarned{Containers: []string{"c1"}, Strict: true, Within: 40 * time.Second})
	p.wait(30 * time.Second)
	for _, want := range []string{"action.Vacate{Container:c1 Grace:10s}", "action.Vacate{Container:c2 Grace:10s}"} {
		if !strings.Contains(p.since(mark), want) {
			t.Errorf("before a container is given back: no %s\n%s", want, p.since(mark))
		}
	}

	p = playWith(t, roles, 3, 0, core.Limits{Stop: -1})
	p.step(event.Begin{})
	p.exit("worker-1", event.TaskExited{Signal: 9})
	if strings.Contains(p.log.String(), "Vacate") {
		t.Errorf("they get longer than all do\n%s", p.log.String())
	}
}

// TestWhatDoesNotEnd: an attempt that ends neither when it is stopped nor when it is killed, as
// one that hangs in the kernel, holds nobody up for ever. Its container is given up, its node is
// avoided, and nothing is started in its place before what is left of it can save nothing.
func TestWhatDoesNotEnd(t *testing.T) {
	const said = "has not ended within 30s of SIGKILL"
	for name, c := range map[string]struct {
		roles []*proto.RoleSpec
		stop  func(p *player) // worker-1
		state proto.JobState
	}{
		"all start again together": {ranks(2), func(p *player) {
			p.exit("worker-0", event.TaskExited{Code: 1, Error: "RuntimeError: NCCL"})
		}, proto.JobState_JOB_STATE_RUNNING},
		"a person asks for its restart": {psAndWorkers(1, 2), func(p *player) {
			p.asks("worker-1")
		}, proto.JobState_JOB_STATE_RUNNING},
		"it has stalled": {psAndWorkers(1, 2), func(p *player) {
			p.steps(12, time.Second, "worker-0", "worker-1")
			p.steps(2, time.Second, "worker-0")
			p.wait(10 * time.Minute)
		}, proto.JobState_JOB_STATE_RUNNING},
		"it has to move": {psAndWorkers(1, 2), func(p *player) {
			p.step(event.PreemptionWarned{Containers: []string{p.named("worker-1").Container}, Strict: true, Within: 16 * time.Second})
			p.wait(8 * time.Second)
		}, proto.JobState_JOB_STATE_RUNNING},
		"another application master is there by then": {ranks(2), func(p *player) {
			p.exit("worker-0", event.TaskExited{Code: 1, Error: "RuntimeError: NCCL"})
			p.wait(20 * time.Second)
			p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1", "c2": "n2"}})
			for i, c := range []string{"c1", "c2"} {
				e := event.AgentConnected{Container: c, Host: "h", PID: 100, Task: fmt.Sprintf("worker-%d", i), Port: 20000, PeerPort: 20000}
				if i == 1 {
					e.TaskPID = 200
				}
				p.step(e)
			}
		}, proto.JobState_JOB_STATE_RUNNING},
		"it has stalled for the last time": {psAndWorkers(0, 2), func(p *player) {
			p.mute["TaskExited"] = false
			p.steps(12, time.Second, "worker-0", "worker-1")
			p.steps(2, time.Second, "worker-0")
			p.wait(20 * time.Minute)
			p.mute["TaskExited"] = true
			p.wait(10 * time.Minute)
		}, proto.JobState_JOB_STATE_FAILED},
	} {
		t.Run(name, func(t *testing.T) {
			p := trains(t, c.roles, 3)
			p.mute["TaskExited"], p.mute["AgentDisconnected"] = true, true
			left := p.named("worker-1")
			c.stop(p)
			p.wait(limits.Stop + limits.Kill - time.Second)
			if strings.Contains(p.log.String(), said) {
				t.Fatalf("it is given up too early\n%s", p.log.String())
			}
			p.wait(30 * time.Second)
			if c.state == proto.JobState_JOB_STATE_FAILED {
				p.state(c.state)
				return
			}
			p.says(said)
			p.says("action.Release{Container:" + left.Container + "}")
			p.says("the node " + left.Node + " is avoided")
			if at := strings.Index(p.log.String(), said); strings.Contains(p.log.String()[at:], "action.Start{Container:"+left.Container) {
				t.Errorf("it starts again where something is left\n%s", p.log.String())
			}
			p.state(c.state)
			if is := p.named("worker-1"); is.State != proto.TaskState_TASK_STATE_RUNNING || is.Attempt != 1 || is.Container == left.Container {
				t.Errorf("attempt %d in %s is %s\n%s", is.Attempt, is.Container, is.State, p.log.String())
			}
		})
	}
}

// TestWhatDoesNotEndWhereItsAgentComesAndGoes: the time in which an attempt is to end goes on
// while its agent is connected, however often that is not.
func TestWhatDoesNotEndWhereItsAgentComesAndGoes(t *testing.T) {
	p := play(t, ranks(2), 3)
	p.step(event.Begin{})
	p.mute["TaskExited"], p.mute["AgentDisconnected"] = true, true
	p.exit("worker-0", event.TaskExited{Code: 1})
	for range 4 { // connected for 8 seconds, and then not for 8
		p.wait(8 * time.Second)
		p.step(event.AgentDisconnected{Container: "c2"})
		p.wait(8 * time.Second)
		p.step(event.AgentConnected{Container: "c2", Host: "h", PID: 100, Task: "worker-1", Port: 20000, PeerPort: 20000, TaskPID: 200})
	}
	if strings.Contains(p.log.String(), "of SIGKILL") {
		t.Fatalf("its agent was connected for 32 seconds\n%s", p.log.String())
	}
	p.wait(limits.Stop + limits.Kill - 32*time.Second)
	p.says("of SIGKILL")
}

// TestAnAgentThatDoesNotAnswer: one that is connected, and does not do what it was told, holds
// nobody up for ever. Its container is given up, and nothing is started in its place before it
// has lost its lease.
func TestAnAgentThatDoesNotAnswer(t *testing.T) {
	elastic := func() []*proto.RoleSpec {
		roles := ranks(3)
		roles[0].Min = 2
		return roles
	}
	for name, c := range map[string]struct {
		roles []*proto.RoleSpec
		tell  func(p *player) // worker-1
		told  string
	}{
		"to start an attempt": {psAndWorkers(1, 2), func(p *player) {
			p.mute["TaskStarted"] = true
			p.exit("worker-1", event.TaskExited{Signal: 9})
			delete(p.mute, "TaskStarted")
		}, "start attempt 1"},
		"to start one of those that start together": {ranks(2), func(p *player) {
			p.exit("worker-0", event.TaskExited{Signal: 9})
			p.step(event.AgentDisconnected{Container: p.hosted["worker-1"]})
			p.mute["TaskStarted"] = true
			p.step(event.AgentConnected{Container: p.hosted["worker-1"], Host: "h", PID: 100, Task: "worker-1", Port: 20000, PeerPort: 20000})
			delete(p.mute, "TaskStarted")
		}, "start attempt 1"},
		"to listen on another port": {elastic(), func(p *player) {
			p.mute["Allocated"], p.mute["AgentPrepared"] = true, true
			p.step(event.AgentDisconnected{Container: p.hosted["worker-2"]})
			p.exit("worker-0", event.TaskExited{Code: 1, PeerLost: true})
			p.wait(3 * time.Second)
			delete(p.mute, "Allocated")
			delete(p.mute, "AgentPrepared")
			p.step(event.AgentPrepared{Container: p.hosted["worker-0"], Port: p.named("worker-0").Port, PeerPort: p.named("worker-0").Port})
		}, "listen on port"},
		"to let an attempt end that lingers": {psAndWorkers(1, 2), func(p *player) {
			p.mute["LetEnd"] = true
			p.step(event.TaskLingers{Container: p.hosted["worker-1"]})
			delete(p.mute, "LetEnd")
		}, "let attempt 0 end"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			p := trains(t, c.roles, 3)
			left := p.named("worker-1")
			c.tell(p)
			failures, mark := p.named("worker-1").Failures(), p.log.Len()
			p.wait(limits.Answer - 4*time.Second)
			if strings.Contains(p.since(mark), "action.Release{Container:"+left.Container) {
				t.Fatalf("it is given up too early\n%s", p.log.String())
			}
			p.mute["AgentDisconnected"] = true
			p.wait(5 * time.Second)
			p.says("its agent on " + left.Node + " was told to " + c.told)
			for _, want := range []string{"action.ReleaseAgent{Container:" + left.Container, "action.Release{Container:" + left.Container + "}"} {
				p.says(want)
			}
			if is := p.named("worker-1"); is.State == proto.TaskState_TASK_STATE_RUNNING {
				t.Errorf("it is %s in %s before the lease has expired\n%s", is.State, is.Container, p.log.String())
			}
			p.wait(limits.LeaseExpiry + limits.QuorumWait)
			p.state(proto.JobState_JOB_STATE_RUNNING)
			if is := p.named("worker-1"); is.State != proto.TaskState_TASK_STATE_RUNNING || is.Attempt <= left.Attempt || is.Container == left.Container || is.Failures() != failures {
				t.Errorf("attempt %d in %s is %s, with %d failures\n%s", is.Attempt, is.Container, is.State, is.Failures(), p.log.String())
			}
		})
	}
}

// TestAnAgentThatDoesNotEnd: the container of a task that is done is given back all the same.
func TestAnAgentThatDoesNotEnd(t *testing.T) {
	p := trains(t, psAndWorkers(1, 2), 3)
	p.mute["AgentDisconnected"] = true
	left := p.hosted["worker-1"]
	p.exit("worker-1", event.TaskExited{})
	p.wait(limits.Answer - time.Second)
	if strings.Contains(p.log.String(), "action.Release{") {
		t.Fatalf("its agent may be saving logs\n%s", p.log.String())
	}
	p.wait(time.Second)
	p.says("action.Release{Container:" + left + "}")
	if is := p.named("worker-1"); is.State != proto.TaskState_TASK_STATE_SUCCEEDED {
		t.Errorf("it is %s", is.State)
	}
}

// TestWhatIsAnsweredIsNotAwaited: the program that an agent has let end takes the time that it
// takes, also where that was told by another application master.
func TestWhatIsAnsweredIsNotAwaited(t *testing.T) {
	p := trains(t, psAndWorkers(1, 2), 3)
	p.step(event.TaskLingers{Container: p.hosted["worker-1"]})
	p.wait(10 * time.Minute)
	p.mute["LetEnd"] = true
	p.step(event.TaskLingers{Container: p.hosted["worker-0"]})
	p.wait(10 * time.Second)
	p.step(event.AgentDisconnected{Container: p.hosted["worker-0"]})
	p.attach(p.hosted["worker-0"]) // it does not say that it lingers
	p.wait(10 * time.Minute)
	for _, task := range []string{"worker-0", "worker-1"} {
		if is := p.named(task); is.Attempt != 0 || is.State != proto.TaskState_TASK_STATE_RUNNING {
			t.Errorf("attempt %d of %s is %s\n%s", is.Attempt, task, is.State, p.log.String())
		}
	}
}

// TestTimesBeginWhenAgentsAreTold: as long as the journal cannot be written, nothing is told, and
// nobody is given up for what he was not told.
func TestTimesBeginWhenAgentsAreTold(t *testing.T) {
	for name, c := range map[string]struct {
		answer string // to what
		tell   func(p *player)
		says   string
		limit  time.Duration
	}{
		"to start": {"TaskStarted", func(p *player) { p.exit("worker-1", event.TaskExited{Signal: 9}) }, "start attempt 1", limits.Answer},
		"to stop":  {"TaskExited", func(p *player) { p.asks("worker-1") }, "of SIGKILL", limits.Stop + limits.Kill},
	} {
		t.Run(name, func(t *testing.T) {
			p := playWith(t, psAndWorkers(0, 2), 3, 0, core.Limits{Journaled: true})
			p.step(event.Begin{})
			p.mute[c.answer], p.mute["AgentDisconnected"] = true, true
			p.step(event.Sent{Until: p.now})
			p.wait(time.Second)
			c.tell(p)
			p.wait(10 * time.Minute)
			if strings.Contains(p.log.String(), c.says) {
				t.Fatalf("it is given up, and was not told\n%s", p.log.String())
			}
			p.step(event.Sent{Until: p.now})
			p.wait(c.limit - time.Second)
			if strings.Contains(p.log.String(), c.says) {
				t.Fatalf("it is given up too early\n%s", p.log.String())
			}
			p.wait(time.Second)
			p.says(c.says)
		})
	}
}
