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

// TestTranscriptsOfSpares: a lost container's task moves into a spare one.
func TestTranscriptsOfSpares(t *testing.T) {
	for _, s := range []struct {
		name   string
		script func(p *player)
	}{
		{"a container is lost", func(p *player) {
			p.step(event.ContainerEnded{Container: "c1", Cause: event.CauseKilled, Diagnostics: "killed"})
			p.exit("worker-0", event.TaskExited{})
		}},
		{"the spare is lost", func(p *player) {
			p.step(event.ContainerEnded{Container: "c3", Cause: event.CausePreempted, Diagnostics: "preempted"})
			p.step(event.ContainerEnded{Container: "c1", Cause: event.CauseKilled, Diagnostics: "killed"})
			p.exit("worker-0", event.TaskExited{})
		}},
		{"two agents are silent", func(p *player) { // the spare takes one of the tasks
			p.step(event.AgentDisconnected{Container: "c1"})
			p.step(event.AgentDisconnected{Container: "c2"})
			p.wait(time.Minute)
			p.exit("worker-0", event.TaskExited{})
		}},
		{"spares are lost again and again", func(p *player) {
			for i := range 20 {
				p.step(event.AgentDisconnected{Container: fmt.Sprintf("c%d", i+3)})
			}
			p.exit("worker-0", event.TaskExited{})
		}},
		{"the spare has not come up", func(p *player) {
			p.mute["AgentConnected"] = true
			p.step(event.ContainerEnded{Container: "c3", Cause: event.CausePreempted, Diagnostics: "preempted"})
			p.mute["AgentConnected"] = false
			p.step(event.ContainerEnded{Container: "c1", Cause: event.CauseKilled, Diagnostics: "killed"})
			p.wait(2 * time.Minute)
			p.exit("worker-0", event.TaskExited{})
		}},
	} {
		t.Run(strings.ReplaceAll(s.name, " ", "-"), func(t *testing.T) {
			p := playWith(t, psAndWorkers(1, 1), 3, 1, core.Limits{})
			p.t = t
			p.step(event.Begin{})
			s.script(p)
			p.state(proto.JobState_JOB_STATE_SUCCEEDED)
			p.golden()
		})
	}
}

// TestASpareTakesNoTaskOfAnotherImage: a spare runs in the job's image, and a task whose
// role has one of its own gets a new container.
func TestASpareTakesNoTaskOfAnotherImage(t *testing.T) {
	for _, image := range []string{"", "me/ps"} {
		roles := psAndWorkers(1, 1)
		roles[0].Image = image
		p := playWith(t, roles, 3, 1, core.Limits{})
		p.step(event.Begin{})
		p.step(event.ContainerEnded{Container: "c1", Cause: event.CauseKilled, Diagnostics: "killed"})
		if k := p.named("ps-0"); (k.Container == "c3") != (image == "") {
			t.Errorf("with the image %q, the task is in %s", image, k.Container)
		}
	}
}

// TestWhoGetsASpareIsWaitedFor: and who gets none is not, where nothing else is waited for.
func TestWhoGetsASpareIsWaitedFor(t *testing.T) {
	p := playWith(t, elastic(2, 4), 3, 1, core.Limits{LossWait: -1})
	p.step(event.Begin{})
	p.members("worker-0", "worker-1", "worker-2", "worker-3")
	p.mute["Allocated"], p.mute["AgentPrepared"] = true, true
	p.step(event.ContainerEnded{Container: "c1", Cause: event.CauseUnknown})
	spare := p.named("worker-0").Container
	p.wait(29 * time.Second)
	p.starts("worker-1", false)
	p.step(event.AgentPrepared{Container: spare, Port: 20000})
	p.members("worker-0", "worker-1", "worker-2", "worker-3")
	p.step(event.ContainerEnded{Container: "c2", Cause: event.CauseUnknown})
	p.members("worker-0", "worker-2", "worker-3")
}
