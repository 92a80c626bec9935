package core

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/core/journal"
	"holdfast/proto"
)

// Who is charged with a failure: a task that ended because of a peer is not, if one was
// lost near that time.
//
// The failure of tasks that restart together is attributed to one of them. The end of
// one breaks the connections of the others, and the one that failed may take seconds to
// end while the others report at once that a peer has gone: the order of the reports
// does not show who failed. So that is decided once none of them runs any longer, and a
// generation that failed counts as one failure, of the job: it is charged to one task.

// noteFault notes how the end of an attempt relates to its generation's failure; the
// strongest sign counts.
func (j *Job) noteFault(t *task, kind journal.FaultKind, atMS int64) {
	if !t.together() || kind <= t.loss.fault.Kind {
		return
	}
	if atMS == 0 {
		atMS = j.now.UnixMilli()
	}
	if t.loss.fault.Kind == journal.FaultNone {
		j.openFaults++
	}
	t.loss.fault = journal.Fault{Kind: kind, AtMS: atMS, Evicted: j.evictedLately() || t.loss.fault.Evicted}
}

// terminated is the exit code of a program that ends itself properly by SIGTERM.
const terminated = 128 + 15

// failedStopping reports whether an attempt that was to be stopped had failed itself:
// before that, or while it had time to end.
func failedStopping(e event.TaskExited) bool {
	switch {
	case e.PeerLost || e.Code == terminated:
		return false
	case e.Stopped && bySignal(e): // with which it is stopped; it may have reported an error before
		return e.Error != ""
	}
	return e.Code != 0 || e.Signal != 0
}

// judgeStopped takes in the end of an attempt of a generation that is being stopped.
func (j *Job) judgeStopped(t *task, e event.TaskExited) {
	switch {
	case !failedStopping(e):
		if e.PeerLost && !e.Stopped {
			j.noteFault(t, journal.FaultPeer, e.AtMS)
			t.loss.tail, t.loss.why, t.loss.exit, t.loss.cause = e.Tail, describeExit(t, e), e, event.CausePeerLost
		}
		return
	case e.Stopped:
		j.noteFault(t, journal.FaultLate, e.AtMS)
	default:
		j.noteFault(t, journal.FaultOwn, e.AtMS)
	}
	t.loss.tail, t.loss.why, t.loss.exit = e.Tail, describeExit(t, e), e
	if e.Stopped {
		return
	}
	j.lost(t, exitCause(t, e))
	if e.OutOfMemory && !j.ending() {
		j.moveToGrow(t)
	}
}

// attributeFailure decides whose failure it was that the generation ended, once none of
// its tasks runs any longer: of those that failed by themselves, the first. Where a
// container was lost, that is the reason, unless a task failed before it was told to stop.
// Only then the event log says why all start again: before, it could name an innocent.
func (j *Job) attributeFailure() {
	if j.openFaults == 0 && j.unexplained == nil || j.any(func(t *task) bool { return t.together() && t.state.active() }) {
		return
	}
	var first, gone *task
	lost := j.evictedLately()
	for _, t := range j.tasks {
		lost = lost || t.loss.fault.Evicted
		switch k := t.loss.fault.Kind; {
		case k == journal.FaultNone:
		case k == journal.FaultLost:
			lost = true
			if gone == nil || t.loss.fault.AtMS < gone.loss.fault.AtMS {
				gone = t
			}
		case first == nil || k > first.loss.fault.Kind || k == first.loss.fault.Kind && t.loss.fault.AtMS < first.loss.fault.AtMS:
			first = t
		}
	}
	reason := cmp.Or(gone, j.unexplained)
	if first != nil && (first.loss.fault.Kind == journal.FaultOwn || !lost) {
		reason = first
		if first.loss.fault.Kind == journal.FaultLate { // otherwise it was recorded
			j.lost(first, event.CauseOwnFault)
		}
		j.countFailure(first)
	}
	if j.unexplained != nil && !j.ending() {
		j.record(nil, action.KindNote, "generation %d: all tasks start again because of %s: %s (%s)", j.generation, reason.name, reason.loss.cause, reason.loss.why)
	}
	j.clearFaults()
}

// clearFaults forgets all that was noted until the failure is attributed.
func (j *Job) clearFaults() {
	for _, t := range j.tasks {
		t.loss.fault = journal.Fault{}
	}
	j.openFaults, j.unexplained = 0, nil
}

// failuresWith are the failures that count with a task's: its own, and where all
// restart together, everybody's. Each generation's failure is one task's.
func (j *Job) failuresWith(t *task) []time.Time {
	if !t.together() {
		return t.history.failures
	}
	var all []time.Time
	for _, o := range j.tasks {
		if o.together() {
			all = append(all, o.history.failures...)
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

// earlyOf is what counts for a task.
func (j *Job) earlyOf(t *task) *journal.Early {
	if t.together() {
		return &j.early
	}
	return &t.history.early
}

// failsAlike takes in a failure that is charged to a task, and reports whether no attempt
// will do better: it has failed twice, and each time soon, before it made a step, and in
// the same way. Where a task serves others, as a parameter server or a node of Ray does, their
// steps show that it can work.
func (j *Job) failsAlike(t *task) bool {
	e, how := j.earlyOf(t), likeness(t.loss.exit)
	serves := t.service() || t.role.Completion == proto.CompletionRule_COMPLETION_RULE_EITHER
	stepped := j.any(func(o *task) bool { return o.progress.step != 0 && (o == t || serves || o.together() && t.together()) })
	if how == "" || stepped || t.run.started.IsZero() || j.now.Sub(t.run.started) >= j.limits.Calm || e.Times > 0 && e.Error != how {
		e.Over = true
	}
	e.Error, e.Times = how, e.Times+1
	return !e.Over && e.Times > 1
}

// numbers differ between attempts that fail in the same way: addresses, times, processes.
var numbers = regexp.MustCompile(`0x[0-9a-fA-F]+|[0-9]+`)

// likeness is what ends of attempts have in common that fail in the same way; empty: it
// is not known how this one failed.
func likeness(e event.TaskExited) string {
	text := e.Error
	if text == "" && e.Code > 0 && len(e.Tail) > 0 {
		text = e.Tail[len(e.Tail)-1]
	}
	return numbers.ReplaceAllString(text, "#")
}

// unjustBlame looks at a task that is about to start again after it blamed a peer: if
// no other task was lost near its exit, the failure is its own. It reports whether the
// task does not start now.
func (j *Job) unjustBlame(t *task) bool {
	if !t.loss.blamesPeer {
		return false
	}
	t.loss.blamesPeer = false
	if !j.peerLost(t) {
		j.charge(t)
		return t.notBefore.After(j.now) || j.ending() || t.state == failed
	}
	// Tasks that only ever blame each other must come to an end, too.
	t.history.losses = append(t.history.losses, j.now)
	if n := j.within(t.history.losses); n > j.limits.Losses {
		j.fail(t, fmt.Sprintf("ended because of a lost peer, or lost its container, %s within %s; the last time: %s", times(n), j.limits.Window, t.loss.why))
	}
	return j.ending() || t.state == failed
}

// peerLost reports whether another task was lost near the exit of one.
func (j *Job) peerLost(t *task) bool {
	return j.any(func(o *task) bool {
		return o != t && !o.history.lastLoss.IsZero() && t.history.lastLoss.Sub(o.history.lastLoss) < j.limits.PeerWindow
	})
}

// serviceDown reports whether a task that others depend on is down. Services that blame
// each other must not wait for each other.
func (j *Job) serviceDown(except *task) bool {
	return slices.ContainsFunc(j.services, func(t *task) bool {
		return t != except && t.notRunning() && (!except.service() || !t.loss.blamesPeer)
	})
}
