package core

import (
	"fmt"
	"slices"
	"time"

	"holdfast/proto"
)

// Some losses are announced: the scheduler says which containers it will take
// back, and which nodes will be taken out of service. Others are losses to YARN
// only: where a NodeManager alone is lost, what it ran goes on. Such tasks leave in
// order: the attempt is stopped with time to save, preferably just after a
// checkpoint was sealed, its agent is sent home, and only then does the next
// attempt start, elsewhere. A task whose node closes, or has lost its NodeManager,
// keeps running until a container elsewhere, its stand-in, has an agent and a warm
// interpreter, where there is one to be. Off a node that closes they move one by one.

// preemptionWarned gives back what the scheduler wants. Where others would do as
// well as the containers that it names, idle ones go first.
func (j *Job) preemptionWarned(e PreemptionWarned) {
	if j.ending() {
		return
	}
	j.thriftyUntil = j.now.Add(j.limits.SpareHoldoff)
	for _, c := range e.Containers {
		if s := j.spareByContainer(c); s != nil {
			j.giveUpSpare(s)
			j.record(nil, KindNote, "the scheduler wants the spare container on %s back, and gets it", s.node)
			continue
		}
		t := j.Hosted(c)
		if t == nil || t.wanted || t.moving != CauseUnknown || t.State == proto.TaskState_TASK_STATE_SUCCEEDED {
			continue
		}
		if s := j.idleFor(t); s != nil && !e.Strict {
			j.giveUpSpare(s)
			j.record(nil, KindNote, "the scheduler wants the container of %s back, and gets the spare one on %s in its place", t.Name, s.node)
			continue
		}
		if by := j.now.Add(min(j.limits.Save, e.Within/2)); t.leaveBy.IsZero() || by.Before(t.leaveBy) { // it may move for another reason
			t.leaveBy = by
		}
		t.grace, t.wanted = e.Within/4, true
		j.record(t, KindNote, "the scheduler takes its container on %s back within %s; it is stopped in order before that", t.Node, e.Within)
	}
}

// preemptionOver leaves those tasks where they are that have not been told to stop.
func (j *Job) preemptionOver(e PreemptionCanceled) {
	for _, c := range e.Containers {
		if t := j.Hosted(c); t != nil && t.wanted && t.moving == CauseUnknown && !j.ending() {
			t.stay()
			j.record(t, KindNote, "the scheduler does not want its container on %s back any longer (%s); it stays there", t.Node, e.Why)
		}
	}
}

// stay takes back that a task is to leave its container at a certain time.
func (t *Task) stay() { t.leaveBy, t.grace, t.wanted = time.Time{}, 0, false }

// idleFor is a spare for any task that frees as much as a task's container.
func (j *Job) idleFor(t *Task) *spare {
	i := slices.IndexFunc(j.spares, func(s *spare) bool { return s.task == nil && s.container != "" && s.memoryMB >= t.memoryMB })
	if i < 0 {
		return nil
	}
	return j.spares[i]
}

// closing is a node that is taken out of service.
type closing struct {
	until time.Time // zero: not known
	told  bool      // in the job's story
}

// nodeLeaving begins to move tasks off a node.
func (j *Job) nodeLeaving(e NodeDecommissioning) {
	c := closing{told: j.closing[e.Node].told}
	if e.Within > 0 {
		c.until = j.now.Add(e.Within)
	}
	defer func() { j.closing[e.Node] = c }()
	affected := 0
	for _, t := range j.tasks {
		if t.Node == e.Node && t.Container != "" {
			affected++
		}
	}
	if c.told || affected == 0 && !e.HostsAM || j.ending() {
		return
	}
	c.told = true
	when := ""
	if e.Within > 0 {
		when = " within " + e.Within.String()
	}
	what := fmt.Sprintf("its %d of the job's tasks are moved", affected)
	if e.HostsAM {
		// To end before it must would count as one of the attempts that YARN allows.
		what += ", and the application master there is followed by another when the node goes"
	}
	j.record(nil, KindNote, "%s is taken out of service%s; %s", e.Node, when, what)
}

// nodeStays takes that back.
func (j *Job) nodeStays(e NodeRecommissioned) {
	told := j.closing[e.Node].told
	delete(j.closing, e.Node)
	for _, t := range j.tasks {
		if t.Node == e.Node && t.moving == CauseUnknown && !t.wanted {
			t.stay()
		}
	}
	if told {
		j.record(nil, KindNote, "%s is in service again", e.Node)
	}
}

// closes tells whether a node is taken out of service, and by when what runs on
// it should be gone; zero: no time is known.
func (j *Job) closes(node string) (by time.Time, is bool) {
	if len(j.closing) == 0 { // nearly always, and it is asked of each task at each step
		return time.Time{}, false
	}
	c, is := j.closing[node]
	if c.until.IsZero() {
		return c.until, is
	}
	return c.until.Add(-j.limits.Stop - j.limits.Leave), is
}

// orphan is a container that YARN has given up together with its NodeManager,
// while its agent is there and renews its lease.
type orphan struct {
	until time.Time // its task has to leave
	why   string    // YARN gave it up
}

// orphaned has a task move out of such a container in order, as off a node that
// closes, and together with the others that are there.
func (j *Job) orphaned(t *Task, why string) {
	j.setOrphan(t, j.now.Add(j.limits.Orphan), why)
	for _, o := range j.tasks {
		if o.orphan != nil && o.moving == CauseUnknown && !o.wanted {
			o.stay() // it waits for this one
		}
	}
	j.record(t, KindNote, "YARN has lost its container on %s (%s), and it still runs there; it moves", t.Node, why)
}

// oust has a task leave at once a container whose directory was removed: a
// NodeManager that was restarted without its state does that to what still runs
// there, spares included. What the task saves goes nowhere, and others that save with
// it fail.
func (j *Job) oust(t *Task, why string) {
	j.setOrphan(t, j.now, why)
	t.lastLoss = j.now
	for _, s := range slices.Clone(j.spares) {
		if s.container != "" && s.node == t.Node {
			j.giveUpSpare(s)
		}
	}
	j.record(t, KindNote, "%s; it leaves at once", why)
}

// oustedLately tells whether what tasks saved together may be in pieces, because one
// lost its directory.
func (j *Job) oustedLately() bool {
	return !j.ousted.IsZero() && j.now.Sub(j.ousted) < j.limits.PeerWindow
}

func (j *Job) setOrphan(t *Task, until time.Time, why string) {
	if t.orphan == nil {
		j.orphans++
	}
	t.orphan = &orphan{until, why}
}

// onLost tells whether a node has an orphan: spares there are lost, too, though
// that may not have been told yet.
func (j *Job) onLost(node string) bool {
	return j.orphans > 0 && j.any(func(t *Task) bool { return t.Node == node && t.orphan != nil })
}

// leaves tells whether a task has to leave the node that it is on, and by when it
// should have; zero: no time is known.
func (j *Job) leaves(t *Task) (by time.Time, is bool) {
	by, is = j.closes(t.Node)
	if t.orphan != nil && (by.IsZero() || t.orphan.until.Before(by)) {
		return t.orphan.until, true
	}
	return by, is
}

// vacate moves the tasks that must leave their containers, as far as it is time.
func (j *Job) vacate() {
	for _, s := range slices.Clone(j.spares) {
		_, here := j.closes(s.node)
		needed := s.task == nil || s.task.unreachable()
		if !needed {
			_, needed = j.leaves(s.task)
		}
		if here && s.container != "" || !needed {
			j.giveUpSpare(s)
		}
	}
	var moving []*Task // that run and wait for their turn
	for _, t := range j.busy {
		by, leaves := j.leaves(t)
		why := CauseNodeDecommissioned
		if t.orphan != nil {
			why = CauseNodeLost
		}
		switch {
		case t.Container == "" || t.unreachable() || t.moving != CauseUnknown:
		case t.State == proto.TaskState_TASK_STATE_SUCCEEDED || t.State == proto.TaskState_TASK_STATE_FAILED:
		case !t.leaveBy.IsZero() && (t.State != proto.TaskState_TASK_STATE_RUNNING || !t.leaveBy.After(j.now)):
			if !leaves {
				why = CausePreempted
			}
			j.leaveContainer(t, why)
		case leaves && t.State != proto.TaskState_TASK_STATE_RUNNING,
			leaves && !by.IsZero() && !by.After(j.now):
			t.grace = j.limits.Stop
			j.leaveContainer(t, why)
		case leaves && !t.stopping:
			moving = append(moving, t)
		}
	}
	j.moveNext(moving)
}

// moveNext gets a stand-in for each of the tasks that must move, and has the
// next one move: tasks that restart together do it together, and so do orphans,
// which have little time; others one by one.
func (j *Job) moveNext(moving []*Task) {
	if len(moving) == 0 {
		return
	}
	together := func(t *Task) bool { return t.orphan != nil || t.together() }
	complete := true // all that move together have their stand-ins
	for _, t := range moving {
		s := j.standIn(t)
		if s == nil {
			if s = j.spareFor(t); s != nil { // any, and likely a warm one
				s.task = t
			} else {
				j.askStandIn(t, false)
			}
		}
		complete = complete && (j.stands(s) || !together(t))
	}
	if j.any(func(t *Task) bool { return !t.lostAt.IsZero() || !t.leaveBy.IsZero() || t.moving != CauseUnknown }) {
		return
	}
	var first *Task
	for _, t := range moving {
		if !j.stands(j.standIn(t)) || together(t) && !complete {
			continue
		}
		if first == nil {
			first = t
		} else if first.orphan == nil || t.orphan == nil {
			continue
		}
		wait := j.limits.Save
		t.grace = max(j.limits.Save, j.limits.Stop)
		if by, _ := j.leaves(t); !by.IsZero() {
			wait = min(wait, by.Sub(j.now)/4)
			t.grace = min(t.grace, by.Sub(j.now)/4)
		}
		t.leaveBy = j.now.Add(wait)
	}
}

// sealed is the best moment for those who are about to leave: all that was
// trained is saved.
func (j *Job) sealed() {
	for _, t := range j.tasks {
		if !t.leaveBy.IsZero() {
			t.leaveBy = j.now
		}
	}
}

// leaveContainer has a task leave its container because of what was announced.
func (j *Job) leaveContainer(t *Task, c Cause) {
	t.moving, t.hung = c, false
	switch {
	case t.State == proto.TaskState_TASK_STATE_RUNNING && t.stopping: // for another reason
	case t.State == proto.TaskState_TASK_STATE_RUNNING:
		j.halt(t, t.grace)
		if t.together() { // what they save, they may have to save together
			j.regroup(t, "has to leave its container", t.grace, (*Task).together)
		}
	default:
		j.depart(t)
	}
}

// depart gives up the container of a task that has stopped, or had not started.
func (j *Job) depart(t *Task) {
	container, node := t.Container, t.Node
	if t.State == proto.TaskState_TASK_STATE_RUNNING {
		t.Why = "it was stopped in order on " + node
		if t.orphan != nil {
			t.Why += ": " + t.orphan.why
		}
		j.noteFault(t, FaultLost, 0)
		j.lost(t, t.moving)
	} else {
		j.record(t, KindNote, "it leaves %s: %s", node, t.moving)
	}
	if t.AgentPID != 0 {
		// What it still writes is written before the next attempt starts.
		j.drain(t, container, j.now.Add(j.limits.Leave+j.limits.LeaseExpiry))
		j.do(ReleaseAgent{container, t.moving.String()})
	} else {
		j.do(Release{container})
	}
	hadAddress := t.RealPort != 0
	j.forget(t)
	if hadAddress {
		j.do(Route{Cut: []string{t.Name}})
	}
	j.ask(t)
}
