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

// TestTranscriptsOfMoves: losses that are announced.
func TestTranscriptsOfMoves(t *testing.T) {
	warned := func(strict bool, containers ...string) event.PreemptionWarned {
		return event.PreemptionWarned{Containers: containers, Strict: strict, Within: 16 * time.Second}
	}
	for _, s := range []struct {
		name   string
		roles  []*proto.RoleSpec
		spares int
		script func(p *player)
	}{
		{"preempted after a checkpoint, and room returns", psAndWorkers(1, 2), 0, func(p *player) {
			p.step(warned(false, "c3"))
			p.step(warned(false, "c3"))
			p.wait(2 * time.Second)
			p.mute["Allocated"] = true
			p.step(event.CheckpointSealed{})
			p.step(event.ContainerEnded{Container: "c3", Cause: event.CauseOwnFault})
			p.step(event.Waiting{Why: "the queue is full"})
			p.wait(time.Minute)
			p.step(event.Allocated{Request: "worker-1/4", Container: "c9", Node: "n1"})
		}},
		{"preempted without a checkpoint", psAndWorkers(1, 1), 0, func(p *player) {
			p.step(warned(true, "c1"))
			p.wait(20 * time.Second)
		}},
		{"the scheduler takes back that it wants containers", psAndWorkers(1, 2), 0, func(p *player) {
			over := event.PreemptionCanceled{Containers: []string{"c1", "c2", "c3"}, Why: "the ResourceManager was restarted"}
			p.step(warned(true, "c1"))
			p.step(warned(false, "c3"))
			p.wait(2 * time.Second)
			p.step(over) // c2 was not wanted
			p.step(event.CheckpointSealed{})
			p.wait(time.Minute)
			p.step(warned(true, "c1"))
			p.mute["TaskExited"] = true
			p.step(event.CheckpointSealed{})
			p.step(over) // it has been told to stop
			p.mute["TaskExited"] = false
			p.exit("ps-0", event.TaskExited{Signal: 15, Stopped: true})
		}},
		{"a node closes and stays, and the scheduler wants a container there", psAndWorkers(1, 1), 0, func(p *player) {
			p.mute["AgentConnected"] = true
			p.step(warned(true, "c1"))
			p.step(event.NodeDecommissioning{Node: "n1", Within: time.Hour})
			p.step(event.NodeRecommissioned{Node: "n1"})
			p.wait(8 * time.Second)
		}},
		{"the agent has much to write before it leaves", psAndWorkers(1, 1), 0, func(p *player) {
			p.mute["AgentDisconnected"] = true
			p.step(warned(true, "c1"))
			p.step(event.CheckpointSealed{})
			p.wait(5 * time.Second)
			p.step(event.AgentDisconnected{Container: "c1", Orderly: true})
		}},
		{"the scheduler does not wait", psAndWorkers(1, 1), 0, func(p *player) {
			p.step(warned(true, "c1"))
			p.wait(time.Second)
			p.step(event.ContainerEnded{Container: "c1", Cause: event.CausePreempted, Diagnostics: "preempted"})
		}},
		{"preempted more often than containers may be lost", psAndWorkers(0, 1), 0, func(p *player) {
			for range 30 {
				p.step(event.ContainerEnded{Container: p.hosted["worker-0"], Cause: event.CausePreempted, Diagnostics: "preempted"})
				p.wait(time.Second)
			}
		}},
		{"a spare is given instead", psAndWorkers(1, 1), 1, func(p *player) {
			p.step(warned(false, "c1"))
			p.wait(2 * time.Minute)
		}},
		{"a spare is wanted back", psAndWorkers(1, 1), 1, func(p *player) {
			p.step(warned(true, "c3"))
			p.wait(2 * time.Minute)
		}},
		{"a task that does not run is wanted back", psAndWorkers(1, 1), 0, func(p *player) {
			p.exit("worker-0", event.TaskExited{Code: 1})
			p.wait(2 * time.Second)
			p.exit("worker-0", event.TaskExited{Code: 1})
			p.step(warned(true, "c2"))
			p.wait(20 * time.Second)
		}},
		{"a node closes", psAndWorkers(2, 2), 0, func(p *player) { // c1 and c4 are on n1
			p.step(event.NodeDecommissioning{Node: "n1", Within: 10 * time.Minute})
			p.step(event.NodeDecommissioning{Node: "n1", Within: 9 * time.Minute})
			p.wait(time.Second)
			p.step(event.CheckpointSealed{})
			p.wait(time.Minute)
		}},
		{"the node of the application master closes", psAndWorkers(1, 1), 0, func(p *player) {
			p.step(event.NodeDecommissioning{Node: "n0", Within: time.Minute, HostsAM: true}) // it alone is there
			p.step(event.NodeDecommissioning{Node: "n1", Within: time.Minute, HostsAM: true})
		}},
		{"a node closes, and there is no room elsewhere", psAndWorkers(1, 1), 0, func(p *player) {
			p.mute["Allocated"] = true
			p.step(event.NodeDecommissioning{Node: "n1", Within: 2 * time.Minute})
			p.wait(2 * time.Minute)
			p.step(event.Allocated{Request: "spare/3", Container: "c9", Node: "n2"})
		}},
		{"a task is lost while its node closes", psAndWorkers(1, 1), 0, func(p *player) {
			p.mute["AgentConnected"] = true
			p.step(event.NodeDecommissioning{Node: "n1"})
			p.step(event.ContainerEnded{Container: "c1", Cause: event.CauseKilled, Diagnostics: "killed"})
			p.mute["AgentConnected"] = false
			p.step(event.AgentConnected{Container: "c3", Host: "h", PID: 100})
		}},
		{"a node stays after all", psAndWorkers(1, 1), 1, func(p *player) {
			p.mute["AgentConnected"] = true
			p.step(event.NodeDecommissioning{Node: "n1", Within: time.Hour})
			p.step(event.NodeRecommissioned{Node: "n1"})
			p.step(event.NodeRecommissioned{Node: "n1"})
			p.wait(time.Hour)
		}},
		{"a rank is wanted back, and all are told", ranks(3), 0, func(p *player) {
			p.mute["TaskExited"] = true // they save together
			p.step(warned(true, "c2"))
			p.step(event.CheckpointSealed{})
			p.wait(2 * time.Second)
			p.mute["TaskExited"] = false
			for i := range 3 {
				p.exit(fmt.Sprintf("worker-%d", i), event.TaskExited{Signal: 15, Stopped: true})
			}
			p.wait(time.Minute)
		}},
		{"a rank that has time to save loses its directory", ranks(2), 0, func(p *player) {
			p.mute["TaskExited"] = true
			p.step(event.PreemptionWarned{Containers: []string{"c2"}, Strict: true, Within: 2 * time.Minute})
			p.step(event.CheckpointSealed{})
			p.wait(2 * time.Second)
			p.step(event.AgentFailed{Container: "c1", Detail: "its directory was removed", DirectoryRemoved: true})
		}},
		{"a node with ranks closes", ranks(4), 0, func(p *player) { // c1 and c4 are on n1
			p.step(event.NodeDecommissioning{Node: "n1", Within: time.Hour})
			p.step(event.CheckpointSealed{})
			p.wait(time.Minute)
		}},
		{"a NodeManager is lost and its containers go on", psAndWorkers(2, 2), 0, func(p *player) { // c1 and c4 are on n1
			p.step(event.ContainerEnded{Container: "c1", Cause: event.CauseNodeLost, Diagnostics: "node lost"})
			p.step(event.ContainerEnded{Container: "c4", Cause: event.CauseNodeLost, Diagnostics: "node lost"})
			p.wait(time.Second)
			p.step(event.CheckpointSealed{})
			p.wait(time.Minute)
		}},
		{"a NodeManager is lost with the spare", psAndWorkers(1, 2), 1, func(p *player) { // c1 and c4 are on n1
			p.step(event.ContainerEnded{Container: "c1", Cause: event.CauseNodeLost, Diagnostics: "node lost"})
			p.step(event.ContainerEnded{Container: "c4", Cause: event.CauseNodeLost, Diagnostics: "node lost"})
			p.step(event.CheckpointSealed{})
		}},
		{"a NodeManager is restarted without its state, and the spare was there", psAndWorkers(1, 2), 1, func(p *player) { // c1 and c4 are on n1
			p.step(event.AgentFailed{Container: "c1", Detail: "its directory was removed", DirectoryRemoved: true})
		}},
		{"a NodeManager is lost, and there is no room elsewhere", psAndWorkers(1, 1), 0, func(p *player) {
			p.mute["Allocated"] = true
			p.step(event.ContainerEnded{Container: "c1", Cause: event.CauseNodeLost, Diagnostics: "node lost"})
			p.wait(2 * time.Minute)
		}},
		{"another application master takes over in the middle", psAndWorkers(1, 1), 0, func(p *player) {
			p.mute["TaskExited"] = true
			p.step(warned(true, "c1"))
			p.step(event.CheckpointSealed{})
			p.mute["TaskExited"] = false
			p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1", "c2": "n2"}})
			p.step(event.AgentConnected{Container: "c1", Host: "h", PID: 100, Task: "ps-0", Port: 20000, TaskPID: 200})
			p.step(event.AgentConnected{Container: "c2", Host: "h", PID: 100, Task: "worker-0", Port: 20000, TaskPID: 200})
		}},
	} {
		t.Run(strings.ReplaceAll(s.name, " ", "-"), func(t *testing.T) {
			p := playWith(t, s.roles, 3, s.spares, core.Limits{})
			p.t = t
			closing := map[string]bool{}
			p.node = func(c int) string { // the cluster gives nothing on a node that closes
				n := []string{"n0", "n1", "n2"}[c%3]
				if closing[n] {
					return "n0"
				}
				return n
			}
			p.step(event.Begin{})
			closing["n1"] = true
			s.script(p)
			p.state(proto.JobState_JOB_STATE_RUNNING)
			for _, task := range p.job.Tasks() {
				if task.Failures() > 2 {
					t.Errorf("%s has failed %d times", task.Name, task.Failures())
				}
			}
			p.golden()
		})
	}
}

// TestAStandInGetsReady: a task does not leave before that, but waits only so long.
func TestAStandInGetsReady(t *testing.T) {
	for name, wait := range map[string]func(p *player){
		"it says so":  func(p *player) { p.step(event.Prewarmed{Container: "c3"}) },
		"it does not": func(p *player) { p.wait(20 * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			p := playWith(t, psAndWorkers(1, 1), 3, 0, core.Limits{Prewarm: 20 * time.Second})
			p.step(event.Begin{})
			p.step(event.NodeDecommissioning{Node: p.named("ps-0").Node})
			p.wait(19 * time.Second)
			p.step(event.CheckpointSealed{})
			if ps := p.named("ps-0"); ps.Container != "c1" {
				t.Fatalf("it is in %s before c3 is ready", ps.Container)
			}
			wait(p)
			p.step(event.CheckpointSealed{})
			if ps := p.named("ps-0"); ps.Container != "c3" {
				t.Fatalf("it is in %s, and c3 is as ready as it gets", ps.Container)
			}
		})
	}
}

// TestMovesGiveWhatStopsGive: where it is more than usual, and there is time.
func TestMovesGiveWhatStopsGive(t *testing.T) {
	for _, c := range []struct{ stop, within, want time.Duration }{
		{0, 0, 30 * time.Second},
		{2 * time.Minute, 0, 2 * time.Minute},
		{2 * time.Minute, 3*time.Minute + 10*time.Second, 15 * time.Second}, // a quarter of what is left before it must leave
	} {
		p := playWith(t, psAndWorkers(1, 1), 3, 0, core.Limits{Stop: c.stop})
		p.step(event.Begin{})
		p.step(event.NodeDecommissioning{Node: "n1", Within: c.within})
		p.step(event.CheckpointSealed{})
		if want := fmt.Sprintf("action.Vacate{Container:c1 Grace:%s}", c.want); !strings.Contains(p.log.String(), want) {
			t.Errorf("a stop takes %s, the node is there for %s, and there is no %s in:\n%s", c.stop, c.within, want, p.log.String())
		}
	}
}

// TestAPreemptionDoesNotWaitForAMove: a task that waits for a checkpoint before it moves
// stops in time where the scheduler takes its container before that.
func TestAPreemptionDoesNotWaitForAMove(t *testing.T) {
	p := play(t, psAndWorkers(1, 1), 3)
	p.step(event.Begin{})
	p.step(event.NodeDecommissioning{Node: "n1"}) // its stand-in comes at once
	p.wait(time.Second)
	p.step(event.PreemptionWarned{Containers: []string{"c1"}, Strict: true, Within: 16 * time.Second})
	p.wait(8 * time.Second)
	if want := "action.Vacate{Container:c1 Grace:4s}"; !strings.Contains(p.log.String(), want) {
		t.Errorf("there is no %s in\n%s", want, p.log.String())
	}
}

// TestATaskLeavesWhoseAttemptWasNeverStarted: its agent has heard neither of the attempt
// nor that this is to stop because the task leaves.
func TestATaskLeavesWhoseAttemptWasNeverStarted(t *testing.T) {
	p := play(t, psAndWorkers(1, 1), 3)
	p.step(event.Begin{})
	p.mute["TaskStarted"], p.mute["TaskExited"] = true, true
	p.exit("worker-0", event.TaskExited{Signal: 9})
	p.step(event.PreemptionWarned{Containers: []string{"c2"}, Strict: true, Within: 16 * time.Second})
	p.step(event.CheckpointSealed{})
	p.step(event.AgentDisconnected{Container: "c2"})
	p.step(event.AgentConnected{Container: "c2", Host: "h", PID: 100, Task: "worker-0", Port: 20000, PeerPort: 20000})
	if w := p.named("worker-0"); w.Container == "c2" {
		t.Errorf("it is still in a container that the scheduler takes, and is %s\n%s", w.State, p.log.String())
	}
}

// TestATaskThatIsDoneHoldsUpNoMove: it was to leave its container itself.
func TestATaskThatIsDoneHoldsUpNoMove(t *testing.T) {
	p := play(t, ranks(2), 3)
	p.step(event.Begin{})
	p.step(event.PreemptionWarned{Containers: []string{"c2"}, Strict: true, Within: 16 * time.Second})
	p.exit("worker-1", event.TaskExited{})
	p.step(event.NodeDecommissioning{Node: "n1", Within: 10 * time.Minute})
	p.wait(time.Minute)
	if w := p.named("worker-0"); w.Container == "c1" {
		t.Errorf("it is still on the node that closes\n%s", p.log.String())
	}
}

// TestWhoWaitsWhereOthersWorkKeepsNobodyFromMoving: what has to move does not wait for a task
// without which the others work, however long that has no container.
func TestWhoWaitsWhereOthersWorkKeepsNobodyFromMoving(t *testing.T) {
	workers := psAndWorkers(1, 4)
	workers[1].Min = 2
	for name, c := range map[string]struct {
		roles []*proto.RoleSpec
		lost  func(p *player)
	}{
		"a parked rank loses its container": {elastic(2, 4), func(p *player) {
			p.preempt("c3", "c4")
			p.free("worker-3", "c8")
			p.mute["Allocated"] = true
			p.step(event.ContainerEnded{Container: "c8", Cause: event.CausePreempted})
		}},
		"a worker beside parameter servers is lost": {workers, func(p *player) {
			p.mute["Allocated"] = true
			p.step(event.ContainerEnded{Container: p.named("worker-3").Container, Cause: event.CausePreempted})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := playWith(t, c.roles, 3, 0, core.Limits{})
			p.step(event.Begin{})
			c.lost(p)
			p.mute["Allocated"] = false
			p.node = func(int) string { return "n7" }
			node := p.named("worker-1").Node
			p.step(event.NodeDecommissioning{Node: node})
			p.wait(5 * time.Minute)
			if got := p.named("worker-1").Node; got != "n7" {
				t.Errorf("worker-1 is still on %s, which is taken out of service\n%s", got, p.log.String())
			}
		})
	}
}

// TestWhatIsPreemptedMayStillRun: YARN says that a container has ended that it takes back before
// its node has ended it. Nothing is started in its place before its agent is gone, or has lost its
// lease.
func TestWhatIsPreemptedMayStillRun(t *testing.T) {
	for name, c := range map[string]struct {
		goes func(p *player, container string)
	}{
		"its agent is gone":                 {func(p *player, c string) { p.step(event.AgentDisconnected{Container: c}) }},
		"its agent has ended in order":      {func(p *player, c string) { p.step(event.AgentDisconnected{Container: c, Orderly: true}) }},
		"nothing more is heard of its node": {func(p *player, c string) { p.wait(limits.LeaseExpiry) }},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			p := playWith(t, psAndWorkers(1, 2), 3, 1, core.Limits{})
			p.step(event.Begin{})
			left := p.named("worker-1").Container
			p.mute["AgentDisconnected"] = true
			p.step(event.ContainerEnded{Container: left, Cause: event.CausePreempted})
			p.wait(limits.LeaseExpiry - time.Second)
			if is := p.named("worker-1"); is.State == proto.TaskState_TASK_STATE_RUNNING {
				t.Fatalf("attempt %d runs, and the one before may\n%s", is.Attempt, p.log.String())
			}
			c.goes(p, left)
			if is := p.named("worker-1"); is.State != proto.TaskState_TASK_STATE_RUNNING || is.Attempt != 1 {
				t.Errorf("attempt %d is %s\n%s", is.Attempt, is.State, p.log.String())
			}
		})
	}
}
