package core

import (
	"cmp"
	"fmt"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
)

// A person may ask for the restart of a task, as of one that hangs. Its attempt is ended as
// at a stall, and the next one starts in the same container. That is no failure of the task,
// however the attempt ends, and no loss that is limited in number.

// restartRequested answers a person who asks for a task's restart, and ends its attempt
// unless that is ending already. Tasks that restart together all do.
func (j *Job) restartRequested(e event.RestartRequested) {
	t := j.named[e.Task]
	refusal := j.refuseRestart(t, e.Task)
	j.emit(action.RequestAnswered{Refusal: refusal})
	if refusal != "" || t.run.stop.reason == event.StopRequested {
		return
	}
	by := cmp.Or(e.User, "somebody")
	if t.state == stopping {
		j.record(t, action.KindNote, "%s asks for its restart; attempt %d is being stopped already", by, t.run.number)
		return
	}
	t.loss.why = "by " + by
	j.record(t, action.KindNote, "%s asks for its restart; attempt %d is stopped", by, t.run.number)
	j.halt(t, event.StopRequested, event.CauseUnknown, 0)
	if t.together() {
		j.restart(t, "is to be restarted", graceOf(0), (*task).together)
	}
}

// refuseRestart says why a task is not restarted; "" if it is.
func (j *Job) refuseRestart(t *task, name string) string {
	switch {
	case t == nil:
		return fmt.Sprintf("the job has no task %s", name)
	case j.phase == reconciling:
		return "the application master has just taken over and does not know yet where the tasks are; try again in a minute"
	case j.ending():
		return "the job ends, and no task is restarted any longer"
	case t.state.done():
		return fmt.Sprintf("%s has ended, and a task that has ended is not started again", name)
	case t.surplus:
		return fmt.Sprintf("the job was scaled down, and works without %s; yarn-submit scale has it work again", name)
	case !t.state.active():
		return fmt.Sprintf("%s has no attempt that runs; its next one starts by itself", name)
	}
	return ""
}

// endsByRequest reports whether an attempt's end is the one that a person asked for. A task
// that had done its work before has succeeded, unless it restarts with others, which have
// been told to start again.
func endsByRequest(t *task, e event.TaskExited) bool {
	done := e.Code == 0 && e.Signal == 0 && !e.Stopped && !t.service()
	return t.run.stop.reason == event.StopRequested && (!done || t.together())
}

// endedByRequest takes in the end of an attempt that a person asked for.
func (j *Job) endedByRequest(t *task, e event.TaskExited) {
	t.loss.exit, t.loss.tail = event.TaskExited{}, nil
	t.loss.why = cmp.Or(t.loss.why, "by a person")
	if len(e.Stack) > 0 {
		t.loss.tail = e.Stack
		t.loss.why += "; it stood at " + innermost(e.Stack)
	}
	j.noteFault(t, FaultLost, 0)
	j.lost(t, event.CauseRequested)
	j.becomeRestarting(t)
}
