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

// doubt notes whether a task failed by an error of its own, for which what the
// services hold may be the reason: a loss that is not a number, say.
func (t *Task) doubt(e TaskExited) { t.doubts = e.Signal == 0 && exitCause(e) == CauseOwnFault }

// begins takes in that an attempt starts, and tells whether it is to go on from what
// the services hold. A service that begins holds nothing; and who is not to go on from
// what they hold may put a checkpoint there, and be lost halfway.
func (j *Job) begins(t *Task) bool {
	j.kept = j.kept && j.served() && !t.doubts
	t.doubts = false
	return j.kept
}
