package core

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/core/pace"
	"holdfast/proto"
)

// A job that has made steps, and makes none for too long, has stalled: first the event log
// says so; then the task that has made no step for longest is restarted, then all are, and
// then the job ends. Tasks that are busy postpone each of these (package pace).
//
// Of a job that has never made steps it is not known that it makes any: its program may
// tell of none. The event log says once that none was told for long, and nothing is done.

// stepped takes in which steps tasks have made, and that they have saved.
func (j *Job) stepped(e event.StepsReported) {
	j.takeUsage(e.Usage)
	j.takeCounts(e.Counts)
	p, news := &j.pace, false
	for _, s := range e.Steps {
		if t := j.named[s.Task]; t != nil && s.Step != 0 && s.Step != t.progress.step {
			t.progress, news = progress{s.Step, j.now}, true
		}
	}
	const again = "steps are made again"
	if news && p.Quiet { // of which the job's state tells, also while a task is missing
		p.Quiet = false
		j.record(nil, action.KindNote, again)
	}
	switch {
	case !p.Due():
	case news:
		if p.Warned {
			p.Warned = false
			j.record(nil, action.KindResumed, again)
		}
		p.Step(j.now)
	case e.Saving:
		p.Saved(j.now)
	}
}

// complete reports whether all tasks run that are to make steps.
func (j *Job) complete() bool {
	return j.phase == jobRunning && !slices.ContainsFunc(j.busy, func(t *task) bool {
		switch {
		case t.optional() || t.run.number < 0 || t.parked || t.surplus: // it goes without them
			return false
		case t.state.done():
			return false
		}
		return !t.state.ongoing() || t.run.pid == 0 || t.unreachable()
	})
}

// watchSteps does something about a stall.
func (j *Job) watchSteps() {
	p := &j.pace
	if !j.complete() {
		p.Restart(time.Time{})
		return
	}
	if !p.Due() {
		p.Restart(j.now)
	}
	if !j.past(j.stallDeadline()) {
		return
	}
	if j.unpaced() {
		j.tellQuiet()
		return
	}
	t, silent := j.longestSilent(), j.now.Sub(p.Since())
	if t == nil { // what runs has never reported a step
		p.Restart(j.now)
		return
	}
	if !p.Warned && silent >= p.Limit(j.limits.StallWarning) {
		p.Warned = true
		j.record(nil, action.KindStalled, "no task has made a step for %s, %d times the longest recent pause at least; the longest silent is %s, since step %d",
			silent.Round(time.Second), pace.Factor, t.name, t.progress.step)
	}
	if !j.past(j.stallDue()) {
		return
	}
	if busy := j.busiest(); busy != nil && j.now.Before(j.lastStallDue()) {
		if !p.Waits {
			p.Waits = true
			j.record(t, action.KindStalled, "no task has made a step for %s, but %s; it is left running until %s have passed, or no task is busy",
				silent.Round(time.Second), busy.describeUsage(), j.lastStallDue().Sub(p.Since()))
		}
		return
	}
	j.escalate(t, silent)
}

// unpaced reports whether nothing is known of how the job makes steps, or whether it does.
func (j *Job) unpaced() bool {
	return !j.pace.Measured() || j.pace.Guessed() && !j.anyStep()
}

// anyStep reports whether a task has ever reported a step.
func (j *Job) anyStep() bool { return j.any(func(t *task) bool { return t.progress.step != 0 }) }

// quietDue is when the event log is to say that such a job has made no step: after as long
// as a job at work may go without one at most.
func (j *Job) quietDue() time.Time {
	if j.pace.Quiet {
		return time.Time{}
	}
	least := j.limits.Stall
	if least < 0 {
		least = DefaultStall
	}
	return j.pace.Since().Add(pace.Leniency * least)
}

// tellQuiet says that no step was made for long by a job of which no pace is known.
func (j *Job) tellQuiet() {
	silent := j.now.Sub(j.pace.Since())
	what, who := "no step yet", ""
	if j.anyStep() {
		what = "no further step"
	}
	switch busy := j.busiest(); {
	case busy != nil:
		who = "; " + busy.describeUsage()
	case silent > pace.BusyFor+pace.UsageInterval: // otherwise what they use is not known yet
		who = "; no task is busy (yarn-submit stacks shows where they stand)"
	}
	j.pace.Quiet = true
	j.record(nil, action.KindNote, "%s after %s in which all tasks ran; steps are looked for in what tasks print (--progress) and in event files, and as the program may tell of none, nothing is restarted for it%s",
		what, silent.Round(time.Second), who)
}

// stallDue is when something is to be done about a stall, if no step is made before and
// no task is busy; zero: not while nothing changes.
func (j *Job) stallDue() time.Time {
	p := &j.pace
	if !p.Due() || j.limits.Stall < 0 || !p.Known() {
		return time.Time{}
	}
	return p.Since().Add(p.Limit(j.limits.Stall))
}

// lastStallDue is the same also if tasks are busy.
func (j *Job) lastStallDue() time.Time {
	return j.pace.Since().Add(pace.Leniency * j.pace.Limit(j.limits.Stall))
}

// stallDeadline is when watchSteps is to look again; zero: not before the next event.
func (j *Job) stallDeadline() time.Time {
	p := &j.pace
	var next earliest
	switch {
	case !p.Due():
		return next.time
	case j.unpaced():
		return j.quietDue()
	}
	if !p.Warned {
		next.consider(p.Since().Add(p.Limit(j.limits.StallWarning)))
	}
	due := j.stallDue()
	if p.Waits && !due.IsZero() { // usage is reported before that, or is out of date
		due = j.lastStallDue()
		if idle := j.idleAgain(); idle.Before(due) {
			due = idle
		}
	}
	next.consider(due)
	return next.time
}

// longestSilent is the task that has made no step for longest, of those that run, that the
// job needs and that have ever reported a step. Where there is none, it is one that never
// has, of a role in which others did; nil: there is none either.
func (j *Job) longestSilent() *task {
	var found, never *task
	reports := map[*proto.RoleSpec]bool{}
	for _, t := range j.tasks {
		reports[t.role] = reports[t.role] || t.progress.step != 0
	}
	for _, t := range j.tasks {
		switch {
		case t.notRunning() || t.optional() || t.state == lingering:
		case t.progress.step == 0:
			if never == nil && reports[t.role] {
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

// takeUsage takes in what tasks have used.
func (j *Job) takeUsage(reports []pace.Usage) {
	for _, r := range reports {
		t := j.named[r.Task]
		if t == nil || t.notRunning() {
			continue
		}
		t.run.usage.Take(j.now, r)
	}
}

// busiest is the task that uses most CPU of those that are busy and that are to make
// steps; nil if there is none.
func (j *Job) busiest() *task {
	var found *task
	for _, t := range j.tasks {
		if !t.makesSteps() || j.now.Sub(t.run.usage.Busy()) >= pace.BusyFor {
			continue
		}
		if found == nil || t.run.usage.CPUs() > found.run.usage.CPUs() {
			found = t
		}
	}
	return found
}

// idleAgain is when no task is busy any longer, unless another report says that one is.
func (j *Job) idleAgain() time.Time {
	var last time.Time
	for _, t := range j.tasks {
		if t.makesSteps() && t.run.usage.Busy().After(last) {
			last = t.run.usage.Busy()
		}
	}
	return last.Add(pace.BusyFor)
}

// makesSteps reports whether the task runs and may be one that makes the job's steps.
func (t *task) makesSteps() bool { return t.state == running && !t.optional() && !t.service() }

// describeUsage is for the user.
func (t *task) describeUsage() string {
	return fmt.Sprintf("%s is busy: %s", t.name, &t.run.usage)
}

// escalate restarts the task that keeps the job from going on: first it alone, as after a
// failure of its own, and if that has not helped, all tasks with it. If that has not
// helped either, it is stopped for the last time, so that it reports where it is.
func (j *Job) escalate(t *task, silent time.Duration) {
	t.loss.why = fmt.Sprintf("no task has made a step for %s, and it has been silent for longest, since step %d", silent.Round(time.Second), t.progress.step)
	j.record(t, action.KindStalled, "%s; %s", t.loss.why, [...]string{"it is started again", "all tasks are started again", "the job ends"}[min(j.pace.Tried, stallTries)])
	j.halt(t, event.StopStalled, event.CauseUnknown, 0)
	j.pace.Tried++
	if j.pace.Tried == stallTries {
		j.restart(t, "has stalled", graceOf(0), func(*task) bool { return true })
	}
}

// stallTries is how often tasks of a stalled job are restarted, before it ends.
const stallTries = 2

// endedStalled takes in the end of an attempt that was stopped because of a stall.
func (j *Job) endedStalled(t *task, e event.TaskExited) {
	t.loss.exit, t.loss.tail = e, e.Tail
	if len(e.Stack) > 0 {
		t.loss.tail = e.Stack
		t.loss.why += "; it stood at " + innermost(e.Stack)
	}
	if j.stalledForGood(t) {
		return
	}
	j.lost(t, event.CauseStalled)
	j.becomeRestarting(t)
	t.loss.suspectsServices = true
	j.charge(t)
}

// stalledForGood ends the job if the restarts have not helped after which a task was stopped
// because of a stall. It reports whether that is so.
func (j *Job) stalledForGood(t *task) bool {
	if j.pace.Tried <= stallTries {
		return false
	}
	j.fail(t, fmt.Sprintf("has stalled, also after it and then all tasks were started again: %s (--restart-stalled)", cmp.Or(t.loss.why, "it made no steps")))
	return true
}

// innermost is the line of a stack that names the innermost function.
func innermost(stack []string) string {
	for _, line := range stack {
		if frame := strings.TrimSpace(line); strings.HasPrefix(frame, "File ") {
			return frame
		}
	}
	return strings.TrimSpace(stack[0])
}
