package core

import (
	"fmt"
	"slices"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
)

// Deadline says when the next Tick is due, if no event comes before.
func (j *Job) Deadline() (time.Time, bool) {
	switch {
	case j.phase == reconciling:
		until := j.confirmedExpiry(j.reports.Until())
		return until, !until.IsZero()
	case j.Finished():
		return time.Time{}, false
	}
	var next earliest
	next.consider(j.phaseEnds)
	if j.ending() {
		j.considerFinishing(&next)
	} else {
		j.considerWork(&next)
	}
	return next.time, !next.time.IsZero()
}

// earliest is the first of the times considered. Zero times are none.
type earliest struct{ time time.Time }

func (e *earliest) consider(t time.Time) {
	if !t.IsZero() && (e.time.IsZero() || t.Before(e.time)) {
		e.time = t
	}
}

// after considers a time if it is after now: what was due before was done.
func (e *earliest) after(now, t time.Time) {
	if t.After(now) {
		e.consider(t)
	}
}

// considerFinishing: for as long as tasks may finish, the phase does not end.
func (j *Job) considerFinishing(next *earliest) {
	if j.phase != jobStopping {
		return
	}
	var first earliest
	for _, t := range j.tasks {
		if t.state == finishing {
			by, _ := j.finishes(t)
			first.consider(by)
		}
	}
	if !first.time.IsZero() {
		*next = first
	}
}

func (j *Job) considerWork(next *earliest) {
	if j.phase == assembling {
		next.consider(j.startBy())
		if !j.gang.quorum.IsZero() {
			next.consider(j.gang.quorum.Add(j.quorumWait()))
		}
		if j.elastic {
			for _, t := range j.tasks {
				if t.elastic() && t.unreachable() {
					next.after(j.now, j.leaveBehindAt(t))
				}
			}
		}
	}
	next.after(j.now, j.growDue())
	next.consider(j.stallDeadline())
	for _, s := range j.spares {
		next.consider(s.deadline)
		if s.task != nil {
			next.after(j.now, s.ready)
		}
	}
	next.after(j.now, j.noSparesUntil)
	for _, node := range j.nodes.Closing() {
		next.after(j.now, j.forgottenAt(node))
	}
	for _, t := range j.busy {
		next.consider(j.confirmedDeadline(t))
		next.consider(t.run.stop.until)
		next.consider(t.loc.told.until)
		for c := range t.expiring {
			next.consider(j.expiresAt(t, c))
		}
		next.after(j.now, t.notBefore)
		next.after(j.now, t.loc.leave.by)
		if by, leaves := j.leaves(t); leaves {
			next.after(j.now, by)
		}
		if t.loc.slow && t.together() {
			next.after(j.now, j.slowBy(t))
		}
	}
}

// idle reports whether there is nothing to decide about a task until an event concerns
// it, or all tasks start together: true of nearly all tasks of a large job at each step.
// What it looks at is changed by methods that call touch, but for the job's phase and the
// nodes that close.
func (j *Job) idle(t *task) bool {
	if j.phase != assembling && !t.state.ongoing() && !t.state.done() && t.state != surplus {
		return false
	}
	return t.state != stopping && t.loc.told.asked.IsZero() && t.loc.deadline.IsZero() && t.loc.leave.by.IsZero() && t.loc.orphan == nil && !t.loc.slow &&
		len(t.expiring) == 0 && !j.nodes.AnyCloses() && !t.notBefore.After(j.now)
}

// touch notes that a task may not be idle any longer: the rest of the step looks at it.
func (j *Job) touch(t *task) {
	if !t.listed {
		t.listed = true
		j.busy = append(j.busy, t)
	}
}

// findBusy finds the tasks that the parts of a step are to look at: of those that were
// busy or were touched since, all that are not idle, in the order of the job's tasks. A
// step must not take time in proportion to the tasks that it leaves alone.
func (j *Job) findBusy() {
	if found := (busyIn{j.phase, j.nodes.AnyCloses()}); found != j.busyIn {
		j.busyIn = found // so any may have become busy
		for _, t := range j.tasks {
			j.touch(t)
		}
	}
	j.anyExpiring = false
	j.busy = slices.DeleteFunc(j.busy, func(t *task) bool {
		t.listed = !j.idle(t)
		j.anyExpiring = j.anyExpiring || len(t.expiring) > 0
		return !t.listed
	})
	slices.SortFunc(j.busy, func(a, b *task) int { return a.ordinal - b.ordinal })
}

// busyIn is what decides, beside the tasks' own states, which tasks are busy.
type busyIn struct {
	phase   phase
	closing bool
}

// expire acts on the deadlines that have passed.
func (j *Job) expire() {
	j.forgetClosed()
	for _, s := range slices.Clone(j.spares) {
		if j.past(s.deadline) {
			j.dropSpare(s, true)
		}
	}
	for _, t := range j.busy {
		for _, c := range t.expiringContainers() {
			if j.past(j.expiresAt(t, c)) {
				j.emit(action.Release{Container: c})
				t.endExpiry(c)
			}
		}
		if j.past(j.confirmedDeadline(t)) {
			j.giveUpAgent(t)
		}
		if j.past(t.run.stop.until) {
			j.giveUpStopped(t)
		}
		if j.past(t.loc.told.until) {
			j.giveUpSilent(t)
		}
		if j.ending() { // that was one loss too many
			return
		}
	}
}

// messagesSent has the times begin that count from when agents were told.
func (j *Job) messagesSent(e event.Sent) {
	j.sent = e.Until
	for _, t := range j.busy {
		j.countTime(t)
		for c, r := range t.releases {
			if r.wait > 0 && !j.unsent(r.decided) {
				j.renewExpiry(t, c, r.wait)
				r.wait = 0
				t.releases[c] = r
			}
		}
	}
}

// expiresAt is when nothing of a task can run any longer in a container of expiring; zero: that
// is not known yet.
func (j *Job) expiresAt(t *task, container string) time.Time {
	if r, is := t.releases[container]; is && j.unsent(r.decided) {
		return time.Time{}
	}
	return j.confirmedExpiry(t.expiring[container])
}

// giveUpAgent gives up a task's container, whose agent did not do in time what it was
// waited for.
func (j *Job) giveUpAgent(t *task) {
	c, cause, why := t.loc.container, event.CauseLaunch, fmt.Sprintf("its agent on %s was not ready in time", t.loc.node)
	switch {
	case t.loc.orphan != nil:
		cause, why = event.CauseNodeLost, fmt.Sprintf("its agent%s has been without a connection for longer than its lease, too: %s", t.onNode(), t.loc.orphan.why)
	case t.unreachable():
		cause, why = event.CauseAgentLost, fmt.Sprintf("its agent on %s has been without a connection for longer than its lease", t.loc.node)
	}
	j.loseContainer(t, cause, why)
	j.emit(action.Release{Container: c})
}

// past reports whether a time has come; the zero time does not.
func (j *Job) past(at time.Time) bool { return !at.IsZero() && !at.After(j.now) }

// livenessWindow is that of the last LivenessConfirmed. The zero value: none came.
type livenessWindow struct{ since, until time.Time }

// confirmedExpiry is when leases that end by a time have expired, if no gap comes
// before; zero: that is not known yet.
func (j *Job) confirmedExpiry(end time.Time) time.Time {
	if !j.limits.LivenessFile {
		return end
	}
	w := j.liveness
	if at := w.since.Add(j.limits.LeaseExpiry); at.After(end) {
		end = at
	}
	if end.After(w.until) || !end.After(j.now) && j.now.After(w.until) {
		return time.Time{}
	}
	return end
}

// confirmedDeadline is when a task's deadline counts; zero: it has none, or that is not
// known yet.
func (j *Job) confirmedDeadline(t *task) time.Time {
	if t.loc.deadline.IsZero() || !t.unreachable() {
		return t.loc.deadline
	}
	return j.confirmedExpiry(t.loc.deadline)
}

// awaitExpiry notes that a task's attempt may still run in a container, until then.
func (j *Job) awaitExpiry(t *task, container string, until time.Time) {
	if t.expiring == nil {
		t.expiring = map[string]time.Time{}
	}
	t.expiring[container] = until
	j.touch(t)
	j.anyExpiring = true
}

// awaitRelease notes that a task's attempt, or what that has left to be written, may still be in a
// container whose agent is connected and is told to end, until so long after it was told.
func (j *Job) awaitRelease(t *task, container string, wait time.Duration) {
	j.renewExpiry(t, container, wait)
	if t.releases == nil {
		t.releases = map[string]release{}
	}
	t.releases[container] = release{decided: j.now, wait: wait, preempted: t.releases[container].preempted}
}

func (j *Job) renewExpiry(t *task, container string, wait time.Duration) {
	if until := j.now.Add(wait); until.After(t.expiring[container]) {
		j.awaitExpiry(t, container, until)
	}
}

// renewedLease waits longer for a container that was given up and whose agent was heard
// after that: its lease has begun again.
func (j *Job) renewedLease(container string, heard time.Time) {
	if !j.anyExpiring {
		return
	}
	for _, t := range j.tasks {
		if until, ok := t.expiring[container]; ok && until.Before(heard.Add(j.limits.LeaseExpiry)) {
			j.awaitExpiry(t, container, heard.Add(j.limits.LeaseExpiry))
		}
	}
}

// renewedByStream waits longer for a container that was given up and whose agent has connected: its
// lease is renewed until it is told to end.
func (j *Job) renewedByStream(container string) {
	if !j.anyExpiring {
		return
	}
	for _, t := range j.tasks {
		if _, is := t.expiring[container]; is {
			j.awaitRelease(t, container, j.limits.LeaseExpiry)
		}
	}
}

// endExpiry notes that nothing runs in a container any longer.
func (j *Job) endExpiry(container string) {
	if !j.anyExpiring {
		return
	}
	for _, t := range j.tasks {
		t.endExpiry(container)
	}
}

func (t *task) endExpiry(container string) {
	delete(t.expiring, container)
	delete(t.departed, container)
	delete(t.releases, container)
}
