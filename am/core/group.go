package core

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/core/journal"
	"holdfast/proto"
)

// Tasks that restart together are a group, which a gang start forms. Where a role may do
// with fewer of them, the group is elastic: it forms without those that do not come in
// time. Those are parked. They keep their containers, or what they have asked for, and
// join when the group forms again: after a loss, or because it grows. What is a member of
// a generation is decided when that starts, and does not change while it runs.

// elastic reports whether the task's group may do without it.
func (t *task) elastic() bool { return t.together() && t.role.Min > 0 && t.role.Min < t.role.Count }

// isParked reports whether the job works without the task, which is in a group that has
// formed without it.
func (j *Job) isParked(t *task) bool { return t.parked && j.phase == jobRunning }

// members counts the tasks of each role that are not parked.
func (j *Job) members() map[*proto.RoleSpec]int32 {
	count := map[*proto.RoleSpec]int32{}
	for _, t := range j.tasks {
		if !t.parked {
			count[t.role]++
		}
	}
	return count
}

// membersLeast returns how many tasks of an elastic role its group needs now.
func (j *Job) membersLeast() func(*proto.RoleSpec) int32 {
	if !j.fixedWorld {
		return least
	}
	members := j.members()
	return func(r *proto.RoleSpec) int32 { return members[r] }
}

// tellFixedWorld says once that a group waits for members of a role, n in all, without which
// it could do if the checkpoint were another.
func (j *Job) tellFixedWorld(r *proto.RoleSpec, n int32) {
	if !j.fixedWorld || j.gang.told {
		return
	}
	j.gang.told = true
	j.record(nil, action.KindNote, "the newest checkpoint can be read by as many ranks only as have saved it, so the job waits until %d of the role %s are there", n, r.Name)
}

// multipleOf rounds a number of tasks down to a multiple with which the role can work.
func multipleOf(r *proto.RoleSpec, n int32) int32 {
	if r.Multiple > 1 {
		n -= n % r.Multiple
	}
	return n
}

// comesSoon reports whether a task that an elastic group lacks is worth waiting for. One
// that the scheduler took the container of may be long in coming, and so may one that is
// waited for in a full queue; one that may still run elsewhere is there when its lease has
// expired at the earliest.
func (j *Job) comesSoon(t *task) bool {
	return !j.begun || t.state != waiting || t.loss.cause != event.CausePreempted && j.waiting == "" && len(t.expiring) == 0
}

// mustAwait reports whether a gang start waits for a task however long it takes: its
// attempt is ending, its delay after a failure is not over, or it takes another port.
func (j *Job) mustAwait(t *task) bool {
	return t.together() && (t.state.active() || t.state.startable() && t.notBefore.After(j.now) || t.awaitsPort() && !t.unreachable())
}

// form decides who is in the group that starts now: those that are ready, as many of
// them as the role can work with.
func (j *Job) form() {
	ready := map[*proto.RoleSpec]int32{}
	for _, t := range j.tasks {
		if t.elastic() && !t.surplus && !j.holdsUpGang(t) {
			ready[t.role]++
		}
	}
	left := map[*proto.RoleSpec]int32{} // places
	members := j.members()
	for r, n := range ready {
		left[r] = multipleOf(r, n)
		if j.fixedWorld {
			left[r] = min(left[r], members[r])
		}
	}
	changed, lost := false, false
	for _, t := range j.tasks {
		if !t.elastic() {
			continue
		}
		was := t.parked
		t.parked = t.surplus || j.holdsUpGang(t) || left[t.role] == 0
		if !t.parked {
			left[t.role]--
		}
		changed = changed || was != t.parked
		if t.parked {
			lost = lost || !t.loss.since.IsZero()
			t.loss.since = time.Time{} // the job is not waiting for it
			j.noteAbsence(t)
		} else {
			t.absence = absence{}
		}
	}
	// What one of them has left, or may still save where nobody hears of it, is put right
	// before any of them starts, also where that one has written nothing itself.
	if len(j.fenced()) > 0 || j.any(func(t *task) bool { return t.together() && t.dirty }) {
		for _, t := range j.tasks {
			if t.together() && !t.parked {
				j.markDirty(t)
			}
		}
	}
	j.absent, j.worldChanged = j.parkedOrdinals(), changed
	if changed {
		j.resized = j.now
	}
	if changed || lost {
		j.record(nil, action.KindResized, "%s", j.describeGroup())
	}
	if j.leavesBehind() {
		j.changePorts()
	}
}

// leavesBehind reports whether a member of a former generation may still be at work, while
// its group goes on without it.
func (j *Job) leavesBehind() bool {
	return j.any(func(t *task) bool { return t.elastic() && len(t.expiring) > len(t.departed) })
}

// changePorts has the members of the generation that starts now be met at other ports than
// in any generation before. A member of one that nobody hears of may be about to meet the
// others: it would be taken for one that has its rank now.
func (j *Job) changePorts() {
	for _, t := range j.tasks {
		if !t.together() || t.parked {
			continue
		}
		port := proto.PortAfter(cmp.Or(t.first, t.port), j.generation*len(j.tasks))
		if port == t.port { // after a good many generations
			port = proto.PortAfter(port, len(j.tasks))
		}
		j.changePort(t, port)
	}
}

// changePort has the next attempts of a task listen on a port. Until it is reserved, none
// starts.
func (j *Job) changePort(t *task, port int) {
	t.port = port
	j.becomeUnaddressed(t)
	j.emit(action.ChangePort{Container: t.loc.container, Port: port})
}

// awaitsPort reports whether the task waits for the port on which it is to listen.
func (t *task) awaitsPort() bool { return t.state.startable() && t.loc.port == 0 }

// noteAbsence notes that the others work without a task.
func (j *Job) noteAbsence(t *task) {
	if t.absence.since.IsZero() {
		t.absence = absence{j.now, t.loss.cause}
	}
}

// parkedOrdinals are the parked tasks, by their places in the job; nil: none is.
func (j *Job) parkedOrdinals() []int32 {
	var list []int32
	for _, t := range j.tasks {
		if t.parked {
			list = append(list, int32(t.ordinal))
		}
	}
	return list
}

// describeGroup is for the user.
func (j *Job) describeGroup() string {
	g := j.Group()
	if len(g.Parked) == 0 {
		return fmt.Sprintf("generation %d works with all %d tasks", j.generation, g.All)
	}
	return fmt.Sprintf("generation %d works with %d of %d tasks (at least %d), without %s", j.generation, g.All-len(g.Parked), g.All, g.Least, proto.Some(g.Parked))
}

// leaveBehind has an elastic group go on without a task whose agent is unreachable, if
// that is all that it still waits for: the lease of an agent on a node that is lost takes
// longer to expire than the others take to begin again. What runs there is fenced before
// they do, and its task starts again once the lease has expired.
func (j *Job) leaveBehind() {
	if j.phase != assembling || !j.begun || !j.elastic {
		return
	}
	var gone []*task
	ready := map[*proto.RoleSpec]int32{}
	for _, t := range j.tasks {
		switch {
		case !t.together():
		case !j.holdsUpGang(t):
			if !t.surplus {
				ready[t.role]++
			}
		case t.elastic() && t.unreachable() && t.loc.orphan == nil:
			if !j.past(j.leaveBehindAt(t)) {
				return
			}
			gone = append(gone, t)
		case !t.elastic() || j.mustAwait(t):
			return
		}
	}
	needed := j.membersLeast()
	for _, t := range gone {
		if n := multipleOf(t.role, ready[t.role]); n == 0 || n < needed(t.role) {
			return
		}
	}
	for _, t := range gone {
		j.awaitExpiry(t, t.loc.container, t.loc.deadline)
		j.loseContainer(t, event.CauseAgentLost, fmt.Sprintf("its agent on %s has been without a connection for %s, and the others can go on without it",
			t.loc.node, j.now.Sub(t.loc.silent).Round(time.Second)))
		if j.ending() {
			return
		}
	}
}

// leaveBehindAt is when an elastic group goes on without a task whose agent is unreachable.
func (j *Job) leaveBehindAt(t *task) time.Time { return t.loc.silent.Add(j.limits.Unreachable) }

// fenced are the containers in which a member of a former generation, or what it has left to
// be written, may still be at work, while its group goes on without it.
func (j *Job) fenced() []string {
	var list []string
	for _, t := range j.tasks {
		if t.elastic() {
			list = append(list, t.expiringContainers()...)
		}
	}
	return list
}

// joining are the parked tasks that could start now.
func (j *Job) joining() []*task {
	var list []*task
	for _, t := range j.busy {
		if t.parked && !t.surplus && j.prepares(t) {
			list = append(list, t)
		}
	}
	return list
}

// growGroup has parked tasks join that are ready, all at once.
func (j *Job) growGroup() {
	if !j.past(j.growDue()) {
		return
	}
	t := j.joining()[0]
	j.grown = append(j.grown, j.now)
	j.grown = j.grown[max(0, len(j.grown)-growths):]
	j.moreWanted = time.Time{}
	j.noteFault(t, journal.FaultLost, 0) // how the others end now is nobody's failure
	j.restart(t, "joins", graceOf(0), (*task).together)
}

// growDue is when parked tasks are to join; zero: not before something else happens.
func (j *Job) growDue() time.Time {
	if j.phase != jobRunning || j.absent == nil || j.fixedWorld {
		return time.Time{}
	}
	wanted := j.wantedDue()
	waits := j.limits.Grow == 0 && !j.justSealed // for a checkpoint
	if waits && wanted.IsZero() {
		return time.Time{}
	}
	joins := map[*proto.RoleSpec]int32{}
	for _, t := range j.joining() {
		joins[t.role]++
	}
	if len(joins) == 0 {
		return time.Time{}
	}
	members := j.members()
	maps.DeleteFunc(joins, func(r *proto.RoleSpec, n int32) bool { return multipleOf(r, members[r]+n) == members[r] })
	if len(joins) == 0 {
		return time.Time{}
	}
	due := j.resized.Add(j.limits.Grow)
	if len(j.grown) == growths {
		if next := j.grown[0].Add(j.limits.GrowPause); next.After(due) {
			due = next
		}
	}
	if waits || !wanted.IsZero() && wanted.Before(due) {
		due = wanted
	}
	return due
}

// wantedDue is when those tasks join, also without a checkpoint, that were missing when a
// person wanted more; zero: none of them is prepared. Those that are not prepared by then are
// waited for as at the start.
func (j *Job) wantedDue() time.Time {
	if j.moreWanted.IsZero() {
		return time.Time{}
	}
	ready, missing := false, false
	for _, t := range j.busy {
		if t.parked && !t.surplus && !t.absence.since.After(j.moreWanted) {
			ready, missing = ready || j.prepares(t), missing || !j.prepares(t)
		}
	}
	due := j.moreWanted.Add(j.limits.Save)
	switch {
	case !ready:
		return time.Time{}
	case missing:
		return due.Add(j.limits.QuorumWait)
	}
	return due
}

// growths is how often a group grows within Limits.GrowPause at most.
const growths = 3

// insteadOf is a task that is to leave its container in place of t, for a scheduler that
// accepts another with as much memory; nil: there is none. It is a parked one, or for the
// first rank the last. Of two others that work one is no better than the other: a scheduler
// that wants still more takes t's container, too, and has said so once only.
func (j *Job) insteadOf(t *task) *task {
	if !t.elastic() || t.parked {
		return nil
	}
	first := t == j.tasks[slices.IndexFunc(j.tasks, func(o *task) bool { return o.together() && !o.parked })]
	var last *task
	for _, o := range slices.Backward(j.tasks) {
		if o == t || o.role != t.role || o.loc.container == "" || o.memoryMB < t.memoryMB ||
			!o.loc.leave.by.IsZero() || o.leavesNow() || o.unreachable() || o.state.done() {
			continue
		}
		if j.isParked(o) {
			return o
		}
		if first && last == nil && !o.parked {
			last = o
		}
	}
	return last
}
