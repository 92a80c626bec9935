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

// elastic are ranks that can do with fewer.
func elastic(least, n int32) []*proto.RoleSpec {
	roles := ranks(n)
	roles[0].Min = least
	return roles
}

// playElastic begins a job of four ranks that can do with two.
func playElastic(t *testing.T, limits core.Limits) *player {
	t.Helper()
	p := playWith(t, elastic(2, 4), 3, 0, limits)
	p.step(event.Begin{})
	p.members("worker-0", "worker-1", "worker-2", "worker-3")
	return p
}

// members checks that these tasks run, in one generation, and that all others are parked.
func (p *player) members(want ...string) {
	p.t.Helper()
	in := " " + strings.Join(want, " ") + " "
	for _, t := range p.job.Tasks() {
		runs := t.State == proto.TaskState_TASK_STATE_RUNNING
		if member := strings.Contains(in, " "+t.Name+" "); runs != member || t.Parked == member {
			p.t.Fatalf("%s is %s, parked: %v; want %v to be all that work\n%s", t.Name, t.State, t.Parked, want, p.log.String())
		}
	}
}

func (p *player) says(want string) {
	p.t.Helper()
	if !strings.Contains(p.log.String(), want) {
		p.t.Fatalf("the transcript does not have %q:\n%s", want, p.log.String())
	}
}

// preempt has the scheduler take containers back, and none be free afterwards.
func (p *player) preempt(containers ...string) {
	p.t.Helper()
	p.mute["Allocated"] = true
	p.step(event.PreemptionWarned{Containers: containers, Strict: true, Within: 15 * time.Second})
	p.step(event.CheckpointSealed{})
}

// free answers what was asked for last for a task.
func (p *player) free(task, container string) {
	p.t.Helper()
	p.mute["Allocated"] = false
	request := ""
	for _, line := range strings.Split(p.log.String(), "\n") {
		if _, after, found := strings.Cut(line, "action.Ask{Request:"+task+"/"); found {
			request = task + "/" + after[:strings.Index(after, " ")]
		}
	}
	p.step(event.Allocated{Request: request, Container: container, Node: "n9"})
}

func TestAGroupGoesOnWithoutWhatIsPreempted(t *testing.T) {
	p := playElastic(t, core.Limits{})
	p.preempt("c3", "c4")
	p.members("worker-0", "worker-1")
	p.says("generation 1 works with 2 of 4 tasks (at least 2), without worker-2, worker-3")
	p.says("action.Start{Container:c1 Task:worker-0 Attempt:1 Generation:1 ConsistentServerState:false Absent:[2 3] WorldChanged:true}")

	// What returns joins at the next checkpoint, all that is there at once.
	p.free("worker-3", "c8")
	p.free("worker-2", "c9")
	p.wait(time.Minute)
	p.members("worker-0", "worker-1")
	p.step(event.CheckpointSealed{})
	p.members("worker-0", "worker-1", "worker-2", "worker-3")
	p.says("generation 2: all tasks start again because worker-2 joins")
	p.says("generation 2 works with all 4 tasks")
	for _, task := range p.job.Tasks() {
		if task.Failures() != 0 {
			t.Errorf("%s has %d failures", task.Name, task.Failures())
		}
	}
}

func TestAGroupThatGrowsDoesSoSeldom(t *testing.T) {
	p := playElastic(t, core.Limits{})
	p.preempt("c3", "c4")
	p.free("worker-2", "c8")
	p.step(event.CheckpointSealed{})
	p.members("worker-0", "worker-1", "worker-2")

	// Who comes a little later does not wait for long.
	p.free("worker-3", "c9")
	p.step(event.CheckpointSealed{})
	p.members("worker-0", "worker-1", "worker-2", "worker-3")

	// Where they come and go, the others are not stopped each time.
	comesAndGoes := func(was, is string) {
		t.Helper()
		p.preempt(was)
		p.members("worker-0", "worker-1", "worker-2")
		p.free("worker-3", is)
		p.step(event.CheckpointSealed{})
	}
	comesAndGoes("c9", "c10")
	p.members("worker-0", "worker-1", "worker-2", "worker-3")
	comesAndGoes("c10", "c11")
	p.members("worker-0", "worker-1", "worker-2")
	p.wait(4 * time.Minute)
	p.step(event.CheckpointSealed{})
	p.members("worker-0", "worker-1", "worker-2")
	p.wait(time.Minute)
	p.step(event.CheckpointSealed{})
	p.members("worker-0", "worker-1", "worker-2", "worker-3")
}

// TestWhatIsPreemptedAsksAgainLater: a scheduler that is asked at once may give to whom it
// has just taken from, and take it back.
func TestWhatIsPreemptedAsksAgainLater(t *testing.T) {
	p := playElastic(t, core.Limits{})
	asked := func() string {
		t.Helper()
		_, after, _ := strings.Cut(p.log.String()[strings.LastIndex(p.log.String(), "action.Ask{Request:worker-3/"):], " Pause:")
		pause, _, _ := strings.Cut(after, "}")
		return pause
	}
	last := "c4"
	for i, want := range []string{"5s", "10s", "20s", "30s", "30s"} {
		p.preempt(last)
		if got := asked(); got != want {
			t.Errorf("the %d. time, it is asked for another after %s; want %s", i+1, got, want)
		}
		last = fmt.Sprintf("c%d", 20+i)
		p.free("worker-3", last)
	}
	p.wait(3 * time.Minute)
	p.preempt(last)
	if got := asked(); got != "5s" {
		t.Errorf("after a calm time, it is asked for another after %s; want 5s", got)
	}

	// What the job cannot do without is asked for at once, and later if that was of no use.
	p = playWith(t, ranks(4), 3, 0, core.Limits{})
	p.step(event.Begin{})
	last = "c4"
	for i, want := range []string{"", "1s", "2s"} {
		p.preempt(last)
		if got := asked(); got != want {
			t.Errorf("the %d. time, what is needed is asked for after %q; want %q", i+1, got, want)
		}
		last = fmt.Sprintf("c%d", 20+i)
		p.free("worker-3", last)
	}
}

// TestWhatIsNotNeededDoesNotEndTheJob: whose containers are lost before anything works in them,
// as on a broken node, is asked for again and again, with growing pauses, as long as the others
// work without it.
func TestWhatIsNotNeededDoesNotEndTheJob(t *testing.T) {
	workers := psAndWorkers(1, 4)
	workers[1].Min = 2
	for name, c := range map[string]struct {
		roles []*proto.RoleSpec
		lose  func(p *player, container string)
		says  string
	}{
		"a parked rank": {elastic(2, 4), func(p *player, container string) {
			p.step(event.LaunchFailed{Container: container, Why: "no space left on device"})
		}, "the others work without it: agent did not come up (no space left on device)"},
		"a parked rank, for want of memory": {elastic(2, 4), func(p *player, container string) {
			p.step(event.ContainerEnded{Container: container, Cause: event.CauseOutOfMemory})
		}, "the others work without it: out of memory"},
		"a worker beside parameter servers": {workers, func(p *player, container string) {
			p.step(event.LaunchFailed{Container: container, Why: "no space left on device"})
		}, "(no space left on device; not counted, since the job can do without it)"},
	} {
		t.Run(name, func(t *testing.T) {
			p := playWith(t, c.roles, 3, 0, core.Limits{})
			p.step(event.Begin{})
			p.preempt(p.named("worker-3").Container)
			p.wait(3 * time.Minute)
			p.mute["AgentConnected"] = true
			for i := range 30 {
				lost := fmt.Sprintf("bad%d", i)
				p.free("worker-3", lost)
				p.mute["Allocated"] = true
				c.lose(p, lost)
				p.now = p.now.Add(time.Minute)
			}
			p.state(proto.JobState_JOB_STATE_RUNNING)
			p.says(c.says)
			p.says("Pause:1s")
			p.says("Pause:30s")
			for _, task := range []string{"worker-0", "worker-1"} {
				p.starts(task, true)
			}
			p.mute["AgentConnected"] = false
			p.free("worker-3", "good")
			p.step(event.CheckpointSealed{})
			p.starts("worker-3", true)
			if n := p.named("worker-3").Failures(); n != 0 {
				t.Errorf("it is charged with %d failures", n)
			}

			// What the job cannot do without ends it as ever.
			for i := range 12 {
				p.step(event.ContainerEnded{Container: p.named("worker-3").Container, Cause: event.CauseKilled})
				if state, _ := p.job.State(); state != proto.JobState_JOB_STATE_RUNNING && state != proto.JobState_JOB_STATE_WAITING {
					return
				}
				p.free("worker-3", fmt.Sprintf("good%d", i))
				p.wait(30 * time.Second)
				p.step(event.CheckpointSealed{})
			}
			t.Errorf("it loses the container in which it works as often as it likes\n%s", p.log.String())
		})
	}
}

// TestOneThatIsParkedAgainIsNotLost: a group that forms again without the same tasks as before
// says so, where one of them was lost meanwhile: nobody waits for it any longer.
func TestOneThatIsParkedAgainIsNotLost(t *testing.T) {
	p := playElastic(t, core.Limits{})
	p.preempt("c3", "c4")
	p.free("worker-3", "c8")
	p.mute["Allocated"], p.mute["StorePrepared"] = true, true
	p.step(event.ContainerEnded{Container: "c2", Cause: event.CauseKilled}) // and one of the others is needed
	p.step(event.ContainerEnded{Container: "c8", Cause: event.CauseKilled})
	p.free("worker-1", "c9")
	p.mute["Allocated"] = true
	p.wait(time.Minute)
	p.step(event.StorePrepared{})
	p.members("worker-0", "worker-1")
	p.says("Task:worker-3 Kind:lost")
	p.says("generation 2 works with 2 of 4 tasks (at least 2), without worker-2, worker-3")
}

func TestAGroupGrowsAfterATime(t *testing.T) {
	p := playElastic(t, core.Limits{Grow: 2 * time.Minute})
	p.preempt("c4")
	p.free("worker-3", "c8")
	p.wait(time.Minute)
	p.step(event.CheckpointSealed{})
	p.members("worker-0", "worker-1", "worker-2")
	p.wait(time.Minute)
	p.members("worker-0", "worker-1", "worker-2", "worker-3")
}

func TestAGroupWaitsWhereTooFewAreLeft(t *testing.T) {
	p := playElastic(t, core.Limits{})
	p.preempt("c2", "c3", "c4")
	p.wait(time.Hour)
	for _, task := range p.job.Tasks() {
		if task.State == proto.TaskState_TASK_STATE_RUNNING {
			t.Errorf("%s runs, and the group needs two", task.Name)
		}
	}
	p.free("worker-2", "c9")
	p.members("worker-0", "worker-2")
}

func TestAGroupWaitsForAWhileForWhatItLost(t *testing.T) {
	p := playElastic(t, core.Limits{QuorumWait: 20 * time.Second})
	p.mute["Allocated"] = true
	p.step(event.ContainerEnded{Container: "c1", Cause: event.CauseUnknown})
	p.wait(19 * time.Second)
	if got := p.named("worker-1").State; got == proto.TaskState_TASK_STATE_RUNNING {
		t.Fatalf("worker-1 did not wait\n%s", p.log.String())
	}
	p.wait(time.Second)
	p.members("worker-1", "worker-2", "worker-3")
	// The loss of what it does without concerns nobody.
	p.free("worker-0", "c9")
	p.step(event.ContainerEnded{Container: "c9", Cause: event.CauseUnknown})
	p.members("worker-1", "worker-2", "worker-3")
	// It ends with those that work.
	for _, task := range []string{"worker-1", "worker-2", "worker-3"} {
		p.exit(task, event.TaskExited{})
	}
	p.state(proto.JobState_JOB_STATE_SUCCEEDED)
}

// TestAMemberIsLostBeforeItStarts: the others would wait for it, or nobody would work at all,
// though there are enough that could.
func TestAMemberIsLostBeforeItStarts(t *testing.T) {
	for name, lose := range map[string]func(p *player){
		"preempted": func(p *player) { p.preempt(p.named("worker-2").Container) },
		"lost": func(p *player) {
			p.step(event.ContainerEnded{Container: p.named("worker-2").Container, Cause: event.CauseUnknown})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := playElastic(t, core.Limits{QuorumWait: 20 * time.Second})
			p.mute["Allocated"], p.mute["StorePrepared"] = true, true
			for _, c := range []string{"c1", "c2"} {
				p.step(event.ContainerEnded{Container: c, Cause: event.CauseUnknown})
			}
			p.wait(20 * time.Second)
			p.says("generation 1 works with 2 of 4 tasks (at least 2), without worker-0, worker-1")
			lose(p)
			p.mute["StorePrepared"] = false
			p.step(event.StorePrepared{})
			p.free("worker-0", "c9")
			p.wait(time.Minute)
			p.members("worker-0", "worker-3")
		})
	}
}

func TestAGroupDoesNotWaitForALostNode(t *testing.T) {
	p := playElastic(t, core.Limits{})
	p.mute["Allocated"] = true
	p.step(event.AgentDisconnected{Container: "c1"})
	p.exit("worker-1", event.TaskExited{Code: 1, PeerLost: true})
	p.wait(time.Second)
	if got := p.named("worker-1").State; got == proto.TaskState_TASK_STATE_RUNNING {
		t.Fatalf("the agent could have been back\n%s", p.log.String())
	}
	p.wait(2 * time.Second)
	p.members("worker-1", "worker-2", "worker-3")
	p.says("action.PrepareStore{AllDown:true Fenced:[c1]}")
	// The task starts again only once nothing can run any longer where it was.
	p.free("worker-0", "c9")
	p.step(event.CheckpointSealed{})
	p.members("worker-1", "worker-2", "worker-3")
	p.wait(time.Minute)
	p.step(event.CheckpointSealed{})
	p.members("worker-0", "worker-1", "worker-2", "worker-3")
}

// TestAFailureIsChargedAlsoWhereOneIsLeftBehind: a rank fails by itself, and the group goes on
// without another one, of which nothing is heard.
func TestAFailureIsChargedAlsoWhereOneIsLeftBehind(t *testing.T) {
	p := playElastic(t, core.Limits{})
	p.mute["TaskExited"], p.mute["Allocated"] = true, true
	p.exit("worker-1", event.TaskExited{Code: 1, Error: "ValueError: bad batch", Step: 7})
	for _, other := range []string{"worker-2", "worker-3"} {
		p.exit(other, event.TaskExited{Signal: 15, Stopped: true})
	}
	p.step(event.AgentDisconnected{Container: "c1", Silent: 5 * time.Second})
	p.members("worker-1", "worker-2", "worker-3")
	if a, b := p.named("worker-0"), p.named("worker-1"); a.Failures() != 0 || b.Failures() != 1 {
		t.Errorf("worker-0 is charged with %d failures, worker-1, which failed, with %d\n%s", a.Failures(), b.Failures(), p.log.String())
	}
	p.says("generation 1: all tasks start again because of worker-1: its process failed (ValueError: bad batch)")
}

// TestNobodyStartsBeforeWhatIsLeftBehindIsFenced: not even a task that has written nothing
// since the checkpoint directory was made safe to start from.
func TestNobodyStartsBeforeWhatIsLeftBehindIsFenced(t *testing.T) {
	p := playWith(t, elastic(1, 2), 3, 0, core.Limits{Grow: time.Minute})
	p.step(event.Begin{})
	p.preempt("c2")
	p.free("worker-1", "c8")
	p.wait(55 * time.Second)
	p.mute["TaskExited"], p.mute["Allocated"] = true, true
	p.step(event.AgentDisconnected{Container: "c1"})
	p.mute["StorePrepared"] = true
	p.wait(6 * time.Second) // worker-1 joins, and worker-0 is left behind
	p.says("generation 2 works with 1 of 2 tasks (at least 1), without worker-0")
	p.says("action.PrepareStore{AllDown:true Fenced:[c1]}")
	if p.named("worker-1").State == proto.TaskState_TASK_STATE_RUNNING {
		t.Errorf("worker-1 runs, and worker-0 may still save\n%s", p.log.String())
	}
	p.step(event.StorePrepared{})
	p.members("worker-1")
}

// TestAGroupIsMetElsewhereWhereOneIsLeftBehind: what is left behind may be about to meet the
// others, and must find none of them.
func TestAGroupIsMetElsewhereWhereOneIsLeftBehind(t *testing.T) {
	p := playElastic(t, core.Limits{})
	p.mute["Allocated"], p.mute["AgentPrepared"] = true, true
	p.step(event.AgentDisconnected{Container: "c1"})
	p.exit("worker-1", event.TaskExited{Code: 1, PeerLost: true})
	p.wait(3 * time.Second)
	p.says("generation 1 works with 3 of 4 tasks (at least 2), without worker-0")
	for _, c := range []string{"c2", "c3", "c4"} {
		p.says("action.ChangePort{Container:" + c + " Port:20004}")
	}
	// Nobody starts who does not listen there, whatever was heard late.
	p.step(event.AgentPrepared{Container: "c2", Port: 20000, PeerPort: 20000})
	p.starts("worker-1", false)
	p.step(event.AgentPrepared{Container: "c2", Port: 31000, PeerPort: 20004})
	p.starts("worker-1", true)
	if got := p.named("worker-1"); got.Port != 20004 || got.RealPort != 31000 {
		t.Errorf("worker-1 listens on port %d, and its peers know it by %d", got.RealPort, got.Port)
	}
	if got := p.named("worker-2"); got.RealPort != 0 {
		t.Errorf("peers are led to port %d of worker-2, which it has left", got.RealPort)
	}

	// Who has not heard of it is told again, by another application master, too.
	p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c2": "n1", "c3": "n2", "c4": "n0"}})
	for i, c := range []string{"c2", "c3", "c4"} {
		e := event.AgentConnected{Container: c, Host: "h", PID: 1, Task: fmt.Sprintf("worker-%d", i+1), Port: 20000, PeerPort: 20000}
		if c == "c2" {
			e.Port, e.PeerPort, e.Attempt, e.Generation, e.TaskPID = 31000, 20004, 1, 1, 7
		}
		p.step(e)
	}
	p.starts("worker-2", false)
	p.mute["AgentPrepared"] = false
	for i, c := range []string{"c3", "c4"} {
		p.step(event.AgentConnected{Container: c, Host: "h", PID: 1, Task: fmt.Sprintf("worker-%d", i+2), Port: 20000, PeerPort: 20000})
	}
	p.members("worker-1", "worker-2", "worker-3")
}

// TestAGroupIsMetWhereItWas: where what is lost is known to have ended.
func TestAGroupIsMetWhereItWas(t *testing.T) {
	p := playElastic(t, core.Limits{})
	p.preempt("c3")
	p.members("worker-0", "worker-1", "worker-3")
	p.step(event.ContainerEnded{Container: "c4", Cause: event.CausePreempted})
	p.members("worker-0", "worker-1")
	if strings.Contains(p.log.String(), "ChangePort") {
		t.Errorf("the group takes other ports, and nobody knows the old ones\n%s", p.log.String())
	}
}

// starts checks whether a task has an attempt.
func (p *player) starts(task string, want bool) {
	p.t.Helper()
	if got := p.named(task).State == proto.TaskState_TASK_STATE_RUNNING; got != want {
		p.t.Fatalf("%s runs: %v; want %v\n%s", task, got, want, p.log.String())
	}
}

func TestAGroupIsAMultiple(t *testing.T) {
	roles := elastic(2, 6)
	roles[0].Multiple = 2
	p := playWith(t, roles, 3, 0, core.Limits{})
	p.step(event.Begin{})
	p.preempt("c2")
	p.members("worker-0", "worker-2", "worker-3", "worker-4")
	p.free("worker-1", "c9")
	p.step(event.CheckpointSealed{})
	p.members("worker-0", "worker-1", "worker-2", "worker-3", "worker-4", "worker-5")
}

func TestAGroupKeepsItsSizeWhereTheCheckpointNeedsIt(t *testing.T) {
	p := playElastic(t, core.Limits{QuorumWait: time.Second})
	p.step(event.CheckpointSealed{FixedWorld: true})
	p.mute["Allocated"] = true
	p.step(event.ContainerEnded{Container: "c4", Cause: event.CauseUnknown})
	p.wait(time.Hour)
	p.says("the newest checkpoint can be read by as many ranks only as have saved it, so the job waits until 4 of the role worker are there")
	p.free("worker-3", "c9")
	p.members("worker-0", "worker-1", "worker-2", "worker-3")
}

// TestAGroupDoesNotGrowWhereTheCheckpointForbidsIt: not after a loss either.
func TestAGroupDoesNotGrowWhereTheCheckpointForbidsIt(t *testing.T) {
	p := playElastic(t, core.Limits{})
	p.preempt("c4")
	p.members("worker-0", "worker-1", "worker-2")
	p.step(event.CheckpointSealed{FixedWorld: true})
	p.free("worker-3", "c9")
	p.step(event.CheckpointSealed{FixedWorld: true})
	p.exit("worker-1", event.TaskExited{Signal: 9})
	p.wait(time.Hour)
	p.members("worker-0", "worker-1", "worker-2")
}

func TestAnotherMasterKnowsWhoIsInTheGroup(t *testing.T) {
	p := playElastic(t, core.Limits{})
	p.preempt("c3", "c4")
	since := p.now
	p.wait(time.Minute)
	p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1", "c2": "n2"}})
	p.members("worker-0", "worker-1")
	if got := p.named("worker-2"); !got.Since.Equal(since) || got.ParkedBy != event.CausePreempted {
		t.Errorf("worker-2 is parked since %s by %q; want %s and %q", got.Since, got.ParkedBy, since, event.CausePreempted)
	}
	if got := p.named("worker-0"); !got.Since.IsZero() {
		t.Errorf("worker-0, which works, is parked since %s", got.Since)
	}
	for i, c := range []string{"c1", "c2"} {
		p.step(event.AgentConnected{Container: c, Host: "h", PID: 1, Task: fmt.Sprintf("worker-%d", i), Port: 1, Attempt: 0})
	}
	if n := strings.Count(p.log.String(), "Absent:[2 3] WorldChanged:true}"); n != 4 {
		t.Errorf("%d times an attempt was told who is in the group; want 4\n%s", n, p.log.String())
	}
}

// TestParkedRanksGoFirst: of what the scheduler names it accepts others.
func TestParkedRanksGoFirst(t *testing.T) {
	p := playElastic(t, core.Limits{})
	named := func(container string) {
		t.Helper()
		p.step(event.PreemptionWarned{Containers: []string{container}, Within: 15 * time.Second})
		p.step(event.CheckpointSealed{})
	}
	p.mute["Allocated"] = true
	named("c2")
	p.members("worker-0", "worker-2", "worker-3")
	p.free("worker-1", "c8")
	p.mute["Allocated"] = true
	named("c1")
	p.members("worker-0", "worker-2", "worker-3")
	p.says("gets that of worker-1 in its place")
}

// TestTheFirstRankStays: a scheduler that names its container gets the last one's, where it
// accepts that, and where that has as much memory.
func TestTheFirstRankStays(t *testing.T) {
	for _, c := range []struct {
		name   string
		strict bool
		named  []string
		want   []string
	}{
		{"the first", false, []string{"c1"}, []string{"worker-0", "worker-1", "worker-2"}},
		{"the first, and no other will do", true, []string{"c1"}, []string{"worker-1", "worker-2", "worker-3"}},
		{"the first and the last", false, []string{"c4", "c1"}, []string{"worker-0", "worker-1"}},
		{"another", false, []string{"c2"}, []string{"worker-0", "worker-2", "worker-3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := playElastic(t, core.Limits{})
			p.mute["Allocated"] = true
			p.step(event.PreemptionWarned{Containers: c.named, Strict: c.strict, Within: 15 * time.Second})
			p.step(event.CheckpointSealed{})
			p.members(c.want...)
		})
	}
}

// TestAGroupDoesNotWaitForWhatTheSchedulerTook: it may be long in coming back.
func TestAGroupDoesNotWaitForWhatTheSchedulerTook(t *testing.T) {
	p := playElastic(t, core.Limits{})
	p.mute["Allocated"] = true
	p.step(event.ContainerEnded{Container: "c4", Cause: event.CausePreempted})
	p.members("worker-0", "worker-1", "worker-2")
}

// TestWhatWasSavedBeforeATakeover: the newest checkpoint, as the next master finds it, is no
// reason to stop those that work; how many ranks it needs is known.
func TestWhatWasSavedBeforeATakeover(t *testing.T) {
	p := playElastic(t, core.Limits{})
	p.preempt("c3", "c4")
	p.members("worker-0", "worker-1")
	p.free("worker-3", "w3")
	p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1", "c2": "n2", "w3": "n9"}})
	for c, pid := range map[string]int{"c1": 200, "c2": 200, "w3": 0} {
		task := p.named(map[string]string{"c1": "worker-0", "c2": "worker-1", "w3": "worker-3"}[c])
		p.step(event.AgentConnected{Container: c, Host: "h", PID: 100, Task: task.Name, Port: 20000, PeerPort: task.Port, Attempt: task.Attempt, Generation: 1, TaskPID: pid})
	}
	p.step(event.CheckpointFound{FixedWorld: true})
	p.members("worker-0", "worker-1")
	if !p.job.Journal().FixedWorld {
		t.Error("that as many ranks are needed is not known")
	}
	p.step(event.CheckpointFound{})
	p.members("worker-0", "worker-1")
	p.step(event.CheckpointSealed{})
	p.members("worker-0", "worker-1", "worker-2", "worker-3")
}
