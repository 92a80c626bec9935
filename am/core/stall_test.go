package core_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/am/core"
	"holdfast/am/core/event"
	"holdfast/am/core/journal"
	"holdfast/am/core/pace"
	"holdfast/proto"
)

// steps lets tasks make steps, one each time, with a pause before each.
func (p *player) steps(n int, pause time.Duration, tasks ...string) {
	p.t.Helper()
	for range n {
		p.wait(pause)
		e := event.StepsReported{}
		for _, t := range tasks {
			p.made[t]++
			e.Steps = append(e.Steps, event.Step{Task: t, Step: p.made[t]})
		}
		p.step(e)
	}
}

// trains has a job of tasks that make steps as long as they like.
func trains(t *testing.T, roles []*proto.RoleSpec, restarts int) *player {
	p := play(t, roles, restarts)
	p.made = map[string]int64{}
	p.step(event.Begin{})
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
		}, running, []string{"no task has told of a step"}},
		{"it goes on by itself", psAndWorkers(1, 2), func(p *player) {
			p.steps(12, time.Second, "worker-0", "worker-1")
			p.wait(5 * time.Minute)
			p.steps(1, 0, "worker-1")
		}, running, nil},
		{"while it saves", psAndWorkers(1, 2), func(p *player) {
			p.steps(12, time.Second, "worker-0", "worker-1")
			for range 60 {
				p.wait(time.Minute)
				p.step(event.StepsReported{Saving: true})
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
			p.exit("worker-1", event.TaskExited{})
			p.exit("worker-0", event.TaskExited{Signal: 9})
			p.wait(24 * time.Hour)
		}, failed, []string{"worker-0"}},
		{"ranks never make a first step again", ranks(2), func(p *player) {
			p.steps(12, time.Second, "worker-0", "worker-1")
			p.exit("worker-0", event.TaskExited{Signal: 9})
			p.wait(24 * time.Hour)
		}, failed, nil},
		{"another application master ends it", psAndWorkers(1, 1), func(p *player) {
			p.steps(12, time.Second, "worker-0")
			p.wait(11 * time.Minute)
			p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1", "c2": "n2"}})
			p.step(event.AgentConnected{Container: "c1", Host: "h", PID: 100, Task: "ps-0", Port: 20000, TaskPID: 200})
			p.step(event.AgentConnected{Container: "c2", Host: "h", PID: 100, Task: "worker-0", Port: 20000, Attempt: 1, TaskPID: 200})
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

// TestAJobWithoutSteps: of a job of which it is not known whether it makes steps, the event
// log and its state say once that none was told, after three times the limit of a stall, and
// nothing is restarted.
func TestAJobWithoutSteps(t *testing.T) {
	for name, c := range map[string]struct {
		limit time.Duration
		begin func(p *player)
		after time.Duration
		says  []string
	}{
		"none":               {0, func(*player) {}, 30 * time.Minute, []string{"no step yet after 30m0s", "--progress", "no task is busy (yarn-submit stacks"}},
		"none, of ranks":     {time.Minute, func(p *player) { p.exit("worker-0", event.TaskExited{Signal: 9}) }, 3 * time.Minute, []string{"no step yet after 3m0s"}},
		"stalls are told":    {-1, func(*player) {}, 30 * time.Minute, []string{"no step yet after 30m0s"}},
		"it hangs after one": {0, func(p *player) { p.steps(1, time.Second, "worker-0") }, 30 * time.Minute, []string{"no further step after 30m0s"}},
		"no journal is found": {0, func(p *player) {
			p.forgets = true
			p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1", "c2": "n2"}})
			for i, c := range []string{"c1", "c2"} {
				p.step(event.AgentConnected{Container: c, Host: "h", PID: 100, Task: fmt.Sprintf("worker-%d", i), Port: 20000, PeerPort: 20000, TaskPID: 200})
			}
		}, 30 * time.Minute, []string{"no step yet after 30m0s"}},
		"it is busy": {time.Minute, func(p *player) {
			for n := range 4 {
				p.step(event.StepsReported{Usage: []pace.Usage{{Task: "worker-1", CPU: time.Duration(n) * time.Minute}}})
				p.wait(pace.UsageInterval)
			}
		}, 0, []string{"no step yet after 3m0s", "worker-1 is busy: it uses 1.0 CPUs"}},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			p := playWith(t, ranks(2), 3, 0, core.Limits{Stall: c.limit})
			p.made = map[string]int64{}
			p.step(event.Begin{})
			c.begin(p)
			attempt := p.named("worker-0").Attempt
			if c.after > 0 {
				p.wait(c.after - time.Second)
				if strings.Contains(p.log.String(), "step yet") || strings.Contains(p.log.String(), "further step") {
					t.Fatalf("it is told too early\n%s", p.log.String())
				}
			}
			p.wait(time.Second)
			for _, text := range c.says {
				p.says(text)
			}
			p.wait(24 * time.Hour)
			if n := strings.Count(p.log.String(), "in which all tasks ran"); n != 1 {
				t.Errorf("it is told %d times\n%s", n, p.log.String())
			}
			p.state(proto.JobState_JOB_STATE_RUNNING)
			if _, why := p.job.State(); !strings.Contains(why, "no task has told of a step") || p.named("worker-0").Attempt != attempt {
				t.Errorf("it runs as %q, in attempt %d", why, p.named("worker-0").Attempt)
			}
			p.steps(2, time.Second, "worker-0")
			if _, why := p.job.State(); why != "" {
				t.Errorf("it makes steps, and runs as %q", why)
			}
		})
	}
}

// TestStepsAfterNoneWasTold: what is said of a job that tells of no steps is taken back with the
// first that it tells of, whether or not all of its tasks run then.
func TestStepsAfterNoneWasTold(t *testing.T) {
	for name, begin := range map[string]func(p *player){
		"all tasks run": func(*player) {},
		"one is lost": func(p *player) {
			p.mute["Allocated"] = true
			p.step(event.ContainerEnded{Container: p.named("worker-1").Container, Cause: event.CauseKilled})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := trains(t, psAndWorkers(1, 2), 3)
			p.wait(time.Hour)
			begin(p)
			if _, why := p.job.State(); !strings.Contains(why, "no task has told of a step") {
				t.Fatalf("it runs as %q", why)
			}
			p.steps(1, time.Second, "worker-0")
			if _, why := p.job.State(); why != "" || !p.job.NeedsJournal() {
				t.Errorf("it makes steps, and runs as %q; what users see is updated: %v", why, p.job.NeedsJournal())
			}
			p.steps(20, time.Second, "worker-0")
			if n := strings.Count(p.log.String(), "steps are made again"); n != 1 {
				t.Errorf("that steps are made again is told %d times\n%s", n, p.log.String())
			}
		})
	}
}

// TestBusyTasks: a job whose task works without making steps, as by an export or an
// evaluation, gets three times the limit, and no more.
func TestBusyTasks(t *testing.T) {
	cpu := func(cpus float64) func(*pace.Usage) {
		return func(u *pace.Usage) { u.CPU += time.Duration(cpus * float64(time.Minute)) }
	}
	for name, c := range map[string]struct {
		uses    func(*pace.Usage) // in a minute
		minutes int               // for how long it does
		after   int               // the minutes after which it is restarted
	}{
		"it computes":             {cpu(1), 60, 30},
		"it writes":               {func(u *pace.Usage) { u.Bytes += 100 << 20 }, 60, 30},
		"it computes for a while": {cpu(1), 20, 21},
		"its threads are idle":    {cpu(0.05), 60, 10},
		"it polls seldom":         {func(u *pace.Usage) { u.Bytes += 1 << 20 }, 60, 10},
	} {
		t.Run(name, func(t *testing.T) {
			p := trains(t, psAndWorkers(1, 2), 3)
			p.steps(12, time.Second, "worker-0", "worker-1")
			u := pace.Usage{Task: "worker-1"}
			restarted := func() int { return p.named("worker-0").Attempt + p.named("worker-1").Attempt }
			minutes := 0
			for ; restarted() == 0 && minutes < 60; minutes++ {
				if minutes < c.minutes {
					c.uses(&u)
				}
				p.step(event.StepsReported{Usage: []pace.Usage{u}})
				p.wait(time.Minute)
			}
			if minutes < c.after || minutes > c.after+1 {
				t.Errorf("it is restarted after %d minutes, want %d\n%s", minutes, c.after, p.log.String())
			}
			if told := strings.Contains(p.log.String(), "worker-1 is busy"); told != (c.after > 10) {
				t.Errorf("that it is busy is in the event log: %v\n%s", told, p.log.String())
			}
		})
	}
}

// TestAStallOutlivesItsJournal: a job that hangs while another application master takes
// it over without a journal is restarted all the same, after three times the limit: how
// fast it makes steps is not known any longer. Agents report their last steps again.
func TestAStallOutlivesItsJournal(t *testing.T) {
	for name, reported := range map[string]bool{"steps are reported again": true, "the saved status has them": false} {
		t.Run(name, func(t *testing.T) {
			p := lostJournal(t, reported)
			p.wait(28 * time.Minute)
			if w := p.named("worker-0"); w.Attempt != 0 {
				t.Fatalf("attempt %d too early\n%s", w.Attempt, p.log.String())
			}
			p.wait(3 * time.Minute)
			if w := p.named("worker-0"); w.Attempt != 1 {
				t.Fatalf("attempt %d, and it has hung for half an hour\n%s", w.Attempt, p.log.String())
			}
			p.wait(24 * time.Hour)
			p.state(proto.JobState_JOB_STATE_FAILED)
		})
	}
}

// TestASlowJobOutlivesItsJournal: nothing is done to a job that makes a step seldom, also
// once ten are known again.
func TestASlowJobOutlivesItsJournal(t *testing.T) {
	p := lostJournal(t, true)
	p.steps(30, 25*time.Minute, "worker-0")
	if w := p.named("worker-0"); w.Attempt != 0 {
		t.Errorf("attempt %d\n%s", w.Attempt, p.log.String())
	}
}

// lostJournal is a job of one worker that has made 12 steps, just after an application
// master has taken it over without a journal. The steps are known from the agents'
// heartbeats if they are reported, or else from the saved status.
func lostJournal(t *testing.T, reported bool) *player {
	p := trains(t, psAndWorkers(1, 1), 3)
	p.steps(12, time.Second, "worker-0")
	p.forgets = true
	if !reported {
		p.known = []journal.TaskRecord{{Name: "worker-0", State: proto.TaskState_TASK_STATE_RUNNING, Container: "c2", Step: 12}}
	}
	p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1", "c2": "n2"}})
	p.step(event.AgentConnected{Container: "c1", Host: "h", PID: 100, Task: "ps-0", Port: 20000, PeerPort: 20000, TaskPID: 200})
	p.step(event.AgentConnected{Container: "c2", Host: "h", PID: 100, Task: "worker-0", Port: 20000, PeerPort: 20000, TaskPID: 200})
	if reported {
		p.step(event.StepsReported{Steps: []event.Step{{Task: "worker-0", Step: 12}}})
	}
	return p
}

// TestStallsThatAreOnlyTold: with a limit below zero, nothing is done.
func TestStallsThatAreOnlyTold(t *testing.T) {
	p := playWith(t, psAndWorkers(1, 1), 3, 0, core.Limits{Stall: -1})
	p.made = map[string]int64{}
	p.step(event.Begin{})
	p.steps(12, time.Second, "worker-0")
	p.wait(24 * time.Hour)
	p.state(proto.JobState_JOB_STATE_RUNNING)
	if w := p.named("worker-0"); w.Attempt != 0 || strings.Count(p.log.String(), "Kind:stalled") != 1 {
		t.Errorf("attempt %d\n%s", w.Attempt, p.log.String())
	}
}

// TestHowLongAStallIs: ten times the longest recent pause, or the first step.
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
	p.exit("worker-0", event.TaskExited{Signal: 9})
	p.wait(49 * time.Minute) // of which a first step may take fifty
	if w := p.named("worker-0"); w.Attempt != 1 {
		t.Fatalf("attempt %d before a first step is due\n%s", w.Attempt, p.log.String())
	}
	p.wait(2 * time.Minute)
	if w := p.named("worker-0"); w.Attempt != 2 {
		t.Fatalf("attempt %d after a first step was due\n%s", w.Attempt, p.log.String())
	}
}
