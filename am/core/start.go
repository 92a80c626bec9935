package core

import (
	"fmt"
	"slices"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/proto"
)

// startReady starts what may start: all tasks at once while the job assembles, else each
// task that is ready.
func (j *Job) startReady() {
	if j.phase == assembling {
		if !j.gangReady() {
			return
		}
		j.form()
		j.beginRunning()
		j.clearFaults()
		j.findBusy()
	}
	dirty := false
	for _, t := range j.busy {
		// What a task has left is put right while it waits for another container.
		dirty = dirty || t.dirty && t.awaited()
		if !j.mayStart(t) || j.unjustBlame(t) {
			if j.ending() {
				return
			}
			continue
		}
		if t.dirty {
			dirty = true
			continue
		}
		j.start(t)
	}
	if dirty && j.storeRequested.IsZero() {
		j.storeRequested = j.now
		j.emit(action.PrepareStore{
			AllDown:  !j.any(func(t *task) bool { return t.state.active() && !t.optional() }),
			Observed: j.any(func(t *task) bool { return t.state.active() && t.optional() }),
			Fenced:   j.fenced(),
		})
	}
}

// awaited reports whether a container is awaited or prepared for the task, or it has none
// and is to have none, and nothing of it can be running elsewhere.
func (t *task) awaited() bool {
	switch t.state {
	case waiting, launching, preparing, surplus:
		return len(t.expiring) == 0
	}
	return false
}

// gangReady reports whether the tasks may start together: when all are ready, or, after
// a while, when there is a quorum, as many of each role as it needs. Too long a wait for
// the job's first start ends it.
func (j *Job) gangReady() bool {
	if j.gang.since.IsZero() {
		j.gang.since = j.now
	}
	if j.past(j.startBy()) {
		j.giveUpStart()
		return false
	}
	i := slices.IndexFunc(j.tasks, j.holdsUpGang)
	if i < 0 {
		return true
	}
	if r := j.tasks[i].role; least(r) >= r.Count || !j.quorum() || j.any(func(t *task) bool { return j.holdsUpGang(t) && j.mustAwait(t) }) {
		j.gang.quorum = time.Time{}
		return false
	}
	if j.gang.quorum.IsZero() {
		j.gang.quorum = j.now
	}
	if j.now.Sub(j.gang.quorum) < j.quorumWait() && j.any(func(t *task) bool { return j.holdsUpGang(t) && j.comesSoon(t) }) {
		return false
	}
	for _, t := range j.tasks {
		if j.holdsUpGang(t) && !t.together() {
			j.record(t, action.KindNote, "the job starts without it; it joins when it has a container")
		}
	}
	return true
}

// quorumWait is how long all tasks are waited for once there is a quorum.
func (j *Job) quorumWait() time.Duration {
	if !j.begun || j.any(func(t *task) bool { return j.holdsUpGang(t) && t.state == preparing && !t.unreachable() }) {
		return j.limits.QuorumWait
	}
	return j.limits.LossWait
}

// startBy is by when the job has to have started; zero: there is no such time, as where
// it has been started before. Time in which nodes fetched files does not count.
func (j *Job) startBy() time.Time {
	if j.limits.Start == 0 || j.begun || j.gang.since.IsZero() {
		return time.Time{}
	}
	if j.filesSeen.After(j.gang.since) {
		return j.filesSeen.Add(j.limits.Start)
	}
	return j.gang.since.Add(j.limits.Start)
}

// inGang reports whether the task is one of those that start together. An optional one
// is not waited for: it starts with the others, or later.
func (t *task) inGang() bool {
	if t.surplus { // its attempt belongs to the generation before
		return t.together() && t.state == stopping
	}
	return !t.optional() && !t.state.done() && !t.state.ongoing()
}

// holdsUpGang reports whether the task is in the gang, and not ready.
func (j *Job) holdsUpGang(t *task) bool { return t.inGang() && !j.mayStart(t) }

// quorum reports whether every role has as many tasks ready as it needs.
func (j *Job) quorum() bool {
	ready := map[*proto.RoleSpec]int32{}
	for _, t := range j.tasks {
		if !t.surplus && !j.holdsUpGang(t) {
			ready[t.role]++
		}
	}
	membersLeast := j.membersLeast()
	for _, t := range j.tasks {
		if !t.optional() && ready[t.role] < least(t.role) {
			return false
		}
		if n := membersLeast(t.role); t.elastic() && multipleOf(t.role, ready[t.role]) < n {
			j.tellFixedWorld(t.role, n)
			return false
		}
	}
	return true
}

// giveUpStart ends a job that could not start in time.
func (j *Job) giveUpStart() {
	var missing []string
	for _, t := range j.tasks {
		if j.holdsUpGang(t) {
			missing = append(missing, t.name)
		}
	}
	why := fmt.Sprintf("the tasks could not start together within %s: %d of %d not ready (%s)", j.limits.Start, len(missing), len(j.tasks), proto.Some(missing))
	if j.waiting != "" {
		why += "; " + j.waiting
	}
	j.end(proto.JobState_JOB_STATE_FAILED, why)
}

// markDirty notes that a task's attempt has ended, and may have left a broken save.
func (j *Job) markDirty(t *task) { t.dirty, t.dirtied = true, j.now }

// storePrepared lets the tasks start whose attempts had ended before the store was
// prepared.
func (j *Job) storePrepared(e event.StorePrepared) {
	for _, t := range j.tasks {
		if !t.dirtied.After(j.storeRequested) {
			t.dirty = false
		}
	}
	j.storeRequested = time.Time{}
	for _, n := range e.Notes {
		j.record(nil, action.KindNote, "%s", n)
	}
}

// mayStart reports whether a task waits for nothing but its start.
func (j *Job) mayStart(t *task) bool { return !t.surplus && !j.isParked(t) && j.prepares(t) }

// prepares reports whether a task waits for nothing of its own.
func (j *Job) prepares(t *task) bool {
	if !t.state.startable() || t.unreachable() || t.awaitsPort() || len(t.expiring) > 0 || t.notBefore.After(j.now) {
		return false
	}
	// In a gang start, nobody waits for a service that starts with it.
	return !t.loss.blamesPeer || j.phase == assembling || !j.serviceDown(t)
}

func (j *Job) start(t *task) {
	j.becomeRunning(t, j.continues(t))
	j.begun = true
	if !j.started {
		j.started, j.why, j.waiting = true, "", ""
	}
	j.emit(j.startOf(t))
}

// startOf is the Start of a task's present attempt, the same each time that it is told.
func (j *Job) startOf(t *task) action.Start {
	return action.Start{
		Container: t.loc.container, Task: t.name, Attempt: t.run.number, Generation: j.generation,
		ConsistentServerState: t.run.fromServices, Absent: j.absent, WorldChanged: j.worldChanged,
	}
}

func (j *Job) taskStarted(e event.TaskStarted) {
	t := j.hosted[e.Container]
	if t == nil || e.Attempt != t.run.number || !t.state.active() {
		return
	}
	lost := t.loss.since
	j.becomeKnown(t, e.PID)
	text := fmt.Sprintf("attempt %d runs on %s, process %d", t.run.number, t.loc.node, t.run.pid)
	if lost.IsZero() {
		j.record(t, action.KindStarted, "%s", text)
		return
	}
	j.emit(action.Record{Task: t.name, Kind: action.KindRecovered, TookMS: j.now.Sub(lost).Milliseconds(), Text: text})
}

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
