package core

import "holdfast/proto"

// stalled restarts a task that keeps the job from going on: first it alone, as
// after a failure of its own, and if that has not helped, all tasks with it.
func (j *Job) stalled(e Stalled) {
	if j.ending() {
		return
	}
	if t := j.named[e.Task]; t != nil && t.State == proto.TaskState_TASK_STATE_RUNNING && !t.stopping {
		t.hung, t.Why = true, e.Why
		j.do(Stop{t.Container})
		if e.All {
			j.restart(t, func(*Task) bool { return true })
		}
	}
}

// endedHung takes in the end of an attempt that was stopped because it hung.
func (j *Job) endedHung(t *Task, e TaskExited) {
	t.doubts = true
	t.failing = e
	j.lost(t, CauseStalled)
	if j.ending() {
		return
	}
	t.State = proto.TaskState_TASK_STATE_RESTARTING
	j.charge(t)
}
