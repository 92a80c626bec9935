package core

import "slices"

// Services hold what the other tasks work on, as parameter servers hold the model. That
// state outlives the loss of those others, and goes on changing meanwhile. A task that
// comes back had better not put the last checkpoint in its place: what the others have
// trained since would be lost.

// served reports whether there are services, and all run.
func (j *Job) served() bool {
	return len(j.services) > 0 && !slices.ContainsFunc(j.services, (*task).notRunning)
}

// consistentAfter is how many checkpoints are found complete, one after the other, until
// what the services hold is known to be consistent, also if one of them had to begin
// anew. The first may have been under way before that.
const consistentAfter = 2

// serviceSaved takes in that a newer checkpoint is complete.
func (j *Job) serviceSaved() {
	if j.served() {
		j.consistentSaves = min(j.consistentSaves+1, consistentAfter)
	}
}

// continues takes in that an attempt of a task starts, and reports whether it is to
// continue from what the services hold. A service that begins holds nothing; and a task
// that is not to continue from what they hold may restore a checkpoint into them, and be
// lost halfway.
func (j *Job) continues(t *task) bool {
	if !j.served() || t.loss.suspectsServices || j.consistentSaves < consistentAfter {
		j.consistentSaves = 0
	}
	return j.consistentSaves == consistentAfter
}
