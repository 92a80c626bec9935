package am

import (
	"fmt"
	"time"
)

const (
	// stallFactor is by how much a pause must be longer than the longest one of
	// late to be called a stall, and stallLeast how long it must be at least:
	// saving, evaluating and compiling take their time.
	stallFactor = 10
	stallLeast  = 2 * time.Minute
	pauseMemory = 50 // pauses that count as of late
)

// watch follows the steps of a job. It is not safe for concurrent use.
type watch struct {
	steps  map[string]int64
	moved  map[string]time.Time // when a task made its last step
	pauses []time.Duration      // between steps of the job
	last   time.Time            // when a step was made; zero: none since the job was last whole
	rate   float64              // steps a second
	from   time.Time            // since when the rate is counted
	base   int64                // and from which step
	stall  bool
}

func newWatch() *watch { return &watch{steps: map[string]int64{}, moved: map[string]time.Time{}} }

// heard takes in the step that a task tells; it returns whether that is a new one.
func (w *watch) heard(now time.Time, task string, step int64) bool {
	if step == 0 || w.steps[task] == step {
		return false
	}
	w.steps[task], w.moved[task] = step, now
	if !w.last.IsZero() {
		w.pauses = append(w.pauses, now.Sub(w.last))
		w.pauses = w.pauses[max(0, len(w.pauses)-pauseMemory):]
	}
	w.last = now
	if w.from.IsZero() || step < w.base || now.Sub(w.from) > time.Minute {
		w.from, w.base = now, step
	} else if d := now.Sub(w.from).Seconds(); d >= 1 {
		w.rate = float64(step-w.base) / d
	}
	return true
}

// interrupted says that not all tasks run: then no step is due.
func (w *watch) interrupted() { w.last, w.from = time.Time{}, time.Time{} }

// look tells of the beginning or the end of a stall; "" if there is nothing new.
func (w *watch) look(now time.Time) string {
	limit := stallLeast
	for _, p := range w.pauses {
		limit = max(limit, stallFactor*p)
	}
	stalled := !w.last.IsZero() && len(w.pauses) > 0 && now.Sub(w.last) > limit
	switch {
	case stalled == w.stall:
		return ""
	case !stalled:
		w.stall = false
		return "steps are made again"
	}
	w.stall = true
	quietest, since := "", now
	for task, at := range w.moved {
		if at.Before(since) || at.Equal(since) && task < quietest {
			quietest, since = task, at
		}
	}
	return fmt.Sprintf("no task has made a step for %s, more than %d times the longest pause of late; the longest silent is %s, since step %d, %s ago",
		now.Sub(w.last).Round(time.Second), stallFactor, quietest, w.steps[quietest], now.Sub(since).Round(time.Second))
}
