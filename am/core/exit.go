package core

import (
	"fmt"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/core/journal"
	"holdfast/proto"
)

// exited decides what the end of an attempt means.
func (j *Job) exited(e event.TaskExited) {
	t := j.hosted[e.Container]
	if t == nil || e.Attempt != t.run.number || !t.state.active() {
		return
	}
	t.run.pid = 0
	if e.Step != 0 {
		t.progress.step = e.Step
	}
	if j.ending() {
		j.exitedAtEnd(t, e)
		return
	}
	if t.run.stop.reason == event.StopStalled && e.Stopped {
		j.endedStalled(t, e)
		return
	}
	if endsByRequest(t, e) {
		j.endedByRequest(t, e)
		return
	}
	if e.Signal == 0 && e.Code != 0 && !e.CommandMissing && !e.OutOfMemory && j.evictedLately() {
		e.PeerLost = true // if it is: what they saved together is incomplete
	}
	switch {
	case t.run.stop.reason == event.StopTogether, t.leavesNow():
		j.endedStopping(t, e)
	case e.Code == 0 && e.Signal == 0 && !t.service():
		j.becomeSucceeded(t)
		j.record(t, action.KindEnded, "attempt %d ended with exit code 0", t.run.number)
		if !t.together() {
			j.becomeTold(t, "end, since the task is done")
			j.emit(action.ReleaseAgent{Container: t.loc.container, Why: "its task is done"})
		}
	default:
		j.endedByItself(t, e)
	}
}

// endedStopping takes in the end of an attempt that was told to end because all
// restart together, or because its task leaves the container.
func (j *Job) endedStopping(t *task, e event.TaskExited) {
	j.markDirty(t) // it may have been saving
	if t.leavesNow() {
		j.depart(t, t.run.stop.cause)
		return
	}
	j.becomeReady(t)
	if t.together() {
		j.judgeStopped(t, e)
	}
}

// endedByItself takes in the end of an attempt that was not told to end by this
// application master, and has not succeeded.
func (j *Job) endedByItself(t *task, e event.TaskExited) {
	t.loss.tail, t.loss.why, t.loss.exit = e.Tail, describeExit(t, e), e
	switch {
	case e.Stopped: // by an application master that was lost before it wrote down why
		if t.together() && failedStopping(e) {
			j.noteFault(t, journal.FaultLate, e.AtMS)
		}
		j.lost(t, event.CauseRestartedAll)
		j.becomeRestarting(t)
		return
	case e.CommandMissing:
		j.fail(t, "cannot run its command: "+e.Detail)
		return
	}
	cause := exitCause(t, e)
	t.loss.suspectsServices = e.Signal == 0 && cause.OfProgram()
	j.lost(t, cause)
	j.becomeRestarting(t)
	switch {
	case e.OutOfMemory:
		j.charge(t)
		if !j.ending() && t.state == restarting {
			j.moveToGrow(t)
		}
	case e.PeerLost && t.together():
		j.noteFault(t, journal.FaultPeer, e.AtMS)
	case e.PeerLost:
		// Whether it was a peer is decided when another's loss is known.
		t.loss.blamesPeer = true
		if j.lostLately(t) || !j.peerLost(t) {
			j.delay(t, j.now.Add(j.limits.Settle))
		}
	default:
		j.charge(t)
	}
}

// exitCause is what an attempt's end is put down to.
func exitCause(t *task, e event.TaskExited) event.Cause {
	switch {
	case e.OutOfMemory:
		return event.CauseOutOfMemory
	case e.PeerLost:
		return event.CausePeerLost
	case t.service() && e.Code == 0 && e.Signal == 0 && !e.Stopped:
		return event.CauseServiceEnded
	default:
		return event.CauseOwnFault
	}
}

// bySignal reports whether a signal ended an attempt, or its program in a shell.
func bySignal(e event.TaskExited) bool { return e.Signal != 0 || proto.ShellSignal(e.Code) != 0 }

// describeExit is for the user.
func describeExit(t *task, e event.TaskExited) string {
	var s string
	switch {
	case exitCause(t, e) == event.CauseServiceEnded:
		s = fmt.Sprintf("exit code 0, but a %s must run until the others are done", t.role.Name)
	case e.Error != "" && bySignal(e) && e.Detail != "" && !e.Stopped: // else the signal was the agent's
		s = e.Detail + ": " + e.Error
	case e.Error != "":
		s = e.Error
	case e.Detail != "":
		s = e.Detail
	case e.Signal != 0:
		s = fmt.Sprintf("ended by signal %d", e.Signal)
	default:
		s = fmt.Sprintf("exit code %d", e.Code)
	}
	if e.Advice != "" {
		s += "; " + e.Advice
	}
	return s
}

// charge takes in that a task has failed. Where others ended with it, which of them
// failed first is decided later.
func (j *Job) charge(t *task) {
	if t.together() {
		j.noteFault(t, journal.FaultOwn, t.loss.exit.AtMS)
		return
	}
	j.countFailure(t)
}

// countFailure counts a failure against a task and delays its next start, or gives the
// job up.
func (j *Job) countFailure(t *task) {
	t.history.failures = append(t.history.failures, j.now)
	failures := j.failuresWith(t)
	n := j.within(failures)
	if j.failsAlike(t) {
		j.fail(t, fmt.Sprintf("failed twice, each time soon and in the same way, and has never made a step: %s", t.loss.why))
		return
	}
	if n > j.restarts {
		if t.together() {
			j.fail(t, fmt.Sprintf("has failed, and the job with it %s%s; this time: %s", times(n), j.restartsAllowed(), t.loss.why))
			return
		}
		j.fail(t, fmt.Sprintf("failed %s%s; the last time: %s", times(n), j.restartsAllowed(), t.loss.why))
		return
	}
	n = j.inARow(failures)
	if wait := j.backoff(n); wait > 0 {
		j.delay(t, j.now.Add(wait))
		if t.together() {
			j.record(t, action.KindNote, "the tasks failed %s in quick succession, this time by it: the next start waits for %s", times(n), wait)
			return
		}
		j.record(t, action.KindNote, "it failed %s in quick succession: its next attempt waits for %s", times(n), wait)
	}
}

// restartsAllowed continues a sentence that says how often a task has failed.
func (j *Job) restartsAllowed() string {
	if j.restarts == 0 {
		return ", and --restarts 0 allows no restart"
	}
	return fmt.Sprintf("; it is restarted %s (--restarts %d)", times(j.restarts), j.restarts)
}

// inARow counts the last failures that followed each other closely. After an attempt
// that was at work for a while, the next has nothing to wait for.
func (j *Job) inARow(failures []time.Time) int {
	n := len(failures)
	for i := n - 1; i > 0; i-- {
		if failures[i].Sub(failures[i-1]) >= j.limits.Calm {
			return n - i
		}
	}
	return n
}

// backoff is nothing for a first failure, then 1, 2, 4... seconds.
func (j *Job) backoff(n int) time.Duration {
	if n <= 1 {
		return 0
	}
	if n > 10 {
		return j.limits.BackoffMax
	}
	return min(time.Second<<(n-2), j.limits.BackoffMax)
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	default:
		return fmt.Sprintf("%d times", n)
	}
}

// A process that has done its work may be needed further: a TensorFlow session without
// device filters is made on every task of the cluster, and waits for those that are not
// there. In a job that has such sessions, processes linger after their work until no task
// is at work any longer. Only then do they end, and show by their exit codes whether they
// have succeeded.

// lingers takes in that an attempt has done its work, and that its process stays. At the
// job's end nobody needs it.
func (j *Job) lingers(e event.TaskLingers) {
	t := j.hosted[e.Container]
	switch {
	case t == nil || e.Attempt != t.run.number:
	case t.state == finishing, t.state == running && !j.peersNeeded:
		j.endLingeringOf(t)
	case t.state == running:
		if !t.run.lingered {
			t.run.lingered = true
			j.record(t, action.KindNote, "attempt %d has done its work; its process stays, as other tasks may need it", t.run.number)
		}
		j.becomeLingering(t)
	}
}

// endLingering lets all lingering attempts end.
func (j *Job) endLingering() {
	for _, t := range j.tasks {
		if t.state == lingering {
			j.becomeUnneeded(t)
			j.endLingeringOf(t)
		}
	}
}

func (j *Job) endLingeringOf(t *task) {
	j.becomeLetEnd(t)
	j.emit(action.EndLingering{Container: t.loc.container})
}

// letEnd takes in that the agent has let the process of an attempt end. How long that takes is
// the program's matter.
func (j *Job) letEnd(e event.LetEnd) {
	if t := j.hosted[e.Container]; t != nil && e.Attempt == t.run.number && t.state.active() && t.run.pid != 0 {
		t.becomeAnswered()
	}
}
