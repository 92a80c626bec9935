package faults

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"holdfast/test/joblogs"
)

// watch follows what the tasks of a job print. Its methods may be called from any
// goroutine.
type watch struct {
	logs *joblogs.Follower

	mu     sync.Mutex
	lines  []joblogs.Line
	steps  map[string][]mark // by worker, in order of time
	begins map[string][]mark // where its sessions began
}

// mark is a step that was made or begun at.
type mark struct {
	at   time.Time
	step int64
	file string
}

const lookEvery = 50 * time.Millisecond

var (
	stepLine  = regexp.MustCompile(`^step (\d+) loss`)
	beginLine = regexp.MustCompile(`^worker \d+ begins at step (\d+)`)
)

// startWatch follows the files that match a pattern, until stop.
func startWatch(pattern string) *watch {
	w := &watch{steps: map[string][]mark{}, begins: map[string][]mark{}}
	w.logs = joblogs.Follow(pattern, w.take)
	return w
}

func (w *watch) stop() { w.logs.Stop() }

func (w *watch) take(l joblogs.Line) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m := stepLine.FindStringSubmatch(l.Text); m != nil {
		step, _ := strconv.ParseInt(m[1], 10, 64)
		w.steps[l.Task] = append(w.steps[l.Task], mark{l.At, step, l.File})
		return
	}
	if m := beginLine.FindStringSubmatch(l.Text); m != nil {
		step, _ := strconv.ParseInt(m[1], 10, 64)
		w.begins[l.Task] = append(w.begins[l.Task], mark{l.At, step, l.File})
	}
	w.lines = append(w.lines, l)
}

// step is where the job is: the highest of the workers' last steps.
func (w *watch) step() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	var step int64
	for _, all := range w.steps {
		step = max(step, all[len(all)-1].step)
	}
	return step
}

// allMoved reports whether every worker has made a step after both moments.
func (w *watch) allMoved(a, b time.Time) bool {
	return w.moved(workers, a) && w.moved(workers, b)
}

// moved reports whether each of so many workers has made a step after a moment.
func (w *watch) moved(workers int, after time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range workers {
		all := w.steps[fmt.Sprintf("worker-%d", i)]
		if len(all) == 0 || !all[len(all)-1].at.After(after) {
			return false
		}
	}
	return true
}

// beganAt is when a worker's last session began; zero if none has.
func (w *watch) beganAt(worker string) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.begins[worker]
	if len(all) == 0 {
		return time.Time{}
	}
	return all[len(all)-1].at
}

// undisturbed is how long a worker may go without a step for no fault at all: it
// saves. On a busy machine it is twice as long as it lately was.
const undisturbed = 1500 * time.Millisecond

// pause is a time without steps of a worker.
type pause struct{ from, to time.Time }

func (p pause) length() time.Duration { return p.to.Sub(p.from) }

// again is how long after a moment a worker made a step in a session that began
// since, the last one if there were several; else, when it was back from its
// longest pause since. 0: it made none that counts.
func (w *watch) again(worker string, since time.Time) time.Duration {
	if at := w.anew(worker, since); !at.IsZero() {
		return at.Sub(since)
	}
	p, before := w.longest(worker, since, time.Now()), w.longest(worker, since.Add(-5*time.Second), since)
	if p.length() <= max(undisturbed, 2*before.length()) {
		return 0
	}
	return p.to.Sub(since)
}

// anew is when a worker made the first step in its last session, if that began
// after a moment; zero if none did.
func (w *watch) anew(worker string, since time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.begins[worker]
	if len(all) == 0 || !all[len(all)-1].at.After(since) {
		return time.Time{}
	}
	begun := all[len(all)-1].at
	for _, m := range w.steps[worker] {
		if !m.at.Before(begun) {
			return m.at
		}
	}
	return time.Time{}
}

// longest is a worker's longest pause between two moments; one that has not
// ended by then does not count.
func (w *watch) longest(worker string, from, to time.Time) pause {
	w.mu.Lock()
	defer w.mu.Unlock()
	var longest pause
	last := from
	for _, m := range w.steps[worker] {
		if !m.at.After(from) || m.at.After(to) {
			continue
		}
		if p := (pause{last, m.at}); p.length() > longest.length() {
			longest = p
		}
		last = m.at
	}
	return longest
}

// begun is the lowest step at which a worker's session began after a moment, -1 if
// none did, and how many steps were made again, at most: those beyond the one at which
// a session began. At that moment the job was at step. The chief tells of its own
// session later than it restores: it saves first.
func (w *watch) begun(since time.Time, step int64) (lowest, again int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lowest = -1
	for _, all := range w.begins {
		for _, m := range all {
			if !m.at.After(since) {
				continue
			}
			if lowest < 0 || m.step < lowest {
				lowest = m.step
			}
			if n := max(step, w.made(since, m.at)) - m.step; n > workers { // fewer are being made
				again = max(again, n)
			}
		}
	}
	return lowest, again
}

// made is the highest step that a worker told of between two moments; w.mu is held.
func (w *watch) made(from, to time.Time) (step int64) {
	for _, all := range w.steps {
		for _, m := range all {
			if m.at.After(from) && m.at.Before(to) {
				step = max(step, m.step)
			}
		}
	}
	return step
}

// twice are the workers of which two processes made steps at the same time after a
// moment, for longer than it takes to end one that comes to.
func (w *watch) twice(since time.Time) []string {
	const ending = 2 * time.Second
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []string
	for worker, all := range w.steps {
		newest, stale := "", map[string]time.Time{} // when a file's process began to make steps beside a newer one's
		for _, m := range all {
			began, old := stale[m.file]
			switch {
			case m.file == newest:
			case !old:
				stale[newest], newest = time.Time{}, m.file
			case !m.at.After(since):
			case began.IsZero():
				stale[m.file] = m.at
			case m.at.Sub(began) > ending && !slices.Contains(list, worker):
				list = append(list, worker)
			}
		}
	}
	slices.Sort(list)
	return list
}

// said is what tasks printed after a moment, but for their steps.
func (w *watch) said(since time.Time) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, l := range w.lines {
		if l.At.After(since) {
			all = append(all, fmt.Sprintf("%7.2f %-9s %s", l.At.Sub(since).Seconds(), l.Task, l.Text))
		}
	}
	return all
}

// heard reports whether a task printed a line that matches after a moment.
func (w *watch) heard(text *regexp.Regexp, since time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.lines, func(l joblogs.Line) bool { return l.At.After(since) && text.MatchString(l.Text) })
}
