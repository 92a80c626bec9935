package core

import (
	"fmt"
	"slices"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/core/journal"
	"holdfast/am/core/nodes"
)

// Some losses are announced: the scheduler says which containers it will take back, and
// which nodes will be taken out of service. Others are losses to YARN only: where a
// NodeManager alone is lost, what it ran goes on. Such tasks leave in order: the attempt
// is stopped with time to save, preferably just after a checkpoint was sealed, its agent
// is released, and only then does the next attempt start, elsewhere. A task whose node
// closes, or has lost its NodeManager, keeps running until its stand-in, a container
// elsewhere, has an agent and, where there is one, a warm interpreter. Off a node that
// closes tasks move one by one. A straggler moves in the same way.

// preemptionWarned gives back what the scheduler wants. Where others would do as
// well as the containers that it names, idle ones go first.
func (j *Job) preemptionWarned(e event.PreemptionWarned) {
	if j.ending() {
		return
	}
	j.noSparesUntil = j.now.Add(j.limits.SpareHoldoff)
	for _, c := range e.Containers {
		if s := j.spareByContainer(c); s != nil {
			j.giveUpSpare(s)
			j.record(nil, action.KindNote, "the scheduler wants the spare container on %s back, and gets it", s.node)
			continue
		}
		t := j.hosted[c]
		if t == nil || t.loc.leave.reason == journal.LeaveScheduler || t.leavesNow() || t.state == succeeded {
			continue
		}
		if s := j.idleFor(t); s != nil && !e.Strict {
			j.giveUpSpare(s)
			j.record(nil, action.KindNote, "the scheduler wants the container of %s back, and gets the spare one on %s in its place", t.name, s.node)
			continue
		}
		if o := j.insteadOf(t); o != nil && !e.Strict {
			j.record(nil, action.KindNote, "the scheduler wants the container of %s back, and gets that of %s in its place", t.name, o.name)
			t = o
		}
		var by earliest
		by.consider(t.loc.leave.by) // it may move for another reason
		by.consider(j.now.Add(min(j.limits.Save, e.Within/2)))
		j.becomeLeaving(t, leaveOrder{by: by.time, grace: e.Within / 4, reason: journal.LeaveScheduler})
		j.record(t, action.KindNote, "the scheduler takes its container on %s back within %s; it is stopped in order before that", t.loc.node, e.Within)
	}
}

// preemptionCanceled leaves those tasks where they are whose attempts are not stopping.
func (j *Job) preemptionCanceled(e event.PreemptionCanceled) {
	for _, c := range e.Containers {
		if t := j.hosted[c]; t != nil && t.loc.leave.reason == journal.LeaveScheduler && !t.surplus && !t.leavesNow() && !j.ending() {
			j.becomeStaying(t)
			j.record(t, action.KindNote, "the scheduler does not want its container on %s back any longer (%s); it stays there", t.loc.node, e.Why)
		}
	}
}

// idleFor is a spare for any task that frees as much as a task's container.
func (j *Job) idleFor(t *task) *spare {
	i := slices.IndexFunc(j.spares, func(s *spare) bool { return s.task == nil && s.container != "" && s.memoryMB >= t.memoryMB })
	if i < 0 {
		return nil
	}
	return j.spares[i]
}

// nodeDecommissioning begins to move tasks off a node.
func (j *Job) nodeDecommissioning(e event.NodeDecommissioning) {
	before, _ := j.nodes.Closes(e.Node)
	c := nodes.Closing{Told: j.now, Logged: before.Logged}
	if e.Within > 0 {
		c.Until = j.now.Add(e.Within)
	}
	defer func() { j.nodes.Close(e.Node, c) }()
	affected := j.tasksOn(e.Node)
	if c.Logged || affected == 0 && !e.HostsAM || j.ending() {
		return
	}
	c.Logged = true
	when := ""
	if e.Within > 0 {
		when = " within " + e.Within.String()
	}
	what := fmt.Sprintf("its %d of the job's tasks are moved", affected)
	if e.HostsAM {
		// To end before it must would count as one of the attempts that YARN allows.
		what += ", and the application master there is followed by another when the node goes"
	}
	j.record(nil, action.KindNote, "%s is taken out of service%s; %s", e.Node, when, what)
}

// tasksOn counts the tasks that have a container on a node.
func (j *Job) tasksOn(node string) int {
	n := 0
	for _, t := range j.tasks {
		if t.loc.node == node && t.loc.container != "" {
			n++
		}
	}
	return n
}

// nodeRecommissioned takes back that a node closes; how says by what that is known.
func (j *Job) nodeRecommissioned(node, how string) {
	c, _ := j.nodes.Closes(node)
	j.nodes.Reopen(node)
	for _, t := range j.tasks {
		if t.loc.node == node && !t.leavesNow() && !t.loc.leave.whateverNode() {
			j.becomeStaying(t)
		}
	}
	if c.Logged {
		j.record(nil, action.KindNote, "%s is in service again%s", node, how)
	}
}

// noteGiven takes in that the cluster has given a container on a node. Not every
// ResourceManager says that a node is in service again, as that of Hadoop 3.1 does not, and what
// one said that was lost is not repeated. Only once the node should be empty is a container there
// a sign of it: before, the scheduler may give the room of one that has just ended (YARN-5128).
func (j *Job) noteGiven(node string) {
	if c, is := j.nodes.Closes(node); is && j.past(c.Gone()) {
		j.nodeRecommissioned(node, ": YARN gives containers there")
	}
}

// forgottenAt is when a node that was to be taken out of service is not avoided any longer, unless
// more is heard of it. Tasks that are there then move all the same; zero: some are.
func (j *Job) forgottenAt(node string) time.Time {
	if j.tasksOn(node) > 0 {
		return time.Time{}
	}
	return j.nodes.Forgotten(node)
}

// forgetClosed forgets the nodes for which it is time.
func (j *Job) forgetClosed() {
	for _, node := range j.nodes.Closing() {
		if c, _ := j.nodes.Closes(node); j.past(j.forgottenAt(node)) {
			j.nodes.Reopen(node)
			if c.Logged {
				j.record(nil, action.KindNote, "%s is not avoided any longer: nothing was heard of it since it was to be taken out of service", node)
			}
		}
	}
}

// closes reports whether a node is taken out of service, and by when what runs on it
// should be gone; zero: no time is known.
func (j *Job) closes(node string) (by time.Time, is bool) {
	if !j.nodes.AnyCloses() { // nearly always, and it is asked of each task at each step
		return time.Time{}, false
	}
	c, is := j.nodes.Closes(node)
	if c.Until.IsZero() {
		return c.Until, is
	}
	return c.Until.Add(-j.limits.Stop - j.limits.Leave), is
}

// orphan is a container that YARN has given up together with its NodeManager,
// while its agent is there and renews its lease.
type orphan struct {
	until time.Time // its task has to leave
	why   string    // YARN gave it up
	// evicted: its directory was removed, of which why tells, with the node.
	evicted bool
}

// onNode names the node of a task whose container is an orphan, unless the reason for that does.
func (t *task) onNode() string {
	if t.loc.orphan.evicted {
		return ""
	}
	return " on " + t.loc.node
}

// orphaned has a task move out of such a container in order, as off a node that closes,
// and together with the others that are there.
func (j *Job) orphaned(t *task, why string) {
	j.becomeOrphan(t, j.now.Add(j.limits.Orphan), why)
	for _, o := range j.tasks {
		if o.loc.orphan != nil && !o.leavesNow() && !o.loc.leave.whateverNode() {
			j.becomeStaying(o) // it waits for this one
		}
	}
	j.record(t, action.KindNote, "YARN has lost its container on %s (%s), and it still runs there; it moves", t.loc.node, why)
}

// evict has a task leave at once a container whose directory was removed: a NodeManager
// that was restarted without its state does that to what still runs there, spares
// included. What the task saves is lost, and others that save with it fail.
func (j *Job) evict(t *task, why string) {
	j.becomeOrphan(t, j.now, why)
	t.loc.orphan.evicted = true
	t.history.lastLoss = j.now
	if s := t.run.stop; t.state == stopping && s.by.After(j.now.Add(j.limits.Stop)) {
		j.halt(t, s.reason, s.cause, 0) // it had time to save
	}
	for _, s := range slices.Clone(j.spares) {
		if s.container != "" && s.node == t.loc.node {
			j.giveUpSpare(s)
		}
	}
	j.record(t, action.KindNote, "%s; it leaves at once", why)
}

// evictedLately reports whether what tasks saved together may be incomplete, because one
// lost its directory.
func (j *Job) evictedLately() bool {
	return !j.dirRemoved.IsZero() && j.now.Sub(j.dirRemoved) < j.limits.PeerWindow
}

// hasOrphan reports whether a node has an orphan: spares there are lost, too, though that
// may not have been reported yet.
func (j *Job) hasOrphan(node string) bool {
	return j.orphans > 0 && j.any(func(t *task) bool { return t.loc.node == node && t.loc.orphan != nil })
}

// leaves reports whether a task has to leave the node that it is on, and by when it
// should have; zero: no time is known.
func (j *Job) leaves(t *task) (by time.Time, is bool) {
	by, is = j.closes(t.loc.node)
	if o := t.loc.orphan; o != nil && (by.IsZero() || o.until.Before(by)) {
		return o.until, true
	}
	return by, is || t.loc.slow
}

// leavesOnlySlow reports whether a task leaves for no other reason than that it is a
// straggler.
func (j *Job) leavesOnlySlow(t *task) bool {
	_, closes := j.closes(t.loc.node)
	return t.loc.slow && !closes && t.loc.orphan == nil
}

// vacate moves the tasks that must leave their containers, as far as it is time.
func (j *Job) vacate() {
	for _, s := range slices.Clone(j.spares) {
		_, closes := j.closes(s.node)
		needed := s.task == nil || s.task.unreachable()
		if !needed {
			_, needed = j.leaves(s.task)
		}
		if closes && s.container != "" || !needed {
			j.giveUpSpare(s)
		}
	}
	var moving []*task // that run and wait for their turn
	for _, t := range j.busy {
		if t.loc.container == "" || t.unreachable() || t.leavesNow() || t.state.done() {
			continue
		}
		if t.notRunning() && j.leavesOnlySlow(t) { // its next attempt may not be slow
			j.endSlow(t)
		}
		by, leaves := j.leaves(t)
		order := t.loc.leave
		switch {
		case !order.by.IsZero() && (t.notRunning() || j.past(order.by)):
			j.leaveContainer(t, j.leaveCause(t, leaves), order.grace)
		case leaves && (t.notRunning() || j.past(by)):
			j.leaveContainer(t, j.leaveCause(t, leaves), j.limits.Stop)
		case leaves && t.state.ongoing():
			moving = append(moving, t)
		}
	}
	j.moveNext(moving)
}

// leaveCause is why a task leaves its container; leaves says that its node is the reason.
func (j *Job) leaveCause(t *task, leaves bool) event.Cause {
	switch {
	case t.surplus:
		return event.CauseScaledDown
	case !leaves || j.leavesOnlySlow(t) && t.loc.leave.reason == journal.LeaveScheduler:
		return event.CausePreempted
	case t.loc.orphan != nil:
		return event.CauseNodeLost
	case j.leavesOnlySlow(t):
		return event.CauseStraggler
	}
	return event.CauseNodeDecommissioned
}

// moveNext gets a stand-in for each of the tasks that must move, and has the next one
// move: tasks that restart together do it together, and so do orphans, which have little
// time; others one by one.
func (j *Job) moveNext(moving []*task) {
	if len(moving) == 0 {
		return
	}
	together := func(t *task) bool { return t.loc.orphan != nil || t.together() }
	complete := true // all that move together have their stand-ins
	for _, t := range moving {
		s := j.getStandIn(t)
		if j.leavesOnlySlow(t) && j.stayIfNowhere(t, s) {
			return
		}
		complete = complete && (j.stands(s) || !together(t) || j.leavesOnlySlow(t))
	}
	if j.any(func(t *task) bool {
		lost := !t.loss.since.IsZero() && !(t.state == waiting && (t.optional() || j.unneeded(t))) // whom the others wait for
		return lost || t.leavesNow() || !t.loc.leave.by.IsZero() && !t.state.done()
	}) {
		return
	}
	var first *task
	for _, t := range moving {
		if !j.stands(j.standIn(t)) || together(t) && !complete || j.leavesOnlySlow(t) && !j.slowMayMove(t) {
			continue
		}
		if first == nil {
			first = t
		} else if first.loc.orphan == nil || t.loc.orphan == nil {
			continue
		}
		wait, grace := j.limits.Save, max(j.limits.Save, j.limits.Stop)
		if by, _ := j.leaves(t); !by.IsZero() {
			wait, grace = min(wait, by.Sub(j.now)/4), min(grace, by.Sub(j.now)/4)
		}
		if j.leavesOnlySlow(t) && t.together() { // it has waited for that
			j.leaveContainer(t, event.CauseStraggler, grace)
			return
		}
		j.becomeLeaving(t, leaveOrder{by: j.now.Add(wait), grace: grace})
	}
}

// getStandIn is a task's stand-in. If it has none, it gets a spare, which is likely to be
// warm, or one is asked for: then, nil.
func (j *Job) getStandIn(t *task) *spare {
	if s := j.standIn(t); s != nil {
		return s
	}
	if s := j.spareFor(t); s != nil {
		s.task = t
		return s
	}
	j.askStandIn(t, false)
	return nil
}

// sealed is the best moment for those that are about to leave: all that was trained is
// saved.
func (j *Job) sealed() {
	for _, t := range j.tasks {
		if o := t.loc.leave; !o.by.IsZero() {
			o.by = j.now
			j.becomeLeaving(t, o)
		}
	}
}

// leaveContainer has a task leave its container because of what was announced.
func (j *Job) leaveContainer(t *task, c event.Cause, grace time.Duration) {
	switch {
	case t.state == stopping && t.run.stop.reason == event.StopTogether:
		j.becomeStoppingTo(t, event.StopToLeave, c)
	case t.state.active():
		j.halt(t, event.StopToLeave, c, grace)
		if t.together() { // what they save, they may have to save together
			j.restart(t, "has to leave its container", graceOf(grace), (*task).together)
		}
	default:
		j.depart(t, c)
	}
}

// depart gives up the container of a task whose attempt has ended, or that has none.
func (j *Job) depart(t *task, c event.Cause) {
	container, node := t.loc.container, t.loc.node
	if c == event.CausePreempted {
		j.notePreempted(t)
	}
	if t.state.active() {
		t.loss.why = "it was stopped in order on " + node
		if o := t.loc.orphan; o != nil && o.evicted {
			t.loss.why = "it was ended because " + o.why
		} else if o != nil {
			t.loss.why += ": " + o.why
		}
		j.noteFault(t, journal.FaultLost, 0)
		j.lost(t, c)
	} else {
		j.record(t, action.KindNote, "it leaves %s: %s", node, c)
		j.startWithout(t)
	}
	if t.loc.agentPID != 0 {
		// What it still writes is written before the next attempt starts.
		j.awaitRelease(t, container, j.limits.Leave+j.limits.LeaseExpiry)
		if t.departed == nil {
			t.departed = map[string]bool{}
		}
		t.departed[container] = true
		j.emit(action.ReleaseAgent{Container: container, Why: c.String()})
	} else {
		j.emit(action.Release{Container: container})
	}
	hadAddress := t.loc.port != 0
	j.becomeLost(t)
	if hadAddress {
		j.emit(action.Route{Cut: []string{t.name}})
	}
	j.ask(t)
}
