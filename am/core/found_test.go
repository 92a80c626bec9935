package core_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/proto"
)

// foundAfter has a master take over containers of which YARN tells nothing, and then
// tells it of that of worker-0, whose agent has come in the meantime or has not.
func foundAfter(t *testing.T, attached bool) *player {
	t.Helper()
	p := play(t, psAndWorkers(1, 1), 3)
	p.step(event.Begin{})
	p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1"}})
	back := event.AgentConnected{Container: "c2", Host: "h", PID: 100, Task: "worker-0", Port: 20000, PeerPort: 20000, TaskPID: 200}
	if attached {
		p.step(back)
	}
	p.step(event.AgentConnected{Container: "c1", Host: "h", PID: 100, Task: "ps-0", Port: 20000, PeerPort: 20000, TaskPID: 200})
	p.step(event.ContainerFound{Container: "c2", Node: "n2"})
	if !attached {
		p.step(back)
	}
	return p
}

func TestWhatIsFoundAgainStaysWhereItIs(t *testing.T) {
	for _, attached := range []bool{true, false} {
		p := foundAfter(t, attached)
		p.wait(5 * time.Minute)
		if k := p.named("worker-0"); k.Container != "c2" || k.Attempt != 0 || k.State != proto.TaskState_TASK_STATE_RUNNING {
			t.Errorf("attached %t: worker-0 is %s in %s, attempt %d\n%s", attached, k.State, k.Container, k.Attempt, p.log.String())
		}
		if len(p.job.Spares()) != 0 {
			t.Errorf("attached %t: containers are held for no task: %v", attached, p.job.Spares())
		}
	}
}

func TestWhatIsFoundAndNotNeededIsGivenBack(t *testing.T) {
	p := foundAfter(t, true)
	got := p.job.Step(p.now, event.ContainerFound{Container: "c77", Node: "n1"})
	if !slices.Contains(got, action.Action(action.Release{Container: "c77"})) {
		t.Errorf("%+v", got)
	}
}

// TestWhatHasLostItsDirectoryLeavesThoughItIsFound: both are told while a master that has found
// no journal still listens to the agents.
func TestWhatHasLostItsDirectoryLeavesThoughItIsFound(t *testing.T) {
	p := play(t, psAndWorkers(1, 1), 3)
	p.step(event.Begin{})
	p.forgets = true
	p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1"}})
	p.step(event.AgentConnected{Container: "c2", Host: "h", PID: 100, Task: "worker-0", Port: 20000, PeerPort: 20000, TaskPID: 200})
	p.step(event.AgentFailed{Container: "c2", Detail: "its directory was removed", DirectoryRemoved: true})
	p.step(event.ContainerFound{Container: "c2", Node: "n2"})
	p.step(event.AgentConnected{Container: "c1", Host: "h", PID: 100, Task: "ps-0", Port: 20000, PeerPort: 20000, TaskPID: 200})
	p.wait(5 * time.Minute)
	if k := p.named("worker-0"); k.Container == "c2" || k.State != proto.TaskState_TASK_STATE_RUNNING {
		t.Errorf("worker-0 is %s in %s\n%s", k.State, k.Container, p.log.String())
	}
}

// TestWhatIsToldOfATaskWhoseDirectoryWasRemoved: that it was killed, why, and once on which node.
func TestWhatIsToldOfATaskWhoseDirectoryWasRemoved(t *testing.T) {
	const why = "its container's directory on n1 was removed"
	for name, x := range map[string]struct {
		then func(p *player)
		told string
	}{
		"it ends": {func(p *player) {}, "it was ended because " + why},
		"its agent ends first": {func(p *player) {
			p.step(event.AgentDisconnected{Container: "c1", Orderly: true})
		}, "its agent has ended, too: " + why},
	} {
		p := play(t, psAndWorkers(1, 1), 0)
		p.step(event.Begin{})
		p.mute["TaskExited"] = name != "it ends"
		p.step(event.AgentFailed{Container: "c1", Detail: why, DirectoryRemoved: true})
		x.then(p)
		p.wait(time.Minute)
		told := ""
		for line := range strings.Lines(p.log.String()) {
			if strings.Contains(line, "Task:ps-0 Kind:lost") {
				told += line
			}
		}
		if !strings.Contains(told, x.told) || strings.Contains(told, "in order") || strings.Count(told, "n1") != 1 {
			t.Errorf("%s: it is told\n%s\n%s", name, told, p.log.String())
		}
	}
}
