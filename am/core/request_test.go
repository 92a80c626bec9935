package core_test

import (
	"strings"
	"testing"
	"time"

	"holdfast/am/core/event"
	"holdfast/proto"
)

// asks has alice ask for a task's restart, and returns the refusal.
func (p *player) asks(task string) string {
	p.t.Helper()
	return p.answered(event.RestartRequested{Task: task, User: "alice"})
}

// answered has a person ask for something, and returns the refusal.
func (p *player) answered(e event.Event) string {
	p.t.Helper()
	before := p.log.Len()
	p.step(e)
	_, answer, ok := strings.Cut(p.log.String()[before:], "action.RequestAnswered{Refusal:")
	if !ok {
		p.t.Fatalf("a request has no answer:\n%s", p.log.String()[before:])
	}
	refusal, _, _ := strings.Cut(answer, "}\n")
	return refusal
}

// TestTranscriptsOfRequests: what a person who asks for a restart is answered, and what is
// done.
func TestTranscriptsOfRequests(t *testing.T) {
	for _, s := range []struct {
		name   string
		roles  []*proto.RoleSpec
		script func(p *player)
		want   map[string]int // attempts
	}{
		{"a worker hangs", psAndWorkers(1, 2), func(p *player) {
			p.steps(12, time.Second, "worker-0", "worker-1")
			for range 9 { // more often than it may fail
				p.asks("worker-1")
				p.wait(time.Second)
			}
		}, map[string]int{"ps-0": 0, "worker-0": 0, "worker-1": 9}},
		{"a rank hangs", ranks(2), func(p *player) {
			p.steps(12, time.Second, "worker-0", "worker-1")
			p.asks("worker-1")
		}, map[string]int{"worker-0": 1, "worker-1": 1}},
		{"a rank ends by itself before it is stopped", ranks(2), func(p *player) {
			p.mute["TaskExited"] = true
			p.asks("worker-1")
			p.exit("worker-1", event.TaskExited{Code: 1})
			p.exit("worker-0", event.TaskExited{Signal: 15, Stopped: true})
		}, map[string]int{"worker-0": 1, "worker-1": 1}},
		{"twice", psAndWorkers(1, 2), func(p *player) {
			p.mute["TaskExited"] = true
			p.asks("worker-1")
			p.asks("worker-1")
			p.exit("worker-1", event.TaskExited{Signal: 9, Stopped: true})
		}, map[string]int{"worker-1": 1}},
		{"its agent is not connected", psAndWorkers(1, 2), func(p *player) {
			c := p.hosted["worker-1"]
			p.step(event.AgentDisconnected{Container: c})
			p.asks("worker-1")
			p.wait(time.Second)
			p.step(event.AgentConnected{Container: c, Host: "h", PID: 100, Task: "worker-1", Port: 20000, PeerPort: 20000, TaskPID: 200})
		}, map[string]int{"worker-1": 1}},
		{"another application master has it end", psAndWorkers(1, 1), func(p *player) {
			p.mute["TaskExited"] = true
			p.asks("worker-0")
			p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1", "c2": "n2"}})
			p.mute["TaskExited"] = false
			p.step(event.AgentConnected{Container: "c1", Host: "h", PID: 100, Task: "ps-0", Port: 20000, TaskPID: 200})
			p.step(event.AgentConnected{Container: "c2", Host: "h", PID: 100, Task: "worker-0", Port: 20000, TaskPID: 200})
		}, map[string]int{"worker-0": 1}},
	} {
		t.Run(strings.ReplaceAll(s.name, " ", "-"), func(t *testing.T) {
			p := trains(t, s.roles, 3)
			s.script(p)
			p.wait(time.Minute)
			p.state(proto.JobState_JOB_STATE_RUNNING)
			for task, attempt := range s.want {
				if k := p.named(task); k.Attempt != attempt || k.PID == 0 || k.Failures() != 0 {
					t.Errorf("%s runs attempt %d as process %d, after %d failures\n%s", task, k.Attempt, k.PID, k.Failures(), &p.log)
				}
			}
			p.golden()
		})
	}
}

// TestRequestsAreRefused: with the reason.
func TestRequestsAreRefused(t *testing.T) {
	p := trains(t, psAndWorkers(1, 2), 3)
	if r := p.asks("worker-7"); !strings.Contains(r, "no task worker-7") {
		t.Errorf("a task that does not exist: %q", r)
	}
	p.exit("worker-1", event.TaskExited{})
	if r := p.asks("worker-1"); !strings.Contains(r, "has ended") {
		t.Errorf("a task that has succeeded: %q", r)
	}
	p.mute["AgentConnected"] = true
	p.step(event.ContainerEnded{Container: p.hosted["ps-0"], Cause: event.CausePreempted})
	if r := p.asks("ps-0"); !strings.Contains(r, "no attempt") {
		t.Errorf("a task without a container: %q", r)
	}
	// What had done its work before it could be stopped has succeeded.
	p.mute["TaskExited"] = true
	if r := p.asks("worker-0"); r != "" {
		t.Errorf("a task that runs: %q", r)
	}
	p.exit("worker-0", event.TaskExited{})
	p.state(proto.JobState_JOB_STATE_SUCCEEDED)
	p = trains(t, psAndWorkers(1, 1), 3)
	p.mute["TaskExited"] = true
	p.step(event.Kill{Why: "enough"})
	if r := p.asks("worker-0"); !strings.Contains(r, "the job ends") {
		t.Errorf("a job that ends: %q", r)
	}
}
