package status

import (
	"maps"
	"slices"
	"strings"
	"time"

	"holdfast/am/core/event"
	"holdfast/am/core/pace"
	"holdfast/proto"
)

const (
	// stepsInterval is how often steps are reported to core.
	stepsInterval = time.Second
	// rateInterval is how long a measurement of the rate goes on at least, if steps are told of
	// often enough.
	rateInterval = time.Minute
	// rateHeld is how long the rate stays as it was measured at least, as a save or an evaluation
	// may take, and rateGaps for how many times as long as it takes from one report of a step to
	// the next.
	rateHeld, rateGaps = 2 * time.Minute, 3
)

// progress computes the rate of steps, and collects the steps that core is to be told.
// It is not safe for concurrent use.
type progress struct {
	steps map[string]int64 // by task
	rate  float64          // steps per second, when a step was told of last
	from  time.Time        // the rate is measured since; zero: not yet
	base  int64            // the step at from
	last  time.Time        // when a step was told of last
	gap   time.Duration    // from one such time to the next, as it was lately

	news   map[string]int64 // steps that core was not told of, by task
	other  map[string]int64 // progress that is no step, by task
	saving bool             // part of a checkpoint was written, or such progress made, since core was told
	told   time.Time        // when core was told last

	usage     map[string]pace.Usage // the latest, by task, since core was told
	usageTold time.Time

	every      time.Duration         // core is told what tasks have done; 0: never
	counts     map[string]pace.Count // the latest, by task, since core was told
	countsTold time.Time
}

func newProgress() *progress {
	return &progress{
		steps: map[string]int64{}, news: map[string]int64{}, other: map[string]int64{},
		usage: map[string]pace.Usage{}, counts: map[string]pace.Count{},
	}
}

// begin takes in that another attempt of a task begins, which may make the same steps.
func (p *progress) begin(task string) { delete(p.steps, task) }

// report takes in the step that a task reports, and reports whether it is new.
func (p *progress) report(now time.Time, task string, step int64) bool {
	if step == 0 || p.steps[task] == step {
		return false
	}
	p.steps[task], p.news[task] = step, step
	if !p.last.IsZero() {
		p.gap = (p.gap + now.Sub(p.last)) / 2
	}
	p.last = now
	if p.from.IsZero() || step < p.base {
		p.from, p.base = now, step
		return true
	}
	d := now.Sub(p.from)
	if d >= time.Second {
		p.rate = float64(step-p.base) / d.Seconds()
	}
	if d > rateInterval {
		p.from, p.base = now, step
	}
	return true
}

// fall returns what part of the rate that was measured is that of a time: where no step has been
// told of for long, the rate is what it would be if one were told of then.
func (p *progress) fall(now time.Time) float64 {
	if since := now.Sub(p.last); !p.last.IsZero() && since > max(rateHeld, rateGaps*p.gap) {
		return p.gap.Seconds() / since.Seconds()
	}
	return 1
}

// use takes in what a task's attempt has used.
func (p *progress) use(task string, cpu time.Duration, bytes int64) {
	if cpu != 0 || bytes != 0 {
		p.usage[task] = pace.Usage{Task: task, CPU: cpu, Bytes: bytes}
	}
}

// count takes in what a task's attempt has done.
func (p *progress) count(now time.Time, task string, h *proto.Heartbeat) {
	if p.every == 0 || h.ReportedSteps == 0 && h.Looks == 0 {
		return
	}
	c := pace.Count{Task: task, Step: h.Step, Reports: h.ReportedSteps, Looks: h.Looks, Works: h.LooksAtWork}
	if c.Reports > 0 {
		c.At = now.Add(-time.Duration(h.StepAgeMs) * time.Millisecond)
	}
	p.counts[task] = c
}

// reportOther takes in what a task reports of progress that is no step.
func (p *progress) reportOther(task string, other int64) {
	if other != 0 && p.other[task] != other {
		p.saving = true
	}
	p.other[task] = other
}

// interrupt begins a new measurement of the rate, because not all tasks run.
func (p *progress) interrupt() { p.from = time.Time{} }

// due reports whether there is something that core is to be told of now.
func (p *progress) due(now time.Time) bool {
	return (len(p.news) > 0 || p.saving) && now.Sub(p.told) >= stepsInterval || p.usageDue(now) || p.countsDue(now)
}

func (p *progress) countsDue(now time.Time) bool {
	return len(p.counts) > 0 && now.Sub(p.countsTold) >= p.every
}

func (p *progress) usageDue(now time.Time) bool {
	return len(p.usage) > 0 && now.Sub(p.usageTold) >= pace.UsageInterval
}

// take returns what core is to be told, and forgets it.
func (p *progress) take(now time.Time) event.StepsReported {
	e := event.StepsReported{Saving: p.saving}
	for task, step := range p.news {
		e.Steps = append(e.Steps, event.Step{Task: task, Step: step})
	}
	slices.SortFunc(e.Steps, func(a, b event.Step) int { return strings.Compare(a.Task, b.Task) })
	if p.usageDue(now) {
		for _, task := range slices.Sorted(maps.Keys(p.usage)) {
			e.Usage = append(e.Usage, p.usage[task])
		}
		clear(p.usage)
		p.usageTold = now
	}
	if p.countsDue(now) {
		for _, task := range slices.Sorted(maps.Keys(p.counts)) {
			e.Counts = append(e.Counts, p.counts[task])
		}
		clear(p.counts)
		p.countsTold = now
	}
	clear(p.news)
	p.saving, p.told = false, now
	return e
}
