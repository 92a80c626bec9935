package core

import (
	"fmt"
	"time"

	"holdfast/proto"
)

func (j *Job) ending() bool { return j.state == proto.JobState_JOB_STATE_STOPPING }

// checkCompletion ends the job once every task that must succeed has.
func (j *Job) checkCompletion() {
	if j.ending() || j.gathering {
		return
	}
	done := map[*proto.RoleSpec]int32{}
	for _, t := range j.tasks {
		if t.Role.Completion != proto.CompletionRule_COMPLETION_RULE_REQUIRED {
			continue
		}
		n := int32(0)
		if t.State == proto.TaskState_TASK_STATE_SUCCEEDED {
			n = 1
		} else if t.Attempt >= 0 {
			return
		}
		done[t.Role] += n
	}
	for role, n := range done {
		if n < least(role) { // where it is not, the job began without the others, and needs them no longer
			return
		}
	}
	if len(done) > 0 {
		j.end(proto.JobState_JOB_STATE_SUCCEEDED, "")
		j.proceedEnding()
	}
}

// fail ends the job because of a task; one that decides nothing is given up.
func (j *Job) fail(t *Task, why string) {
	if j.ending() {
		return
	}
	if t.optional() {
		j.giveUp(t, why)
		return
	}
	t.State = proto.TaskState_TASK_STATE_FAILED
	j.end(proto.JobState_JOB_STATE_FAILED, fmt.Sprintf("%s %s", t.Name, why))
}

// giveUp goes on without a task.
func (j *Job) giveUp(t *Task, why string) {
	t.State = proto.TaskState_TASK_STATE_FAILED
	t.lostAt, t.notUntil, t.blamed = time.Time{}, time.Time{}, false
	j.record(t, KindEnded, "it is given up, and the job goes on without it: %s", why)
	if t.request != "" {
		j.do(Withdraw{t.request})
		j.await(t, "")
	}
	if s := j.standIn(t); s != nil {
		j.giveUpSpare(s)
	}
	if t.Container == "" {
		return
	}
	container, agent, hadAddress := t.Container, t.AgentPID, t.RealPort != 0
	j.forget(t)
	j.sendHome(container, agent)
	j.do(Release{container})
	if hadAddress {
		j.do(Route{Cut: []string{t.Name}})
	}
}

// exitedAtEnd takes in the end of an attempt while everything ends. One that may go on
// for a while ends as at any time.
func (j *Job) exitedAtEnd(t *Task, e TaskExited) {
	finishing := !t.finishBy.IsZero()
	t.stopping, t.finishBy = false, time.Time{}
	if t.State != proto.TaskState_TASK_STATE_RUNNING {
		return
	}
	switch {
	case !finishing || e.Stopped:
		t.State = proto.TaskState_TASK_STATE_STOPPED
	case e.Code == 0 && e.Signal == 0:
		t.State, t.Why = proto.TaskState_TASK_STATE_SUCCEEDED, ""
		j.record(t, KindEnded, "attempt %d ended with exit code 0", t.Attempt)
	default:
		t.State, t.Why, t.Tail = proto.TaskState_TASK_STATE_FAILED, describeExit(e), e.Tail
		j.record(t, KindEnded, "attempt %d: %s", t.Attempt, t.Why)
	}
}

// mayFinish tells whether a task may go on after the job has succeeded, as an
// evaluator that looks at the last checkpoint, and exports it.
func (j *Job) mayFinish(t *Task) bool {
	return j.outcome == proto.JobState_JOB_STATE_SUCCEEDED && t.optional() && t.Role.FinishMs > 0 && !t.stopping
}

// finishing tells whether one still does, and stops those whose time is over.
func (j *Job) finishing() bool {
	some := false
	for _, t := range j.tasks {
		if t.finishBy.IsZero() {
			continue
		}
		switch by, leaves := j.finishes(t); {
		case t.Container == "":
			t.finishBy = time.Time{}
		case by.After(j.now):
			some = true
		case leaves:
			j.record(t, KindNote, "it has to leave %s, and the others are done; it is stopped", t.Node)
			j.stopFinishing(t)
		default:
			j.record(t, KindNote, "it has not ended within %s of the others; it is stopped (--%s-finish)", time.Duration(t.Role.FinishMs)*time.Millisecond, t.Role.Name)
			j.stopFinishing(t)
		}
	}
	return some
}

// finishes is until when a task may go on at the job's end, and whether it has to leave
// its container by then: no container is asked for any longer into which it could move.
func (j *Job) finishes(t *Task) (by time.Time, leaves bool) {
	by = t.finishBy
	if due, is := j.leaves(t); is && !due.IsZero() && due.Before(by) {
		by, leaves = due, true
	}
	if t.wanted && t.leaveBy.Before(by) {
		by, leaves = t.leaveBy, true
	}
	return by, leaves
}

func (j *Job) stopFinishing(t *Task) {
	t.finishBy = time.Time{}
	j.phaseEnds = j.now.Add(j.limits.Stop + j.limits.Leave)
	j.halt(t, 0)
}

// hurry stops those that may go on, because the job's end is wanted at once.
func (j *Job) hurry() {
	for _, t := range j.tasks {
		if !t.finishBy.IsZero() {
			j.stopFinishing(t)
		}
	}
}

// end begins to stop everything. It ends in three phases: attempts are
// stopped, but for those that may finish first; agents are sent home, saving what they
// hold; Finish.
func (j *Job) end(outcome proto.JobState, why string) {
	if j.ending() {
		return
	}
	j.state, j.outcome, j.why = proto.JobState_JOB_STATE_STOPPING, outcome, why
	j.phaseEnds = j.now.Add(j.limits.Stop + j.limits.Leave)
	if outcome != proto.JobState_JOB_STATE_SUCCEEDED {
		j.record(nil, KindEnded, "the job is stopped: %s", why)
	}
	for _, s := range j.spares {
		switch {
		case s.request != "":
			j.do(Withdraw{s.request})
		case s.agentPID != 0:
			j.do(ReleaseAgent{s.container, "the job ends"})
		}
	}
	for _, t := range j.tasks {
		if t.request != "" {
			j.do(Withdraw{t.request})
			j.await(t, "")
		}
		switch {
		case t.State == proto.TaskState_TASK_STATE_RUNNING && j.mayFinish(t):
			if t.finishBy.IsZero() { // else the master before has said so
				limit := time.Duration(t.Role.FinishMs) * time.Millisecond
				t.finishBy = j.now.Add(limit)
				j.record(t, KindNote, "the others are done; it may go on for %s (--%s-finish)", limit, t.Role.Name)
			}
		case t.State == proto.TaskState_TASK_STATE_RUNNING && !t.stopping:
			j.halt(t, 0)
		case t.State == proto.TaskState_TASK_STATE_RUNNING,
			t.State == proto.TaskState_TASK_STATE_SUCCEEDED,
			t.State == proto.TaskState_TASK_STATE_FAILED:
		default:
			t.State = proto.TaskState_TASK_STATE_STOPPED
		}
	}
}

// proceedEnding goes on to the next phase as soon as it may.
func (j *Job) proceedEnding() {
	if !j.leaving && j.finishing() {
		return
	}
	overdue := !j.phaseEnds.After(j.now)
	if !j.leaving {
		if !overdue && j.any(func(t *Task) bool { return t.stopping && t.AgentPID != 0 }) {
			return
		}
		j.leaving = true
		j.phaseEnds = j.now.Add(j.limits.Leave)
		overdue = false
		for _, t := range j.tasks {
			if t.Container != "" && t.AgentPID != 0 {
				j.do(ReleaseAgent{t.Container, "the job ends"})
			}
		}
	}
	if !overdue && j.any(func(t *Task) bool { return t.Container != "" && t.AgentPID != 0 }) {
		return
	}
	for _, s := range j.spares {
		if s.container != "" {
			j.do(Release{s.container})
		}
	}
	for _, t := range j.tasks {
		if t.State == proto.TaskState_TASK_STATE_RUNNING {
			t.State = proto.TaskState_TASK_STATE_STOPPED
		}
		if t.Container != "" {
			j.do(Release{t.Container})
		}
	}
	j.phaseEnds = time.Time{}
	j.state = j.outcome
	j.finished = true
	if j.outcome == proto.JobState_JOB_STATE_SUCCEEDED {
		j.record(nil, KindEnded, "succeeded")
	}
	j.do(Finish{State: j.outcome, Why: j.why})
}

func (j *Job) any(is func(*Task) bool) bool {
	for _, t := range j.tasks {
		if is(t) {
			return true
		}
	}
	return false
}
