package core_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/am/core/event"
	"holdfast/proto"
)

// optionalRole is a role of one task that the job does not need, and that may go on for a
// time after the others.
func optionalRole(name string, finish time.Duration) *proto.RoleSpec {
	return &proto.RoleSpec{Name: name, Count: 1, MemoryMb: 1024, Vcores: 1, FinishMs: finish.Milliseconds(),
		Loss: proto.LossRule_LOSS_RULE_ALONE, Completion: proto.CompletionRule_COMPLETION_RULE_OPTIONAL}
}

// TestTranscriptsOfOptionalRoles: who decides nothing neither blocks the start nor ends
// the job, and may finish what it does.
func TestTranscriptsOfOptionalRoles(t *testing.T) {
	running, succeeded := proto.JobState_JOB_STATE_RUNNING, proto.JobState_JOB_STATE_SUCCEEDED
	failed := proto.TaskState_TASK_STATE_FAILED
	for _, s := range []struct {
		name   string
		finish time.Duration
		before func(p *player)
		script func(p *player)
		want   proto.JobState
		task   proto.TaskState
	}{
		{"there is no container for it", 0, func(p *player) { p.unanswered = "evaluator-0/3" }, func(p *player) {
			p.wait(time.Minute)
			p.exit("worker-0", event.TaskExited{})
		}, succeeded, proto.TaskState_TASK_STATE_STOPPED},
		{"it loses its container again and again", 0, nil, func(p *player) {
			for i := 0; i < 20 && p.named("evaluator-0").State != failed; i++ {
				p.step(event.ContainerEnded{Container: p.named("evaluator-0").Container, Cause: event.CauseKilled})
				p.wait(time.Second)
			}
		}, running, failed},
		{"its command is not there", 0, nil, func(p *player) {
			p.exit("evaluator-0", event.TaskExited{Code: 127, CommandMissing: true, Detail: "tensorbord: not found"})
		}, running, failed},
		{"nothing can prepare it", 0, nil, func(p *player) {
			p.step(event.ContainerEnded{Container: p.named("evaluator-0").Container, Cause: event.CauseKilled})
			p.step(event.AgentFailed{Container: p.named("evaluator-0").Container, Detail: "no such file", Permanent: true})
		}, running, failed},
		{"it may finish", 5 * time.Minute, nil, func(p *player) {
			p.exit("worker-0", event.TaskExited{})
			p.wait(time.Minute)
			p.step(event.AgentDisconnected{Container: "c3"})
			p.wait(5 * time.Second)
			p.step(event.AgentConnected{Container: "c3", Host: "h", PID: 100, Task: "evaluator-0", Port: 20000, TaskPID: 200})
			p.wait(time.Minute)
			p.exit("evaluator-0", event.TaskExited{})
		}, succeeded, proto.TaskState_TASK_STATE_SUCCEEDED},
		{"it does not finish", 5 * time.Minute, nil, func(p *player) {
			p.exit("worker-0", event.TaskExited{})
			p.wait(10 * time.Minute)
		}, succeeded, proto.TaskState_TASK_STATE_STOPPED},
		{"it has to leave before it has finished", 5 * time.Minute, nil, func(p *player) {
			p.mute["Allocated"] = true
			p.step(event.ContainerEnded{Container: "c3", Cause: event.CauseNodeLost, Diagnostics: "node lost"})
			p.wait(10 * time.Second)
			p.exit("worker-0", event.TaskExited{})
			p.wait(50 * time.Second)
		}, succeeded, proto.TaskState_TASK_STATE_STOPPED},
		{"its NodeManager is lost, and it finishes", 5 * time.Minute, nil, func(p *player) {
			p.exit("worker-0", event.TaskExited{})
			p.step(event.ContainerEnded{Container: "c3", Cause: event.CauseNodeLost, Diagnostics: "node lost"})
			p.wait(30 * time.Second)
			p.exit("evaluator-0", event.TaskExited{})
		}, succeeded, proto.TaskState_TASK_STATE_SUCCEEDED},
		{"its node closes, and it does not finish", 5 * time.Minute, nil, func(p *player) {
			p.exit("worker-0", event.TaskExited{})
			p.step(event.NodeDecommissioning{Node: "n0", Within: time.Minute})
			p.wait(time.Minute)
		}, succeeded, proto.TaskState_TASK_STATE_STOPPED},
		{"the scheduler wants its container back, and it does not finish", 5 * time.Minute, nil, func(p *player) {
			p.step(event.PreemptionWarned{Containers: []string{"c3"}, Strict: true, Within: time.Minute})
			p.exit("worker-0", event.TaskExited{})
			p.wait(30 * time.Second)
		}, succeeded, proto.TaskState_TASK_STATE_STOPPED},
		{"a user does not wait for it to finish", 5 * time.Minute, nil, func(p *player) {
			p.exit("worker-0", event.TaskExited{})
			p.wait(time.Minute)
			p.step(event.Kill{Why: "killed by alice"})
		}, succeeded, proto.TaskState_TASK_STATE_STOPPED},
	} {
		t.Run(strings.ReplaceAll(s.name, " ", "-"), func(t *testing.T) {
			p := play(t, append(psAndWorkers(1, 1), optionalRole("evaluator", s.finish)), 3)
			p.t = t
			if s.before != nil {
				s.before(p)
			}
			p.step(event.Begin{})
			s.script(p)
			p.state(s.want)
			if got := p.named("evaluator-0").State; got != s.task {
				t.Errorf("the evaluator is %s, want %s\n%s", got, s.task, p.log.String())
			}
			if s.want == running { // and the others can be done
				p.exit("worker-0", event.TaskExited{})
				p.state(succeeded)
			}
			p.golden()
		})
	}
}

// TestAllRestartWithoutAnOptionalTask: also when tasks start together again.
func TestAllRestartWithoutAnOptionalTask(t *testing.T) {
	roles := append(ranks(2), &proto.RoleSpec{Name: "tensorboard", Count: 1, MemoryMb: 1024, Vcores: 1,
		Loss: proto.LossRule_LOSS_RULE_ALONE, Completion: proto.CompletionRule_COMPLETION_RULE_OPTIONAL})
	p := play(t, roles, 3)
	p.step(event.Begin{})
	p.unanswered = fmt.Sprintf("tensorboard-0/%d", 4)
	p.step(event.ContainerEnded{Container: "c3", Cause: event.CauseKilled})
	p.exit("worker-0", event.TaskExited{Signal: 9})
	p.wait(time.Minute)
	if w := p.named("worker-0"); w.State != proto.TaskState_TASK_STATE_RUNNING || w.Attempt != 1 {
		t.Errorf("%s is %s, attempt %d\n%s", w.Name, w.State, w.Attempt, p.log.String())
	}
}

// TestAllRestartBesideAnObserver: one that goes on running does not keep from being put right
// what the others have left, and is told of.
func TestAllRestartBesideAnObserver(t *testing.T) {
	roles := append(ranks(2), &proto.RoleSpec{Name: "tensorboard", Count: 1, MemoryMb: 1024, Vcores: 1,
		Loss: proto.LossRule_LOSS_RULE_ALONE, Completion: proto.CompletionRule_COMPLETION_RULE_OPTIONAL})
	p := play(t, roles, 3)
	p.step(event.Begin{})
	p.exit("worker-0", event.TaskExited{Signal: 9})
	p.wait(time.Minute)
	p.says("action.PrepareStore{AllDown:true Observed:true}")
}

// TestAnObserverIsNotStartedWhileAGenerationAssembles: also not one whose start its agent has
// missed. It starts with the generation that it is told it belongs to.
func TestAnObserverIsNotStartedWhileAGenerationAssembles(t *testing.T) {
	p := play(t, append(ranks(2), optionalRole("evaluator", 0)), 3)
	p.mute["TaskStarted"] = true
	p.step(event.Begin{})
	p.mute["TaskStarted"] = false
	for _, c := range []string{"c1", "c2"} {
		p.step(event.TaskStarted{Container: c, PID: 200})
	}
	p.step(event.AgentDisconnected{Container: "c3"})
	p.mute["Allocated"] = true // the next generation takes its time
	p.step(event.ContainerEnded{Container: "c1", Cause: event.CauseKilled})
	before := p.log.Len()
	p.step(event.AgentConnected{Container: "c3", Host: "h", PID: 100, Task: "evaluator-0", Port: 20000, PeerPort: 20000, Attempt: -1})
	p.wait(time.Second)
	if told := p.log.String()[before:]; strings.Contains(told, "action.Start{") {
		t.Errorf("while generation 1 assembles:\n%s", told)
	}
	p.mute["Allocated"] = false
	p.step(event.Allocated{Request: "worker-0/5", Container: "c9", Node: "n1"})
	p.wait(time.Minute)
	for _, name := range []string{"worker-0", "worker-1", "evaluator-0"} {
		if got := p.named(name); got.State != proto.TaskState_TASK_STATE_RUNNING || got.Attempt != 1 {
			t.Errorf("%s is %s, attempt %d", name, got.State, got.Attempt)
		}
	}
	if told := p.log.String()[before:]; !strings.Contains(told, "action.Start{Container:c3 Task:evaluator-0 Attempt:1 Generation:1 ") || t.Failed() {
		t.Errorf("%s", p.log.String())
	}
}
