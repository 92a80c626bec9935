package core

import (
	"fmt"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/proto"
)

// checkCompletion ends the job once every task that must succeed has.
func (j *Job) checkCompletion() {
	if j.phase != jobRunning {
		return
	}
	succeededOf, linger := map[*proto.RoleSpec]int32{}, false
	for _, t := range j.tasks {
		if t.role.Completion != proto.CompletionRule_COMPLETION_RULE_REQUIRED {
			continue
		}
		n := int32(0)
		switch {
		case t.state == succeeded:
			n = 1
		case t.state == lingering:
			n, linger = 1, true
		case t.run.number >= 0 && !j.isParked(t) && (!t.surplus || t.state.active()):
			return
		}
		succeededOf[t.role] += n
	}
	for role, n := range succeededOf {
		if n < least(role) { // otherwise the job began without the others, and needs them no longer
			return
		}
	}
	switch {
	case linger:
		j.endLingering()
	case len(succeededOf) > 0:
		j.end(proto.JobState_JOB_STATE_SUCCEEDED, "")
	}
}

// least is how many tasks of a role the job needs.
func least(r *proto.RoleSpec) int32 {
	if r.Min > 0 {
		return r.Min
	}
	return r.Count
}

// fail ends the job because of a task; an optional one is given up.
func (j *Job) fail(t *task, why string) {
	if j.ending() {
		return
	}
	if t.optional() {
		j.giveUp(t, why)
		return
	}
	j.becomeFailed(t)
	j.end(proto.JobState_JOB_STATE_FAILED, fmt.Sprintf("%s %s", t.name, why))
}

// giveUp goes on without a task.
func (j *Job) giveUp(t *task, why string) {
	j.record(t, action.KindEnded, "it is given up, and the job goes on without it: %s", why)
	j.withdraw(t)
	j.becomeFailed(t)
	if s := j.standIn(t); s != nil {
		j.giveUpSpare(s)
	}
	at := t.loc
	if at.container == "" {
		return
	}
	j.clearLocation(t)
	j.releaseAgent(at.container, at.agentPID)
	j.emit(action.Release{Container: at.container})
	if at.port != 0 {
		j.emit(action.Route{Cut: []string{t.name}})
	}
}

// exitedAtEnd takes in the end of an attempt while the job ends. One that may go on for
// a while ends as at any time.
func (j *Job) exitedAtEnd(t *task, e event.TaskExited) {
	switch {
	case t.state != finishing || e.Stopped:
		j.becomeStopped(t)
	case e.Code == 0 && e.Signal == 0:
		j.becomeSucceeded(t)
		j.record(t, action.KindEnded, "attempt %d ended with exit code 0", t.run.number)
	default:
		j.becomeFailed(t)
		t.loss.why, t.loss.tail = describeExit(t, e), e.Tail
		j.record(t, action.KindEnded, "attempt %d: %s", t.run.number, t.loss.why)
	}
}

// mayFinish reports whether a task may go on after the job has succeeded, as an
// evaluator that looks at the last checkpoint, and exports it.
func (j *Job) mayFinish(t *task) bool {
	return j.outcome == proto.JobState_JOB_STATE_SUCCEEDED && t.optional() && t.role.FinishMs > 0 && t.state == running
}

// someFinish reports whether a task still goes on, and stops those whose time is over.
func (j *Job) someFinish() bool {
	some := false
	for _, t := range j.tasks {
		if t.state != finishing {
			continue
		}
		switch by, leaves := j.finishes(t); {
		case by.After(j.now):
			some = true
		case leaves:
			j.record(t, action.KindNote, "it has to leave %s, and the others are done; it is stopped", t.loc.node)
			j.stopFinishing(t)
		default:
			j.record(t, action.KindNote, "it has not ended within %s of the others; it is stopped (--%s-finish)", time.Duration(t.role.FinishMs)*time.Millisecond, t.role.Name)
			j.stopFinishing(t)
		}
	}
	return some
}

// finishes is until when a task may go on at the job's end, and whether it has to leave
// its container by then: no container is asked for any longer into which it could move.
func (j *Job) finishes(t *task) (by time.Time, leaves bool) {
	by = t.run.finishBy
	if due, is := j.leaves(t); is && !due.IsZero() && due.Before(by) {
		by, leaves = due, true
	}
	if o := t.loc.leave; o.whateverNode() && o.by.Before(by) {
		by, leaves = o.by, true
	}
	return by, leaves
}

// finishesAsOrphan takes in that the NodeManager of a task that may finish is lost: the
// task goes on, as it would at any time.
func (j *Job) finishesAsOrphan(t *task, why string) {
	if t.loc.orphan != nil { // that is known
		return
	}
	j.becomeOrphan(t, j.now.Add(j.limits.Orphan), why)
	j.record(t, action.KindNote, "YARN has lost its container on %s (%s), and it still runs there", t.loc.node, why)
}

func (j *Job) stopFinishing(t *task) {
	j.phaseEnds = j.now.Add(j.limits.Stop + j.limits.Leave)
	j.halt(t, event.StopJobEnds, event.CauseUnknown, 0)
}

// hurry stops those that may go on, because the job's end is wanted at once.
func (j *Job) hurry() {
	for _, t := range j.tasks {
		if t.state == finishing {
			j.stopFinishing(t)
		}
	}
}

// end begins to stop everything. It ends in three phases: attempts are stopped, but for
// those that may finish first; agents are released, saving what they hold; Finish.
func (j *Job) end(outcome proto.JobState, why string) {
	if j.ending() {
		return
	}
	j.beginStopping(outcome, why)
	if outcome != proto.JobState_JOB_STATE_SUCCEEDED {
		j.record(nil, action.KindEnded, "the job is stopped: %s", why)
	}
	for _, s := range j.spares {
		switch {
		case s.request != "":
			j.emit(action.Withdraw{Request: s.request})
		case s.agentPID != 0:
			j.emit(action.ReleaseAgent{Container: s.container, Why: "the job ends"})
		}
	}
	for _, t := range j.tasks {
		j.withdraw(t)
		switch {
		case j.mayFinish(t):
			limit := time.Duration(t.role.FinishMs) * time.Millisecond
			j.becomeFinishing(t, j.now.Add(limit))
			j.record(t, action.KindNote, "the others are done; it may go on for %s (--%s-finish)", limit, t.role.Name)
		case t.state.ongoing(), t.state == stopping && t.run.stop.reason == event.StopStalled:
			j.halt(t, event.StopJobEnds, event.CauseUnknown, 0)
		case t.state.active() || t.state.done(): // as before
		default:
			j.becomeStopped(t)
		}
	}
}

// proceedEnding goes on to the next phase as soon as it may.
func (j *Job) proceedEnding() {
	if j.phase == jobStopping {
		if j.someFinish() {
			return
		}
		connected := j.any(func(t *task) bool { return t.state == stopping && t.loc.agentPID != 0 })
		if connected && !j.past(j.phaseEnds) {
			return
		}
		j.beginReleasing()
		for _, t := range j.tasks {
			if t.loc.agentPID != 0 {
				j.emit(action.ReleaseAgent{Container: t.loc.container, Why: "the job ends"})
			}
		}
	}
	connected := j.any(func(t *task) bool { return t.loc.agentPID != 0 })
	if connected && !j.past(j.phaseEnds) {
		return
	}
	j.finish()
}

// finish gives all containers back.
func (j *Job) finish() {
	for _, s := range j.spares {
		if s.container != "" {
			j.emit(action.Release{Container: s.container})
		}
	}
	for _, t := range j.tasks {
		if t.state.active() {
			j.becomeStopped(t)
		}
		if t.loc.container != "" {
			j.emit(action.Release{Container: t.loc.container})
		}
	}
	j.becomeFinished()
	if j.outcome == proto.JobState_JOB_STATE_SUCCEEDED {
		j.record(nil, action.KindEnded, "succeeded")
	}
	j.emit(action.Finish{State: j.outcome, Why: j.why})
}
