package core_test

import (
	"strings"
	"testing"
	"time"

	"holdfast/am/core"
	"holdfast/proto"
)

// steps lets tasks make steps, one each time, with a pause before each.
func (p *player) steps(n int, pause time.Duration, tasks ...string) {
	p.t.Helper()
	for range n {
		p.wait(pause)
		e := core.StepsReported{}
		for _, t := range tasks {
			p.made[t]++
			e.Steps = append(e.Steps, core.Step{Task: t, Step: p.made[t]})
		}
		p.step(e)
	}
}

// trains has a job of tasks that make steps as long as they like.
func trains(t *testing.T, roles []*proto.RoleSpec, restarts int) *player {
	p := play(t, roles, restarts)
	p.made = map[string]int64{}
	p.step(core.Begin{})
	return p
}

// TestTranscriptsOfStalls: what is told of a job that makes no steps, and what is done.
func TestTranscriptsOfStalls(t *testing.T) {
	running, failed := proto.JobState_JOB_STATE_RUNNING, proto.JobState_JOB_STATE_FAILED
	for _, s := range []struct {
		name   string
		roles  []*proto.RoleSpec
		script func(p *player)
		want   proto.JobState
		why    []string
	}{
		{"before the first step", psAndWorkers(1, 2), func(p *player) {
			p.wait(24 * time.Hour)
		}, running, nil},
		{"it goes on by itself", psAndWorkers(1, 2), func(p *player) {
			p.steps(12, time.Second, "worker-0", "worker-1")
			p.wait(5 * time.Minute)
			p.steps(1, 0, "worker-1")
		}, running, nil},
		{"while it saves", psAndWorkers(1, 2), func(p *player) {
			p.steps(12, time.Second, "worker-0", "worker-1")
			for range 60 {
				p.wait(time.Minute)
				p.step(core.StepsReported{Saving: true})
			}
		}, running, nil},
		{"a restart of the silent task helps", psAndWorkers(1, 2), func(p *player) {
			p.steps(12, time.Second, "worker-0", "worker-1")
			p.steps(2, time.Second, "worker-0")
			p.wait(11 * time.Minute)
			p.steps(12, time.Second, "worker-0", "worker-1")
		}, running, nil},
		{"nothing helps", psAndWorkers(1, 2), func(p *player) {
			p.steps(12, time.Second, "worker-0", "worker-1")
			p.wait(24 * time.Hour)
		}, failed, []string{"worker-0", `File "session.py", line 7 in wait`}},
		{"it never makes its first step after a restart", psAndWorkers(1, 2), func(p *player) {
			p.steps(12, time.Second, "worker-0", "worker-1")
			p.exit("worker-1", core.TaskExited{})
			p.exit("worker-0", core.TaskExited{Signal: 9})
			p.wait(24 * time.Hour)
		}, failed, []string{"worker-0"}},
		{"ranks never make a first step again", ranks(2), func(p *player) {
			p.steps(12, time.Second, "worker-0", "worker-1")
			p.exit("worker-0", core.TaskExited{Signal: 9})
			p.wait(24 * time.Hour)
		}, failed, nil},
		{"another application master ends it", psAndWorkers(1, 1), func(p *player) {
			p.steps(12, time.Second, "worker-0")
			p.wait(11 * time.Minute)
			p.takeOver(core.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1", "c2": "n2"}})
			p.step(core.AgentConnected{Container: "c1", Host: "h", PID: 100, Task: "ps-0", Port: 20000, TaskPID: 200})
			p.step(core.AgentConnected{Container: "c2", Host: "h", PID: 100, Task: "worker-0", Port: 20000, Attempt: 1, TaskPID: 200})
			p.wait(24 * time.Hour)
		}, failed, nil},
	} {
		t.Run(strings.ReplaceAll(s.name, " ", "-"), func(t *testing.T) {
			p := trains(t, s.roles, 3)
			p.t = t
			s.script(p)
			p.state(s.want)
			_, why := p.job.State()
			for _, w := range s.why {
				if !strings.Contains(why, w) {
					t.Errorf("it ended because %q, which does not name %q", why, w)
				}
			}
			p.golden()
		})
	}
}

// TestStallsThatAreOnlyTold: with a limit below zero, nothing is done.
func TestStallsThatAreOnlyTold(t *testing.T) {
	p := playWith(t, psAndWorkers(1, 1), 3, 0, core.Limits{Stall: -1})
	p.made = map[string]int64{}
	p.step(core.Begin{})
	p.steps(12, time.Second, "worker-0")
	p.wait(24 * time.Hour)
	p.state(proto.JobState_JOB_STATE_RUNNING)
	if w := p.named("worker-0"); w.Attempt != 0 || strings.Count(p.log.String(), "Kind:stalled") != 1 {
		t.Errorf("attempt %d\n%s", w.Attempt, p.log.String())
	}
}

// TestHowLongAStallIs: ten times what a pause was of late, and a first step.
func TestHowLongAStallIs(t *testing.T) {
	p := trains(t, psAndWorkers(0, 1), 3)
	p.steps(1, 5*time.Minute, "worker-0") // it compiles
	p.steps(11, time.Second, "worker-0")
	p.steps(1, 4*time.Minute, "worker-0") // an evaluation
	p.wait(39 * time.Minute)
	if w := p.named("worker-0"); w.Attempt != 0 {
		t.Fatalf("attempt %d after a pause that may be\n%s", w.Attempt, p.log.String())
	}
	p.steps(60, time.Second, "worker-0")
	p.exit("worker-0", core.TaskExited{Signal: 9})
	p.wait(49 * time.Minute) // of which a first step may take fifty
	if w := p.named("worker-0"); w.Attempt != 1 {
		t.Fatalf("attempt %d before a first step is due\n%s", w.Attempt, p.log.String())
	}
	p.wait(2 * time.Minute)
	if w := p.named("worker-0"); w.Attempt != 2 {
		t.Fatalf("attempt %d after a first step was due\n%s", w.Attempt, p.log.String())
	}
}
