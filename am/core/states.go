package core

import (
	"fmt"
	"slices"
	"time"

	"holdfast/am/core/event"
	"holdfast/am/core/journal"
	"holdfast/am/core/reconcile"
	"holdfast/proto"
)

// The states of tasks and the phases of a job, as doc.go draws them. Nothing outside
// this file writes task.state, task.request, the container and the agent of
// task.loc, the stop and the process of task.run, or Job.phase.

// state is what a task does.
type state int

const (
	waiting state = iota
	surplus
	launching
	preparing
	ready
	restarting
	running
	lingering
	stopping
	finishing
	succeeded
	failed
	stopped
)

var shownStates = [...]proto.TaskState{
	waiting:    proto.TaskState_TASK_STATE_WAITING,
	surplus:    proto.TaskState_TASK_STATE_PARKED,
	launching:  proto.TaskState_TASK_STATE_PREPARING,
	preparing:  proto.TaskState_TASK_STATE_PREPARING,
	ready:      proto.TaskState_TASK_STATE_READY,
	restarting: proto.TaskState_TASK_STATE_RESTARTING,
	running:    proto.TaskState_TASK_STATE_RUNNING,
	lingering:  proto.TaskState_TASK_STATE_RUNNING,
	stopping:   proto.TaskState_TASK_STATE_RUNNING,
	finishing:  proto.TaskState_TASK_STATE_RUNNING,
	succeeded:  proto.TaskState_TASK_STATE_SUCCEEDED,
	failed:     proto.TaskState_TASK_STATE_FAILED,
	stopped:    proto.TaskState_TASK_STATE_STOPPED,
}

// shown is the state as users and the journal have it.
func (s state) shown() proto.TaskState { return shownStates[s] }

// active reports whether the task has an attempt.
func (s state) active() bool { return s.ongoing() || s == stopping || s == finishing }

// ongoing reports whether the task has an attempt that nobody has told to end, and that no
// time limits.
func (s state) ongoing() bool { return s == running || s == lingering }

// startable reports whether the task has all that its agent needs to start it.
func (s state) startable() bool { return s == ready || s == restarting }

// done reports whether the task has an outcome.
func (s state) done() bool { return s == succeeded || s == failed }

// becomeWaiting: a container was asked for.
func (j *Job) becomeWaiting(t *task, request string) {
	j.becomeLost(t)
	t.request = request
	j.asked[request] = t
}

// becomeSurplus: the task has no container, and is not to have one.
func (j *Job) becomeSurplus(t *task) {
	j.becomeLost(t)
	t.loss.since = time.Time{} // it is not waited for
	j.noteAbsence(t)
	t.state = surplus
}

// becomeLost: the task has no container any longer; the caller asks for another.
func (j *Job) becomeLost(t *task) {
	j.touch(t)
	j.endRequest(t)
	j.clearLocation(t)
	t.endAttempt()
	t.state = waiting
}

// becomeLaunching: the task got a container, in which an agent is launched.
func (j *Job) becomeLaunching(t *task, container, node string, deadline time.Time) {
	j.touch(t)
	j.becomeLost(t)
	j.setContainer(t, container)
	t.loc.node, t.loc.deadline = node, deadline
	t.state = launching
}

// becomePreparing: the task is assigned to the agent in its container.
func (j *Job) becomePreparing(t *task, host string, agentPID int, deadline time.Time) {
	j.touch(t)
	t.endAttempt()
	t.loc.host, t.loc.agentPID, t.loc.port = host, agentPID, 0
	t.loc.silent, t.loc.deadline, t.loc.files = time.Time{}, deadline, localizing{}
	t.state = preparing
}

// becomePrepared: the task's agent can start it, on this port.
func (j *Job) becomePrepared(t *task, port int) {
	t.loc.port = port
	j.becomeReady(t)
}

// becomeUnaddressed: the task's agent was told of the port on which it is to listen.
func (j *Job) becomeUnaddressed(t *task) {
	t.loc.port = 0
	j.becomeTold(t, fmt.Sprintf("listen on port %d", t.port))
}

// becomeTold: the task's agent was told something, and is to answer. One that was told the
// same before gets no more time than it had.
func (j *Job) becomeTold(t *task, what string) {
	j.touch(t)
	left, before := j.limits.Answer, t.loc.told
	if before.what == what {
		before.suspend(j.now)
		left = min(left, before.left)
	}
	t.loc.told = told{what, allowance{asked: j.now, left: left}}
	j.countTime(t)
}

// becomeAnswered: the agent has done what it was told, or need not any longer.
func (t *task) becomeAnswered() { t.loc.told = told{} }

// becomeReady: the task can start in its container. It was prepared there, or its
// attempt has ended as it was told to.
func (j *Job) becomeReady(t *task) {
	j.touch(t)
	t.endAttempt()
	if !t.unreachable() {
		t.loc.deadline = time.Time{}
	}
	t.state = ready
}

// becomeRestarting: the task's attempt has ended by itself; the next one starts in the
// same container.
func (j *Job) becomeRestarting(t *task) {
	j.touch(t)
	t.endAttempt()
	t.state = restarting
}

// becomeRunning: the next attempt is started.
func (j *Job) becomeRunning(t *task, fromServices bool) {
	j.touch(t)
	t.run = attempt{number: t.run.number + 1, started: j.now, fromServices: fromServices}
	t.loc.slow = false // it may not be so again
	t.loss.blamesPeer, t.loss.suspectsServices = false, false
	t.notBefore = time.Time{}
	t.state = running
	j.becomeStarted(t)
}

// becomeStarted: the task's agent was told to start its attempt.
func (j *Job) becomeStarted(t *task) { j.becomeTold(t, fmt.Sprintf("start attempt %d", t.run.number)) }

// becomeKnown: the attempt's process is known, so the task is back.
func (j *Job) becomeKnown(t *task, pid int) {
	t.run.pid = pid
	t.loss.since = time.Time{}
	t.becomeAnswered()
}

// becomeLingering: the attempt has done its work, and its process stays for other tasks.
func (j *Job) becomeLingering(t *task) {
	j.touch(t)
	t.state = lingering
}

// becomeUnneeded: no task needs the process of a lingering attempt any longer, and its end
// is awaited like that of any other that runs.
func (j *Job) becomeUnneeded(t *task) { t.state = running }

// becomeLetEnd: the task's agent was told to let its lingering attempt end.
func (j *Job) becomeLetEnd(t *task) { j.becomeTold(t, fmt.Sprintf("let attempt %d end", t.run.number)) }

// becomeStopping: the attempt is told to end within what s has left for that. One that was told
// so before gets no more time than it had.
func (j *Job) becomeStopping(t *task, s stop) {
	j.touch(t)
	t.becomeAnswered()
	before := t.run.stop
	s.asked = j.now
	if before.reason != "" {
		s.asked, s.left = before.asked, min(s.left, before.left)
	}
	t.run.stop, t.run.finishBy = s, time.Time{}
	t.state = stopping
	j.countTime(t)
	if !before.until.IsZero() && before.until.Before(t.run.stop.until) {
		t.run.stop.until = before.until
	}
}

// becomeStoppingTo: what follows the end of the attempt that is being stopped has changed.
func (j *Job) becomeStoppingTo(t *task, why event.StopReason, c event.Cause) {
	j.touch(t)
	t.run.stop.reason, t.run.stop.cause = why, c
}

// countTime has the time begin, or go on, in which a connected agent that was told is to
// answer, and an attempt that was told to end is to have ended.
func (j *Job) countTime(t *task) {
	if t.unreachable() {
		return
	}
	if s := &t.run.stop; j.counts(s.allowance) {
		from := j.now
		if s.by.After(from) {
			from = s.by
		}
		s.until = from.Add(s.left)
	}
	if a := &t.loc.told; j.counts(a.allowance) {
		a.until = j.now.Add(a.left)
	}
}

// counts reports whether a time is to count from now on.
func (j *Job) counts(a allowance) bool {
	return !a.asked.IsZero() && a.until.IsZero() && !j.unsent(a.asked)
}

// unsent reports whether what was decided then may not have been told yet.
func (j *Job) unsent(decided time.Time) bool { return j.limits.Journaled && decided.After(j.sent) }

// becomeFinishing: the job ends, and the attempt may go on until then.
func (j *Job) becomeFinishing(t *task, by time.Time) {
	j.touch(t)
	t.run.finishBy = by
	t.state = finishing
}

// becomeSucceeded: the attempt has ended with exit code 0.
func (j *Job) becomeSucceeded(t *task) {
	j.touch(t)
	t.endAttempt()
	t.loss.why, t.loss.since = "", time.Time{}
	t.state = succeeded
}

// becomeFailed: the task is given up, or the job ends because of it. It may still have
// its container or its request.
func (j *Job) becomeFailed(t *task) {
	j.becomeEnded(t, failed)
}

// becomeStopped: the job ends, and the task has not succeeded or failed before.
func (j *Job) becomeStopped(t *task) {
	j.becomeEnded(t, stopped)
}

func (j *Job) becomeEnded(t *task, s state) {
	j.touch(t)
	t.endAttempt()
	t.loss.since, t.loss.blamesPeer, t.notBefore = time.Time{}, false, time.Time{}
	if !t.unreachable() {
		t.loc.deadline = time.Time{}
	}
	t.state = s
}

// endAttempt resets what belongs to an attempt that has not ended.
func (t *task) endAttempt() {
	t.run.pid, t.run.stop, t.run.finishBy = 0, stop{}, time.Time{}
	t.becomeAnswered()
}

// becomeUnreachable: nothing was heard of the task's agent since then. It may be back
// until the deadline.
func (j *Job) becomeUnreachable(t *task, since, deadline time.Time) {
	j.touch(t)
	if t.state == launching {
		t.state = preparing
	}
	t.loc.agentPID = 0
	t.loc.silent, t.loc.deadline = since, deadline
	t.run.stop.suspend(since)
	t.loc.told.suspend(since)
}

// becomeReachable: the agent is connected again, and what it prepared is in place.
func (j *Job) becomeReachable(t *task, e event.AgentConnected) {
	j.touch(t)
	t.loc.host, t.loc.agentPID, t.loc.port = e.Host, e.PID, e.Port
	t.loc.silent, t.loc.deadline, t.loc.files = time.Time{}, time.Time{}, localizing{}
	t.loc.told.suspend(j.now)
	t.loc.told.asked = time.Time{} // it has done that, or is told again
	if t.state == stopping {       // it is told again
		t.run.stop.asked = j.now
		j.countTime(t)
	}
}

// agentGone: the agent has ended while the job does, so it is not waited for.
func (j *Job) agentGone(t *task) { t.loc.agentPID, t.run.pid = 0, 0 }

// becomeOrphan: YARN has lost the task's container, and the agent there has not been
// heard to end. The task has to leave until then.
func (j *Job) becomeOrphan(t *task, until time.Time, why string) {
	j.touch(t)
	if t.loc.orphan == nil {
		j.orphans++
	}
	t.loc.orphan = &orphan{until: until, why: why}
}

// endOrphan: YARN knows of the container again, or the task has left it.
func (j *Job) endOrphan(t *task) {
	if t.loc.orphan != nil {
		j.orphans--
	}
	t.loc.orphan = nil
}

// becomeLeaving: the task is to leave its container in time.
func (j *Job) becomeLeaving(t *task, o leaveOrder) {
	j.touch(t)
	t.loc.leave = o
}

// becomeStaying takes that back.
func (j *Job) becomeStaying(t *task) { t.loc.leave = leaveOrder{} }

// becomeSlow: the task is to leave its container, where it is a straggler.
func (j *Job) becomeSlow(t *task) {
	j.touch(t)
	t.loc.slow = true
}

// endSlow takes that back, also while it waits for the right moment.
func (j *Job) endSlow(t *task) {
	if t.loc.slow && !t.loc.leave.whateverNode() {
		j.becomeStaying(t)
	}
	t.loc.slow = false
}

// delay has the task not start before then.
func (j *Job) delay(t *task, until time.Time) {
	j.touch(t)
	t.notBefore = until
}

// clearLocation takes a task out of its container. A task with an outcome keeps that.
func (j *Job) clearLocation(t *task) {
	j.touch(t)
	j.endOrphan(t)
	delete(j.hosted, t.loc.container)
	t.loc = location{}
}

func (j *Job) setContainer(t *task, container string) {
	t.loc.container = container
	j.hosted[container] = t
}

// endRequest forgets the task's outstanding Ask.
func (j *Job) endRequest(t *task) {
	if t.request != "" {
		delete(j.asked, t.request)
	}
	t.request = ""
}

// restoreState takes over what another application master knew of a task.
func (j *Job) restoreState(t *task, r journal.TaskRecord) {
	j.touch(t)
	if r.Container != "" {
		j.setContainer(t, r.Container)
		t.loc.node = r.Node
	}
	t.run = attempt{number: r.Attempt, pid: r.PID, fromServices: r.ConsistentServerState}
	t.state = max(0, state(slices.Index(shownStates[:], r.State)))
	switch {
	case t.state == launching:
		t.state = preparing
	case t.state == running && r.FinishBy != 0:
		j.becomeFinishing(t, journal.Time(r.FinishBy))
	case t.state == running && r.Stop != nil:
		j.becomeStopping(t, stop{reason: r.Stop.Reason, cause: r.Stop.Cause, by: journal.Time(r.Stop.By), allowance: allowance{left: j.stopLimit()}})
		t.run.stop.asked, t.run.stop.until = time.Time{}, time.Time{} // its agent is not connected yet
	}
	if r.LeaveBy != 0 {
		j.becomeLeaving(t, leaveOrder{by: journal.Time(r.LeaveBy), grace: time.Duration(r.Grace) * time.Millisecond, reason: r.LeaveReason})
	}
}

// phase is what the job does.
type phase int

const (
	reconciling phase = iota
	assembling
	jobRunning
	jobStopping
	releasing
	finished
)

// beginReconciling: the job was taken over without a journal.
func (j *Job) beginReconciling(known journal.Journal) {
	tasks := make([]reconcile.Task, len(j.tasks))
	for i, t := range j.tasks {
		tasks[i] = reconcile.Task{Name: t.name, Port: t.port, Together: t.together()}
	}
	j.reports = reconcile.New(known, tasks, j.limits.LeaseExpiry)
	j.phase = reconciling
}

// endReconciling: the reports are in.
func (j *Job) endReconciling() {
	j.reports, j.waiting = nil, ""
	j.phase = assembling
}

// beginAssembling: all tasks are to start together again.
func (j *Job) beginAssembling() {
	j.gang = gangStart{since: j.now}
	j.phase = assembling
}

// beginRunning: each task starts once it is ready.
func (j *Job) beginRunning() {
	j.gang = gangStart{}
	j.phase = jobRunning
}

// beginStopping: the job ends as outcome. Attempts have time to end.
func (j *Job) beginStopping(outcome proto.JobState, why string) {
	j.gang = gangStart{}
	j.outcome, j.why = outcome, why
	j.phaseEnds = j.now.Add(j.limits.Stop + j.limits.Leave)
	j.phase = jobStopping
}

// beginReleasing: the attempts have ended, or had their time. Agents have time to save
// what they hold.
func (j *Job) beginReleasing() {
	j.phaseEnds = j.now.Add(j.limits.Leave)
	j.phase = releasing
}

// becomeFinished: there is nothing left to do.
func (j *Job) becomeFinished() {
	j.phaseEnds = time.Time{}
	j.phase = finished
}

// ending reports whether the job stops, or has.
func (j *Job) ending() bool { return j.phase >= jobStopping }

// Finished reports whether Finish was decided; later events change nothing.
func (j *Job) Finished() bool { return j.phase == finished }
