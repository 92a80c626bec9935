package core_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/am/core"
	"holdfast/am/core/event"
	"holdfast/am/core/pace"
	"holdfast/proto"
)

// pacer counts what tasks do that each make a step in a time of its own.
type pacer struct {
	*player
	every  map[string]time.Duration // a step, by task; 0: it makes none
	works  map[string]float64       // share of the time at work, by task
	shared bool                     // all count the same steps
	told   int64                    // each of that many steps is told; 0: each
	counts map[string]pace.Count
	left   map[string]time.Duration // of the time, since the last step
	total  int64
	sent   map[string]int64 // reports, by task
}

func pacing(t *testing.T, roles []*proto.RoleSpec, limits core.Limits) *pacer {
	p := &pacer{player: playWith(t, roles, 3, 0, limits), every: map[string]time.Duration{}, works: map[string]float64{}, counts: map[string]pace.Count{}, left: map[string]time.Duration{}, sent: map[string]int64{}}
	p.step(event.Begin{})
	return p
}

// run lets time pass, in which tasks make steps.
func (p *pacer) run(d time.Duration) {
	p.t.Helper()
	for end := p.now.Add(d); p.now.Before(end); {
		interval := p.job.CountInterval()
		p.wait(interval)
		var e event.StepsReported
		for _, task := range slices.Sorted(maps.Keys(p.every)) {
			c := p.counts[task]
			c.Task = task
			if every := p.every[task]; every > 0 {
				n := int64((p.left[task] + interval) / every)
				p.left[task] = (p.left[task] + interval) % every
				c.Reports, c.Step, p.total = c.Reports+n, c.Step+n*max(1, p.told), p.total+n
				if n > 0 {
					c.At = p.now.Add(-p.left[task])
				}
			}
			if w, ok := p.works[task]; ok {
				c.Looks += int64(interval / time.Second)
				c.Works += int64(w * interval.Seconds())
			}
			p.counts[task] = c
		}
		for _, task := range slices.Sorted(maps.Keys(p.every)) {
			c := p.counts[task]
			if p.shared && c.Reports != p.sent[task] {
				c.Step, p.sent[task] = p.total, c.Reports
				p.counts[task] = c
			}
			e.Counts = append(e.Counts, c)
			e.Steps = append(e.Steps, event.Step{Task: task, Step: c.Step})
		}
		p.step(e)
	}
}

// quiet has the transcript begin now.
func (p *pacer) quiet() { p.log.Reset() }

// alike has tasks make steps equally fast.
func (p *pacer) alike(every time.Duration, tasks ...string) {
	for _, t := range tasks {
		p.every[t] = every
	}
}

// named reports whether the event log names a task as a straggler, and for what.
func (p *pacer) tells(task string) string {
	for _, line := range strings.Split(p.log.String(), "\n") {
		if strings.Contains(line, "Record{Task:"+task+" Kind:straggler Text:it is slower") {
			return line
		}
	}
	return ""
}

var four = []string{"worker-0", "worker-1", "worker-2", "worker-3"}

// TestTranscriptsOfStragglers: what is told of a task that is slower than the others, and how
// it is moved.
func TestTranscriptsOfStragglers(t *testing.T) {
	const second = time.Second
	moves := core.Limits{StragglerMoves: 1}
	for _, s := range []struct {
		name   string
		roles  []*proto.RoleSpec
		limits core.Limits
		script func(p *pacer)
	}{
		{"a worker is slow for a while", psAndWorkers(1, 4), core.Limits{}, func(p *pacer) {
			p.every["worker-2"] = 8 * second
			p.run(3 * time.Minute)
			p.every["worker-2"] = second
			p.run(3 * time.Minute)
		}},
		{"workers count the same steps", psAndWorkers(1, 4), core.Limits{}, func(p *pacer) {
			p.shared = true
			p.every["worker-2"] = 8 * second
			p.run(3 * time.Minute)
		}},
		{"a rank does not wait", ranks(4), core.Limits{}, func(p *pacer) {
			p.works = map[string]float64{"worker-0": 0.3, "worker-1": 0.35, "worker-2": 0.3, "worker-3": 0.97}
			p.run(3 * time.Minute)
		}},
		{"a worker moves", psAndWorkers(1, 4), moves, func(p *pacer) {
			p.every["worker-2"] = 8 * second
			p.run(3 * time.Minute)
			p.step(event.CheckpointSealed{})
			delete(p.counts, "worker-2")
			p.run(4 * time.Minute) // it is as slow there
		}},
		{"a rank moves after a checkpoint", ranks(4), moves, func(p *pacer) {
			p.works = map[string]float64{"worker-0": 0.3, "worker-1": 0.35, "worker-2": 0.3, "worker-3": 0.97}
			p.run(4 * time.Minute)
			p.step(event.CheckpointSealed{})
		}},
		{"there is no other node", psAndWorkers(1, 4), moves, func(p *pacer) {
			p.node = func(int) string { return p.named("worker-2").Node }
			p.every["worker-2"] = 8 * second
			p.run(4 * time.Minute)
		}},
		{"it is fast again before there is room elsewhere", psAndWorkers(1, 4), moves, func(p *pacer) {
			p.mute["Allocated"] = true
			p.every["worker-2"] = 8 * second
			p.run(3 * time.Minute)
			p.every["worker-2"] = second
			p.run(3 * time.Minute)
		}},
		{"it fails before there is room elsewhere", psAndWorkers(1, 4), moves, func(p *pacer) {
			p.mute["Allocated"] = true
			p.every["worker-2"] = 8 * second
			p.run(3 * time.Minute)
			p.exit("worker-2", event.TaskExited{Signal: 9})
			p.wait(second)
		}},
	} {
		t.Run(strings.ReplaceAll(s.name, " ", "-"), func(t *testing.T) {
			p := pacing(t, s.roles, s.limits)
			p.t = t
			p.alike(second, four...)
			p.run(3 * time.Minute)
			p.quiet()
			s.script(p)
			p.golden()
		})
	}
}

// TestWhenAStragglerIsNamed: not before it was slow for as long as is stated, and before that has passed again.
func TestWhenAStragglerIsNamed(t *testing.T) {
	for _, limit := range []time.Duration{20 * time.Second, 2 * time.Minute, time.Hour} {
		p := pacing(t, psAndWorkers(0, 3), core.Limits{StragglerTime: limit})
		p.alike(time.Second, "worker-0", "worker-1", "worker-2")
		p.run(3 * limit)
		p.every["worker-1"] = 3 * time.Second
		p.run(limit - time.Second)
		if line := p.tells("worker-1"); line != "" {
			t.Errorf("slow for less than %s: %s", limit, line)
		}
		p.run(limit)
		if p.tells("worker-1") == "" {
			t.Errorf("slow for twice %s, and not named\n%s", limit, p.log.String())
		}
		if w := p.named("worker-1"); w.Straggler() == nil || w.Speed.Time.Round(time.Second) != 3*time.Second {
			t.Errorf("it is shown as %v, with %s for a step", w.Straggler(), w.Speed.Time)
		}
		for _, other := range []string{"worker-0", "worker-2"} {
			if line := p.tells(other); line != "" {
				t.Errorf("%s", line)
			}
		}
	}
}

// TestWhoIsNoStraggler: nobody, where nothing shows it for sure.
func TestWhoIsNoStraggler(t *testing.T) {
	const second = time.Second
	for name, c := range map[string]struct {
		roles  []*proto.RoleSpec
		limits core.Limits
		script func(p *pacer)
	}{
		"one that is a little slower": {psAndWorkers(1, 4), core.Limits{}, func(p *pacer) {
			p.every["worker-2"] = 1800 * time.Millisecond
			p.run(time.Hour)
		}},
		"one that evaluates for a while": {psAndWorkers(1, 4), core.Limits{}, func(p *pacer) {
			for _, pause := range []time.Duration{30, 60, 75, 90, 110, 130, 200, 600} {
				p.every["worker-2"] = 0
				p.run(pause * second)
				p.every["worker-2"] = second
				p.run(4 * time.Minute)
			}
		}},
		"one that pauses while steps are seldom": {psAndWorkers(1, 4), core.Limits{}, func(p *pacer) {
			p.alike(55*second, four...)
			p.run(20 * time.Minute)
			for _, pause := range []time.Duration{60, 100, 150, 200, 250, 300, 400} {
				p.every["worker-2"] = 0
				p.run(pause * second)
				p.every["worker-2"] = 55 * second
				p.run(20 * time.Minute)
			}
		}},
		"one whose steps are seldom, as all are": {psAndWorkers(1, 4), core.Limits{}, func(p *pacer) {
			p.alike(50*second, four...)
			p.left["worker-2"] = 40 * second
			p.run(time.Hour)
		}},
		"one whose first step takes long": {psAndWorkers(1, 4), core.Limits{}, func(p *pacer) {
			p.exit("worker-2", event.TaskExited{Signal: 9})
			p.wait(second)
			p.counts["worker-2"] = pace.Count{}
			p.every["worker-2"] = 0
			p.run(time.Hour)
		}},
		"one of two that report a step seldom": {psAndWorkers(1, 2), core.Limits{}, func(p *pacer) {
			p.shared = true
			p.every["worker-1"] = 8 * second
			p.run(time.Hour)
		}},
		"one that is slow for a while, alone, and slow again": {psAndWorkers(1, 2), core.Limits{}, func(p *pacer) {
			p.every["worker-0"] = 8 * second
			p.run(90 * second)
			delete(p.every, "worker-1") // nothing is heard of it
			p.every["worker-0"] = second
			p.run(90 * second)
			p.counts["worker-1"] = pace.Count{}
			p.alike(second, "worker-1")
			p.every["worker-0"] = 8 * second
			p.run(150 * second)
		}},
		"workers that report the steps of all by chance": {psAndWorkers(1, 4), core.Limits{}, func(p *pacer) {
			p.shared = true
			p.alike(0, four...)
			r := rand.New(rand.NewPCG(1, 1))
			for range 20000 {
				for _, task := range four {
					c := p.counts[task]
					for range 30 { // it reports what it finds at one of the numbers that the program tells of
						if r.IntN(12) == 0 {
							c.Reports, c.At = c.Reports+1, p.now.Add(30*second)
						}
						p.total++
					}
					p.counts[task] = c
				}
				p.run(30 * second)
			}
		}},
		"ranks that poll": {ranks(4), core.Limits{}, func(p *pacer) {
			p.works = map[string]float64{"worker-0": 1, "worker-1": 1, "worker-2": 1, "worker-3": 1}
			p.run(time.Hour)
		}},
		"ranks that wait for their data": {ranks(4), core.Limits{}, func(p *pacer) {
			p.works = map[string]float64{"worker-0": 0.05, "worker-1": 0.05, "worker-2": 0.2, "worker-3": 0.05}
			p.run(time.Hour)
		}},
		"a rank that prepares while the others wait": {ranks(4), core.Limits{}, func(p *pacer) {
			p.works = map[string]float64{"worker-0": 1, "worker-1": 0, "worker-2": 0, "worker-3": 0}
			p.alike(0, four...)
			p.run(time.Hour)
		}},
		"any, if none is looked for": {psAndWorkers(1, 4), core.Limits{StragglerTime: -1}, func(p *pacer) {
			if got := p.job.CountInterval(); got != 0 {
				t.Errorf("counts are wanted each %s", got)
			}
		}},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			p := pacing(t, c.roles, c.limits)
			p.t = t
			if c.limits.StragglerTime == 0 {
				p.alike(second, four[:c.roles[len(c.roles)-1].Count]...)
				p.run(3 * time.Minute)
			}
			c.script(p)
			if strings.Contains(p.log.String(), "Kind:straggler") {
				t.Errorf("somebody is named\n%s", p.log.String())
			}
		})
	}
}

// TestAStragglerMayBeVerySlow: so that it reports a step less often than what all do is counted.
func TestAStragglerMayBeVerySlow(t *testing.T) {
	p := pacing(t, psAndWorkers(1, 4), core.Limits{})
	p.alike(5*time.Second, four...)
	p.run(5 * time.Minute)
	p.every["worker-2"] = 100 * time.Second
	p.run(10 * time.Minute)
	if p.tells("worker-2") == "" {
		t.Errorf("it is not named\n%s", p.log.String())
	}
}

// TestASlowRankWhoseStepsAreToldSeldom: many programs tell of each tenth or hundredth step, and
// only one of the ranks does. What counts are the steps that are made.
func TestASlowRankWhoseStepsAreToldSeldom(t *testing.T) {
	p := pacing(t, ranks(4), core.Limits{})
	p.works = map[string]float64{"worker-0": 0.3, "worker-1": 0.35, "worker-2": 0.3, "worker-3": 0.3}
	p.alike(0, four...)
	p.every["worker-0"], p.told = 50*time.Second, 10
	p.run(10 * time.Minute)
	if strings.Contains(p.log.String(), "Kind:straggler") {
		t.Errorf("somebody is named\n%s", p.log.String())
	}
	p.works["worker-3"], p.every["worker-0"] = 0.97, 100*time.Second
	p.run(6 * time.Minute)
	if p.tells("worker-3") == "" {
		t.Errorf("it is not named\n%s", p.log.String())
	}
	for _, other := range four[:3] {
		if text := p.tells(other); text != "" {
			t.Errorf("so is another: %s", text)
		}
	}
}

// TestMovesOfStragglersAreCounted: also by the next application master.
func TestMovesOfStragglersAreCounted(t *testing.T) {
	p := pacing(t, psAndWorkers(0, 3), core.Limits{StragglerMoves: 2})
	p.alike(time.Second, "worker-0", "worker-1")
	p.every["worker-2"] = 8 * time.Second
	moved, last := 0, p.named("worker-2").Container
	for range 6 {
		p.run(4 * time.Minute)
		if w := p.named("worker-2"); w.Container != last {
			moved, last = moved+1, w.Container
		}
		containers := map[string]string{}
		for _, task := range p.job.Tasks() {
			containers[task.Container] = task.Node
		}
		p.takeOver(event.Recovered{Attempt: 2, Containers: containers})
		for _, task := range p.job.Tasks() {
			p.step(event.AgentConnected{Container: task.Container, Host: "h", PID: 100, Task: task.Name, Port: 20000, PeerPort: 20000, Attempt: task.Attempt, TaskPID: 200})
		}
		p.counts = map[string]pace.Count{}
	}
	if moved != 2 {
		t.Errorf("it was moved %d times, want 2\n%s", moved, p.log.String())
	}
}
