package core

import "slices"

// Services hold what the other tasks work on, as parameter servers hold the model.
// It outlives the loss of those others, and goes on changing meanwhile. Who comes
// back had better not put the last checkpoint in its place: what the others have
// learned since would be lost.

// served tells whether there are services, and all run.
func (j *Job) served() bool {
	return len(j.services) > 0 && !slices.ContainsFunc(j.services, (*Task).notRunning)
}

// serviceSaved takes in that a newer checkpoint is complete: what the services hold
// is of one piece, also if one of them had to begin anew.
func (j *Job) serviceSaved() { j.kept = j.served() }

// serviceBegins takes in that an attempt starts: a service's holds nothing yet.
func (j *Job) serviceBegins(t *Task) {
	if t.service() {
		j.kept = false
	}
}

// doubt notes whether a task failed by an error of its own, for which what the
// services hold may be the reason: a loss that is not a number, say.
func (t *Task) doubt(e TaskExited) { t.doubts = e.Signal == 0 && exitCause(e) == CauseOwnFault }

// keeps tells whether a task's next attempt is to go on from what the services hold.
func (j *Job) keeps(t *Task) bool { return j.kept && j.served() && !t.service() && !t.doubts }
