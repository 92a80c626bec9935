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
	// pausesKnown is how many must be known before a task is restarted: the first
	// steps compile.
	pausesKnown = 10
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

	patience time.Duration // after which a silent task is restarted; 0: never
	begun    time.Time     // when the job was last whole; zero: it is not
	firsts   time.Duration // the longest that a first step has taken from there
	tried    int           // restarts since the last step
}

func newWatch(patience time.Duration) *watch {
	return &watch{steps: map[string]int64{}, moved: map[string]time.Time{}, patience: patience}
}

// heard takes in the step that a task tells; it returns whether that is a new one.
func (w *watch) heard(now time.Time, task string, step int64) bool {
	if step == 0 || w.steps[task] == step {
		return false
	}
	w.steps[task], w.moved[task] = step, now
	w.tried = 0
	if w.last.IsZero() && !w.begun.IsZero() {
		w.firsts = max(w.firsts, now.Sub(w.begun))
	}
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
func (w *watch) interrupted() { w.last, w.from, w.begun = time.Time{}, time.Time{}, time.Time{} }

// uninterrupted says that all tasks run.
func (w *watch) uninterrupted(now time.Time) {
	if w.begun.IsZero() {
		w.begun = now
	}
}

// saved says that a task saves: that is no stall, however long it takes.
func (w *watch) saved(now time.Time) {
	if !w.last.IsZero() {
		w.last = now
	}
}

// limit is how long a pause may be that is not a stall.
func (w *watch) limit(least time.Duration) time.Duration {
	for _, p := range w.pauses {
		least = max(least, stallFactor*p)
	}
	return least
}

// culprit names a task to be restarted because the job has stalled; all: that
// of it alone has not helped. After a restart the first step may take as long
// as it has ever taken, and more. may tells of which tasks it can be.
func (w *watch) culprit(now time.Time, may func(task string) bool) (task string, all bool) {
	if w.patience == 0 || len(w.pauses) < pausesKnown || w.tried > 1 {
		return "", false
	}
	limit, since := w.limit(w.patience), w.last
	if w.tried > 0 && since.IsZero() {
		limit, since = limit+stallFactor*w.firsts, w.begun
	}
	if since.IsZero() || now.Sub(since) <= limit {
		return "", false
	}
	if task, _ = w.quietest(now, may); task != "" {
		w.tried++
	}
	return task, w.tried > 1
}

// quietest names the task that has been silent for longest, of those that may
// be, and since when; "" if there is none.
func (w *watch) quietest(now time.Time, may func(task string) bool) (task string, since time.Time) {
	since = now
	for name, at := range w.moved {
		if may(name) && (at.Before(since) || at.Equal(since) && name < task) {
			task, since = name, at
		}
	}
	return task, since
}

// look tells of the beginning or the end of a stall; "" if there is nothing new.
// may tells which tasks can be the cause.
func (w *watch) look(now time.Time, may func(task string) bool) string {
	stalled := !w.last.IsZero() && len(w.pauses) > 0 && now.Sub(w.last) > w.limit(stallLeast)
	switch {
	case stalled == w.stall:
		return ""
	case !stalled:
		w.stall = false
		return "steps are made again"
	}
	w.stall = true
	text := fmt.Sprintf("no task has made a step for %s, more than %d times the longest pause of late", now.Sub(w.last).Round(time.Second), stallFactor)
	if task, since := w.quietest(now, may); task != "" {
		text += fmt.Sprintf("; the longest silent is %s, since step %d, %s ago", task, w.steps[task], now.Sub(since).Round(time.Second))
	}
	return text
}
