package core

import (
	"holdfast/am/core/action"
	"holdfast/am/core/event"
)

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
