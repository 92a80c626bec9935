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

// wholeAfter is how many checkpoints are found complete, one after the other, until
// what the services hold is known to be of one piece, also if one of them had to begin
// anew. The first may have been under way before that.
const wholeAfter = 2

// serviceSaved takes in that a newer checkpoint is complete.
func (j *Job) serviceSaved() {
	if j.served() {
		j.saves = min(j.saves+1, wholeAfter)
	}
}

// doubt notes whether a task failed by an error of its own, for which what the
// services hold may be the reason: a loss that is not a number, say.
func (t *Task) doubt(e TaskExited) { t.doubts = e.Signal == 0 && exitCause(e) == CauseOwnFault }

// begins takes in that an attempt starts, and tells whether it is to go on from what
// the services hold. A service that begins holds nothing; and who is not to go on from
// what they hold may put a checkpoint there, and be lost halfway.
func (j *Job) begins(t *Task) bool {
	if !j.served() || t.doubts || j.saves < wholeAfter {
		j.saves = 0
	}
	t.doubts = false
	return j.saves == wholeAfter
}
