package core

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"holdfast/proto"
)

const (
	// stallFactor is by how much a pause must be longer than the longest one of
	// late to be called a stall: saving, evaluating and compiling take their time.
	stallFactor = 10
	pauseMemory = 50 // pauses that count as of late
	// pausesKnown is how many must be known before anything is done about a stall:
	// the first steps compile.
	pausesKnown = 10
)

// pace follows the steps of the job, to see that it has stalled. While all tasks run
// that the job needs, steps are due; a job that has made some, and makes none for too
// long, is told of, and then is acted on in steps: the task that has been
// silent for longest is restarted, then all are, and then the job ends.
type pace struct {
	pauses []time.Duration // between steps of the job, of late
	firsts time.Duration   // the longest that a first step has taken since all tasks ran
	begun  time.Time       // since when all tasks run; zero: they do not
	last   time.Time       // when a step was made, or something was saved, since begun; zero: none was
	tried  int             // what was done about the stall: restarts
	told   bool            // of the stall
}

// PaceRecord is what a Journal says of the job's pace. Times are milliseconds.
type PaceRecord struct {
	Pauses int   `json:"pauses"` // how many are known, pauseMemory at most
	Pause  int64 `json:"pause"`  // the longest of them
	Firsts int64 `json:"firsts"` // the longest that a first step has taken
	Tried  int   `json:"tried,omitempty"`
}

func (p *pace) record() *PaceRecord {
	if len(p.pauses) == 0 {
		return nil
	}
	return &PaceRecord{Pauses: len(p.pauses), Pause: p.longest().Milliseconds(), Firsts: p.firsts.Milliseconds(), Tried: p.tried}
}

func (p *pace) resume(r *PaceRecord) {
	if r == nil {
		return
	}
	p.pauses = make([]time.Duration, min(r.Pauses, pauseMemory))
	if len(p.pauses) > 0 {
		p.pauses[len(p.pauses)-1] = time.Duration(r.Pause) * time.Millisecond
	}
	p.firsts, p.tried = time.Duration(r.Firsts)*time.Millisecond, r.Tried
}

func (p *pace) longest() time.Duration {
	var longest time.Duration
	for _, d := range p.pauses {
		longest = max(longest, d)
	}
	return longest
}

// paced reports whether enough is known of the job's steps to do something about a
// stall. Until then another master, which has to learn it again, knows no less.
func (j *Job) paced() bool { return len(j.pace.pauses) >= pausesKnown }

// since is when the job last gave a sign of going on.
func (p *pace) since() time.Time {
	if p.last.IsZero() {
		return p.begun
	}
	return p.last
}

// limit is how long the job may be silent now, at least for least. What comes before
// the first step after a start may take as long as it ever has, and more.
func (p *pace) limit(least time.Duration) time.Duration {
	least = max(least, stallFactor*p.longest())
	if p.last.IsZero() {
		least = max(least, stallFactor*p.firsts)
	}
	return least
}

// stepped takes in which steps tasks have made, and that they have saved.
func (j *Job) stepped(e StepsReported) {
	p, news := &j.pace, false
	for _, s := range e.Steps {
		if t := j.named[s.Task]; t != nil && s.Step != 0 && s.Step != t.progress.step {
			t.progress, news = progress{s.Step, j.now}, true
		}
	}
	if p.begun.IsZero() {
		return
	}
	if !news {
		if e.Saving { // that is no stall, however long it takes
			if p.last.IsZero() {
				p.begun = j.now
			} else {
				p.last = j.now
			}
		}
		return
	}
	if p.told {
		p.told = false
		j.record(nil, KindStalled, "steps are made again")
	}
	p.tried = 0
	if p.last.IsZero() {
		p.firsts = max(p.firsts, j.now.Sub(p.begun))
	} else {
		p.pauses = append(p.pauses, j.now.Sub(p.last))
		p.pauses = p.pauses[max(0, len(p.pauses)-pauseMemory):]
	}
	p.last = j.now
}

// complete reports whether all tasks run that are to make steps.
func (j *Job) complete() bool {
	return j.phase == jobRunning && !j.any(func(t *task) bool {
		switch {
		case t.optional() || t.run.number < 0: // it goes without them
			return false
		case t.state.done():
			return false
		}
		return t.state != running || t.unreachable()
	})
}

// watchSteps does something about a stall.
func (j *Job) watchSteps() {
	p := &j.pace
	if !j.complete() {
		p.begun, p.last = time.Time{}, time.Time{}
		return
	}
	if p.begun.IsZero() {
		p.begun = j.now
	}
	if due := j.stallDeadline(); due.IsZero() || due.After(j.now) {
		return
	}
	t, silent := j.longestSilent(), j.now.Sub(p.since())
	if t == nil { // who runs has never told of a step
		p.begun, p.last = j.now, time.Time{}
		return
	}
	if !p.told && silent >= p.limit(j.limits.StallWarning) {
		p.told = true
		j.record(nil, KindStalled, "no task has made a step for %s, %d times the longest pause of late at least; the longest silent is %s, since step %d",
			silent.Round(time.Second), stallFactor, t.name, t.progress.step)
	}
	if act, is := j.stallDue(); is && !act.After(j.now) {
		j.escalate(t, silent)
	}
}

// stallDue is when something is to be done about a stall, if no step is made before.
func (j *Job) stallDue() (at time.Time, is bool) {
	p := &j.pace
	if p.begun.IsZero() || j.limits.Stall < 0 || !j.paced() {
		return time.Time{}, false
	}
	return p.since().Add(p.limit(j.limits.Stall)), true
}

// stallDeadline is when watchSteps is to look again; zero: not before the next event.
func (j *Job) stallDeadline() time.Time {
	p := &j.pace
	at, is := j.stallDue()
	if p.begun.IsZero() || len(p.pauses) == 0 {
		return time.Time{}
	}
	if tell := p.since().Add(p.limit(j.limits.StallWarning)); !p.told && (!is || tell.Before(at)) {
		return tell
	}
	return at
}

// longestSilent is the task that has been silent for longest, of those that run, that the
// job needs and that have ever told of a step. Where there is none, it is one that never
// has, of a role in which others did; nil: there is none either.
func (j *Job) longestSilent() *task {
	var found, never *task
	tells := map[*proto.RoleSpec]bool{}
	for _, t := range j.tasks {
		tells[t.role] = tells[t.role] || !t.progress.at.IsZero()
	}
	for _, t := range j.tasks {
		switch {
		case t.notRunning() || t.optional():
		case t.progress.at.IsZero():
			if never == nil && tells[t.role] {
				never = t
			}
		case found == nil || t.progress.at.Before(found.progress.at):
			found = t
		}
	}
	if found == nil {
		return never
	}
	return found
}

// escalate restarts the task that keeps the job from going on: first it alone, as after a
// failure of its own, and if that has not helped, all tasks with it. If that has not
// helped either, it is stopped for the last time, so that it says where it stands.
func (j *Job) escalate(t *task, silent time.Duration) {
	t.loss.why = fmt.Sprintf("no task has made a step for %s, and it has been silent for longest, since step %d", silent.Round(time.Second), t.progress.step)
	j.record(t, KindStalled, "%s; %s", t.loss.why, [...]string{"it is started again", "all tasks are started again", "the job ends"}[min(j.pace.tried, stallTries)])
	j.halt(t, StopStalled, CauseUnknown, 0)
	j.pace.tried++
	if j.pace.tried == stallTries {
		j.restart(t, "was lost", 0, func(*task) bool { return true })
	}
}

// stallTries is how often tasks of a stalled job are restarted, before it ends.
const stallTries = 2

// endedStalled takes in the end of an attempt that was stopped because of a stall.
func (j *Job) endedStalled(t *task, e TaskExited) {
	t.loss.exit, t.loss.tail = e, e.Tail
	if len(e.Stack) > 0 {
		t.loss.tail = e.Stack
		t.loss.why += "; it stood at " + innermost(e.Stack)
	}
	if j.pace.tried > stallTries {
		j.fail(t, fmt.Sprintf("has stalled, also after it and then all tasks were started again: %s (--restart-stalled)", cmp.Or(t.loss.why, "it made no steps")))
		return
	}
	j.lost(t, CauseStalled)
	j.becomeRestarting(t)
	t.loss.suspectsServices = true
	j.charge(t)
}

// innermost is the line of a stack that says where it stands.
func innermost(stack []string) string {
	for _, line := range stack {
		if frame := strings.TrimSpace(line); strings.HasPrefix(frame, "File ") {
			return frame
		}
	}
	return strings.TrimSpace(stack[0])
}
