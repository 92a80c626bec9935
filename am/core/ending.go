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

// fail ends the job because of a task.
func (j *Job) fail(t *Task, why string) {
	if j.ending() {
		return
	}
	t.State = proto.TaskState_TASK_STATE_FAILED
	j.end(proto.JobState_JOB_STATE_FAILED, fmt.Sprintf("%s %s", t.Name, why))
}

// end begins to stop everything. It ends in three phases: attempts are
// stopped; agents are sent home, saving what they hold; Finish.
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
			j.do(Bye{s.container, "the job ends"})
		}
	}
	for _, t := range j.tasks {
		if t.request != "" {
			j.do(Withdraw{t.request})
			j.await(t, "")
		}
		switch {
		case t.State == proto.TaskState_TASK_STATE_RUNNING && !t.stopping:
			t.stopping = true
			j.do(Stop{t.Container})
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
				j.do(Bye{t.Container, "the job ends"})
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
