package core

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/core/journal"
	"holdfast/proto"
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
	j.noteFault(t, journal.FaultLost, 0)
	j.lost(t, event.CauseRequested)
	j.becomeRestarting(t)
}

// A person may say how many tasks of a role the job is to work with, within the range that
// the role was submitted with. The tasks beyond that number are surplus: they leave in order,
// as those do whose containers the scheduler takes, and ask for no container until more are
// wanted again.

// scaleRequested answers a person who wants a role to have another number of tasks, and has
// tasks leave, or ask for containers.
func (j *Job) scaleRequested(e event.ScaleRequested) {
	var tasks []*task
	for _, t := range j.tasks {
		if t.role.Name == e.Role {
			tasks = append(tasks, t)
		}
	}
	refusal := j.refuseScale(e, tasks)
	j.emit(action.RequestAnswered{Refusal: refusal})
	if refusal != "" {
		return
	}
	slices.SortStableFunc(tasks, func(a, b *task) int { return cmp.Compare(j.dispensable(a), j.dispensable(b)) })
	by, changed, more := cmp.Or(e.User, "somebody"), false, false
	for i, t := range tasks {
		if surplus := i >= int(e.Count); surplus != t.surplus {
			t.surplus, changed, more = surplus, true, !surplus
			j.touch(t)
		}
	}
	if !changed {
		return
	}
	when := ""
	if tasks[0].together() && j.phase == jobRunning && j.limits.Save > 0 {
		when = fmt.Sprintf(": at the next complete checkpoint, or in %s", j.limits.Save)
	}
	j.record(nil, action.KindNote, "%s wants %d tasks of the role %s%s", by, e.Count, e.Role, when)
	j.grown, j.moreWanted = nil, time.Time{} // what a person wants does not wait
	if more {
		j.moreWanted = j.now
	}
	for _, t := range tasks {
		if t.surplus {
			j.dismiss(t)
		} else {
			j.wantAgain(t)
		}
	}
}

// dispensable orders the tasks of a role: those with greater numbers are surplus first.
func (j *Job) dispensable(t *task) int {
	switch {
	case t.state.done():
		return 0
	case t.surplus:
		return 4
	case t.loc.container == "":
		return 3
	case t.parked:
		return 2
	}
	return 1
}

// dismiss has a task that is surplus leave its container, in order. One that starts with
// others leaves when a checkpoint is complete, since what was trained after that is lost.
func (j *Job) dismiss(t *task) {
	if t.loc.container == "" {
		if t.state == waiting {
			j.withdraw(t)
			j.becomeSurplus(t)
		}
		return
	}
	if t.leavesNow() || t.state.done() || t.loc.leave.reason == journal.LeaveScheduler {
		return
	}
	o := leaveOrder{by: j.now, grace: max(j.limits.Save, j.limits.Stop), reason: journal.LeaveSurplus}
	if t.together() && t.state.ongoing() {
		o.by = j.now.Add(j.limits.Save)
	}
	j.becomeLeaving(t, o)
}

// newestIs takes in what the newest checkpoint means for those who go on from it.
func (j *Job) newestIs(fixedWorld bool) {
	j.fixedWorld = fixedWorld
	j.keepSurplus()
}

// keepSurplus has those go on that were to leave, and without whom the others cannot go on
// from the newest checkpoint: only as many ranks can read it as have saved it.
func (j *Job) keepSurplus() {
	if !j.fixedWorld {
		return
	}
	var kept []string
	for _, t := range j.tasks {
		if t.together() && t.surplus && !t.parked {
			t.surplus = false
			kept = append(kept, t.name)
			j.touch(t)
			j.wantAgain(t)
		}
	}
	if kept != nil {
		j.record(nil, action.KindNote, "the newest checkpoint can be read by as many ranks only as have saved it, so that %s cannot be done without", proto.Some(kept))
	}
}

// wantAgain has a task work that was surplus.
func (j *Job) wantAgain(t *task) {
	if !t.together() {
		t.absence = absence{}
	}
	if t.absence.cause == event.CauseScaledDown { // it is not missing because of that any longer
		t.absence.cause = event.CauseUnknown
	}
	switch {
	case t.state == surplus:
		t.loss.why, t.loss.cause = "", event.CauseUnknown
		j.ask(t)
	case t.loc.container != "" && t.loc.leave.reason == journal.LeaveSurplus && !t.leavesNow():
		j.becomeStaying(t)
	}
}

// refuseScale says why a role does not get another number of tasks; "" if it does.
func (j *Job) refuseScale(e event.ScaleRequested, tasks []*task) string {
	if len(tasks) == 0 {
		return fmt.Sprintf("the job has no role %s", e.Role)
	}
	r := tasks[0].role
	fewest := least(r)
	switch {
	case tasks[0].service():
		return fmt.Sprintf("the others work on what the %d tasks of the role %s hold, so that their number is fixed", r.Count, r.Name)
	case j.phase == reconciling:
		return "the application master has just taken over and does not know yet where the tasks are; try again in a minute"
	case j.ending():
		return "the job ends"
	case fewest == r.Count:
		return fmt.Sprintf("the role %s was submitted with %d tasks, no more and no fewer; a range, as --%s 1..%d, lets it be scaled", r.Name, r.Count, r.Name, r.Count)
	case e.Count < fewest || e.Count > r.Count:
		return fmt.Sprintf("the role %s was submitted with %d to %d tasks", r.Name, fewest, r.Count)
	case multipleOf(r, e.Count) != e.Count:
		return fmt.Sprintf("the number of tasks of the role %s is a multiple of %d", r.Name, r.Multiple)
	}
	if members := j.members()[r]; j.fixedWorld && tasks[0].together() && e.Count != members {
		return fmt.Sprintf("the newest checkpoint can be read by as many ranks only as have saved it, which are %d", members)
	}
	return ""
}
