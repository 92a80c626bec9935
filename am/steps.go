package am

import (
	"slices"
	"strings"
	"time"

	"holdfast/am/core"
)

// stepsEvery is how often core is told of steps.
const stepsEvery = time.Second

// progress follows the steps that tasks tell of, for those who look at the job, and
// gathers what core is to be told. It is not safe for concurrent use.
type progress struct {
	steps map[string]int64
	rate  float64   // steps a second
	from  time.Time // since when the rate is counted; zero: not yet
	base  int64     // and from which step

	news   map[string]int64 // that core was not told of
	saving bool             // the same: something was saved
	told   time.Time        // when core was told last
}

func newProgress() *progress {
	return &progress{steps: map[string]int64{}, news: map[string]int64{}}
}

// heard takes in the step that a task tells; it returns whether that is a new one.
func (p *progress) heard(now time.Time, task string, step int64) bool {
	if step == 0 || p.steps[task] == step {
		return false
	}
	p.steps[task], p.news[task] = step, step
	if p.from.IsZero() || step < p.base || now.Sub(p.from) > time.Minute {
		p.from, p.base = now, step
	} else if d := now.Sub(p.from).Seconds(); d >= 1 {
		p.rate = float64(step-p.base) / d
	}
	return true
}

// interrupted says that not all tasks run: the rate is counted anew.
func (p *progress) interrupted() { p.from = time.Time{} }

// due tells whether there is something to tell core, and it is time to.
func (p *progress) due(now time.Time) bool {
	return (len(p.news) > 0 || p.saving) && now.Sub(p.told) >= stepsEvery
}

// tell gives what core is to be told.
func (p *progress) tell(now time.Time) core.StepsReported {
	e := core.StepsReported{Saving: p.saving}
	for task, step := range p.news {
		e.Steps = append(e.Steps, core.Step{Task: task, Step: step})
	}
	slices.SortFunc(e.Steps, func(a, b core.Step) int { return strings.Compare(a.Task, b.Task) })
	clear(p.news)
	p.saving, p.told = false, now
	return e
}
