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

// TestTranscriptsOfStarts: with fewer tasks than asked for, and too late.
func TestTranscriptsOfStarts(t *testing.T) {
	fewer := psAndWorkers(1, 3)
	fewer[1].Min = 2
	for _, s := range []struct {
		name   string
		limits core.Limits
		roles  []*proto.RoleSpec
		script func(p *player)
		want   proto.JobState
	}{
		{"with fewer, and one comes late", core.Limits{}, fewer, func(p *player) {
			p.wait(31 * time.Second)
			p.step(event.Allocated{Request: "worker-2/4", Container: "c9", Node: "n1"})
			for i := range 3 {
				p.exit(fmt.Sprintf("worker-%d", i), event.TaskExited{})
			}
		}, proto.JobState_JOB_STATE_SUCCEEDED},
		{"with fewer to the end", core.Limits{}, fewer, func(p *player) {
			p.wait(31 * time.Second)
			p.exit("worker-0", event.TaskExited{})
			p.exit("worker-1", event.TaskExited{})
		}, proto.JobState_JOB_STATE_SUCCEEDED},
		{"too late", core.Limits{Start: time.Minute}, psAndWorkers(1, 3), func(p *player) {
			p.step(event.Waiting{Why: "the queue default is full"})
			p.wait(time.Minute)
		}, proto.JobState_JOB_STATE_FAILED},
		{"for long after it had begun", core.Limits{Start: time.Minute}, ranks(2), func(p *player) {
			p.mute["Allocated"] = true
			p.step(event.ContainerEnded{Container: "c2", Cause: event.CausePreempted, Diagnostics: "preempted"})
			p.wait(3 * time.Minute)
			p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1"}})
			p.step(event.AgentConnected{Container: "c1", Host: "h", PID: 100, Task: "worker-0", Port: 20000, Exited: &event.TaskExited{Signal: 15, Stopped: true}})
			p.wait(3 * time.Minute)
			p.mute["Allocated"] = false
			p.step(event.Allocated{Request: "worker-1/4", Container: "c9", Node: "n1"})
		}, proto.JobState_JOB_STATE_RUNNING},
	} {
		t.Run(strings.ReplaceAll(s.name, " ", "-"), func(t *testing.T) {
			p := playWith(t, s.roles, 3, 0, s.limits)
			p.t = t
			p.unanswered = "worker-2/4"
			p.step(event.Begin{})
			s.script(p)
			p.state(s.want)
			p.golden()
		})
	}
}

// TestWhoIsStoppedWhileTheStoreIsPreparedWaitsForItAgain: what it was saving may have come
// to a place that was looked at before.
func TestWhoIsStoppedWhileTheStoreIsPreparedWaitsForItAgain(t *testing.T) {
	roles := append(ranks(2), &proto.RoleSpec{Name: "evaluator", Count: 1, MemoryMb: 1024, Vcores: 1,
		Loss: proto.LossRule_LOSS_RULE_ALONE, Completion: proto.CompletionRule_COMPLETION_RULE_OPTIONAL})
	p := play(t, roles, 3)
	p.step(event.Begin{})
	p.mute["StorePrepared"] = true
	p.exit("evaluator-0", event.TaskExited{Signal: 9})
	p.wait(time.Second)
	p.exit("worker-0", event.TaskExited{Code: 1}) // and worker-1 is stopped, maybe in the middle of a save
	p.wait(time.Second)
	p.step(event.StorePrepared{})
	for _, name := range []string{"worker-0", "worker-1"} {
		if w := p.named(name); w.Attempt != 0 {
			t.Errorf("%s was started again before the store was prepared after its end\n%s", name, p.log.String())
		}
	}
	p.step(event.StorePrepared{})
	for _, name := range []string{"worker-0", "worker-1"} {
		if w := p.named(name); w.Attempt != 1 {
			t.Errorf("%s is at attempt %d\n%s", name, w.Attempt, p.log.String())
		}
	}
}

// TestNobodyBeginsBeforeTheStoreIsPutRight: a rank that has saved nothing itself waits, too,
// until what another has left half written is put right.
func TestNobodyBeginsBeforeTheStoreIsPutRight(t *testing.T) {
	p := play(t, ranks(3), 3)
	p.step(event.Begin{})
	p.mute["StorePrepared"], p.mute["TaskExited"] = true, true
	// worker-2 comes back without having heard of its attempt, which therefore has left
	// nothing, and worker-1 has failed.
	p.step(event.AgentDisconnected{Container: "c3"})
	p.exit("worker-1", event.TaskExited{Signal: 9})
	p.step(event.AgentConnected{Container: "c3", Host: "h", PID: 100, Task: "worker-2", Port: 20000, PeerPort: 20000, Attempt: -1})
	p.exit("worker-0", event.TaskExited{Signal: 15, Stopped: true})
	p.wait(2 * time.Second)
	for _, task := range []string{"worker-0", "worker-1", "worker-2"} {
		p.starts(task, false)
	}
	p.says("action.PrepareStore{AllDown:true}")
	p.step(event.StorePrepared{})
	p.members("worker-0", "worker-1", "worker-2")
}
