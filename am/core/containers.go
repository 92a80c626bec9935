package core

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/core/nodes"
	"holdfast/proto"
)

// ask wants a container for a task that has none: a spare one, or its stand-in, or else
// a new one; none for a task that is surplus.
func (j *Job) ask(t *task) {
	if t.surplus {
		if !t.together() && !t.loss.since.IsZero() {
			j.record(t, action.KindResized, "the others work on without it")
		}
		j.becomeSurplus(t)
		return
	}
	if s := j.spareFor(t); s != nil {
		j.useSpare(t, s)
		return
	}
	if s := j.standIn(t); s != nil {
		j.awaitStandIn(t, s)
		return
	}
	a := j.newRequest(t)
	j.becomeWaiting(t, a.Request)
	j.emit(a)
}

// newRequest is an Ask for a container for a task.
func (j *Job) newRequest(t *task) action.Ask {
	j.requests++
	a := j.demand(t)
	a.Request, a.Avoid, a.Pause = fmt.Sprintf("%s/%d", t.name, j.requests), j.avoid(), j.pause(t)
	return a
}

// demand is what a container for a task must have, and beside which others it may be.
func (j *Job) demand(t *task) action.Ask {
	return action.Ask{
		Task: t.name, Role: t.role.Name,
		MemoryMB: t.memoryMB, VCores: t.role.Vcores, GPUs: t.role.Gpus, Others: t.role.Resources,
		Apart: j.apart(t), Near: j.near(t),
	}
}

// pause is how long a task lets the scheduler be before it asks for a container. What the job
// can do without has the delay of a failure after each that it has lost.
func (j *Job) pause(t *task) time.Duration {
	vain := t.history.unneededAt.Add(j.backoff(t.history.unneeded)).Sub(j.now)
	return max(0, vain, j.pausePreempted(t))
}

// pausePreempted is how long a task whose container was preempted waits before it
// asks for another: one that is asked at once may give what it has just taken, and take it
// back. What the job needs is asked for at once the first time. The pause doubles with each
// container that is preempted sooner than Limits.Calm after the one before.
func (j *Job) pausePreempted(t *task) time.Duration {
	n, first := t.history.preempted, 5*time.Second
	if t.role.Min == 0 || t.role.Min == t.role.Count {
		n, first = n-1, time.Second
	}
	if n <= 0 {
		return 0
	}
	pause := min(first<<min(n-1, 10), j.limits.BackoffMax)
	return max(0, t.history.preemptedAt.Add(pause).Sub(j.now))
}

// notePreempted notes that the scheduler took a task's container.
func (j *Job) notePreempted(t *task) {
	if j.now.Sub(t.history.preemptedAt) > j.limits.Calm {
		t.history.preempted = 0
	}
	t.history.preempted++
	t.history.preemptedAt = j.now
}

// withdraw takes a task's Ask back, if one is outstanding.
func (j *Job) withdraw(t *task) {
	if t.request != "" {
		j.emit(action.Withdraw{Request: t.request})
		j.endRequest(t)
	}
}

func (j *Job) allocated(e event.Allocated) {
	j.noteGiven(e.Node)
	if s := j.spareByRequest(e.Request); s != nil {
		s.request, s.container, s.node = "", e.Container, e.Node
		s.deadline = j.now.Add(j.limits.Attach)
		j.emit(action.Launch{Container: e.Container})
		return
	}
	t := j.asked[e.Request]
	if t == nil {
		j.emit(action.Release{Container: e.Container})
		return
	}
	j.becomeLaunching(t, e.Container, e.Node, j.now.Add(j.limits.Attach))
	j.emit(action.Launch{Container: e.Container})
}

// found keeps such a container's task where it is. A container that no task has is
// given back.
func (j *Job) found(e event.ContainerFound) {
	t := j.hosted[e.Container]
	if t == nil {
		j.emit(action.Release{Container: e.Container})
		return
	}
	t.loc.node = e.Node
	if t.loc.orphan == nil || j.ending() || t.leavesNow() || j.past(t.loc.orphan.until) { // the last: it is to leave at once, as when its directory was removed
		return
	}
	j.endOrphan(t)
	if t.loc.leave.whateverNode() {
		return
	}
	j.becomeStaying(t)
	j.record(t, action.KindNote, "YARN has found its container on %s again, and it stays there", t.loc.node)
}

// localizing is since when a container of a task, or a spare, is known to be without its
// files.
type localizing struct {
	container string
	since     time.Time
}

// fetching has the time in which an agent must come, and that in which the job must
// start, begin when the container has its files, unless these take longer than
// Limits.Localize: then the container is given up, and counts as a loss.
func (j *Job) fetching(e event.Localizing) {
	if s := j.spareByContainer(e.Container); s != nil {
		if s.agentPID == 0 {
			j.awaitFiles(&s.files, &s.deadline, e.Container)
		}
		return
	}
	t := j.hosted[e.Container]
	if t == nil || t.loc.agentPID != 0 || t.unreachable() || j.ending() {
		return
	}
	j.filesSeen = j.now
	if j.awaitFiles(&t.loc.files, &t.loc.deadline, e.Container) {
		j.record(t, action.KindNote, "%s %s", t.loc.node, e.What)
	}
}

// awaitFiles moves a deadline, and reports whether this is the first time that it does
// for a container.
func (j *Job) awaitFiles(l *localizing, deadline *time.Time, container string) (first bool) {
	if l.container != container {
		*l, first = localizing{container, j.now}, true
	}
	if next := j.now.Add(j.limits.Attach); next.Before(l.since.Add(j.limits.Localize)) && !deadline.IsZero() {
		*deadline = next
	}
	return first
}

func (j *Job) attached(e event.AgentConnected) {
	j.peersNeeded = j.peersNeeded || e.NeedsPeers
	if s := j.spareByContainer(e.Container); s != nil && !j.ending() {
		j.spareAttached(s, e)
		return
	}
	t := j.hosted[e.Container]
	if t == nil || j.ending() && t.state != finishing {
		j.unknownAttached(e)
		j.emit(action.ReleaseAgent{Container: e.Container, Why: notNeeded})
		j.renewedByStream(e.Container)
		return
	}
	if e.Task == t.name && e.Port != 0 {
		j.rejoined(t, e)
		return
	}
	j.becomePreparing(t, e.Host, e.PID, j.now.Add(j.limits.Prepare))
	j.emit(action.Assign{Container: e.Container, Task: t.name, Port: t.port})
}

// unknownAttached takes in what an agent ran whose container nobody has told this
// application master of, and who comes too late for reconciliation: the next attempt has
// a higher number, and waits for the end of that one.
func (j *Job) unknownAttached(e event.AgentConnected) {
	if t := j.named[e.Task]; t != nil && t.run.number < e.Attempt && !t.state.active() {
		t.run.number, t.port = e.Attempt, cmp.Or(t.port, e.PeerPort)
		j.awaitExpiry(t, e.Container, j.now.Add(j.limits.LeaseExpiry))
		if t.together() {
			j.generation = max(j.generation, e.Generation+1)
		}
	}
}

// rejoined takes an agent in that was here before, and puts right what one of the two
// sides has missed.
func (j *Job) rejoined(t *task, e event.AgentConnected) {
	if t.unreachable() {
		what := fmt.Sprintf("its agent on %s is connected again", t.loc.node)
		if t.loc.orphan != nil {
			what += ", and the task moves: " + t.loc.orphan.why
		}
		j.record(t, action.KindNote, "%s", what)
	}
	j.becomeReachable(t, e)
	t.port = cmp.Or(t.port, e.PeerPort, e.Port)
	switch {
	case t.state == launching || t.state == preparing:
		j.becomeReady(t)
	case t.state.active():
		j.compareAttempts(t, e)
		if e.Stopping != nil && e.Attempt == t.run.number {
			j.continueStop(t, *e.Stopping)
		}
	}
	if t.together() && t.state.startable() && e.PeerPort != 0 && e.PeerPort != t.port { // it has not heard of that
		j.changePort(t, t.port)
	}
	if t.loc.told.asked.IsZero() { // it was not told again
		t.becomeAnswered()
	}
	switch s := t.run.stop; {
	case s.reason == "":
	case s.by.After(j.now): // it is not to get less than was promised
		j.emit(action.Vacate{Container: t.loc.container, Grace: s.by.Sub(j.now)})
	default:
		j.emit(action.Stop{Container: t.loc.container, Stack: s.reason.ShowsStack()})
	}
	j.emit(action.Route{})
}

// compareAttempts puts right what an agent that is connected again, or this application
// master, does not know of a task's attempt.
func (j *Job) compareAttempts(t *task, e event.AgentConnected) {
	unheard := e.Attempt < t.run.number || e.Attempt == t.run.number && e.TaskPID == 0 && e.Exited == nil // of this attempt
	switch {
	case e.Attempt < t.run.number && t.state == stopping && t.run.stop.reason != event.StopStalled: // and need not hear of it
		j.becomeReady(t)
	case unheard && t.state == running && j.phase == assembling: // it starts with the generation to come
		j.becomeReady(t)
	case unheard:
		j.becomeStarted(t)
		j.emit(j.startOf(t))
	case e.Exited != nil && t.together() && t.state == stopping && e.Generation < j.generation-1:
		// It ended in a generation before the one that is being stopped, whose failure
		// an application master before this one has attributed.
		j.markDirty(t)
		j.becomeReady(t)
	case e.Exited != nil:
		x := *e.Exited
		x.Container = e.Container
		j.exited(x)
	case t.run.pid == 0 && e.TaskPID != 0:
		j.taskStarted(event.TaskStarted{Container: e.Container, Attempt: e.Attempt, PID: e.TaskPID})
	}
}

func (j *Job) prepared(e event.AgentPrepared) {
	t := j.hosted[e.Container]
	if t == nil || j.ending() || t.unreachable() || t.state != preparing && !(t.awaitsPort() && e.PeerPort == t.port) { // it may say so twice
		return
	}
	for _, n := range e.Notes {
		j.record(t, action.KindNote, "%s", n)
	}
	if t.port == 0 {
		t.port, t.first = e.Port, e.Port
	} else if t.port != e.Port {
		j.record(t, action.KindNote, "port %d is taken on %s; it listens on %d there, and the others' connections are steered to it", t.port, t.loc.node, e.Port)
	}
	j.becomePrepared(t, e.Port)
	j.emit(action.Route{})
}

// apart names the containers with which one for a task must not share a node.
func (j *Job) apart(t *task) []string { return j.containersOf(t, t.role.Apart) }

// near names the containers beside which one for a task is wanted: those of the role's other
// tasks, where the role is packed.
func (j *Job) near(t *task) []string {
	return j.containersOf(t, func(o *proto.RoleSpec) bool { return t.role.Pack && o == t.role })
}

// containersOf names the containers of the other tasks of some roles, and those that stand in
// for such tasks.
func (j *Job) containersOf(t *task, some func(*proto.RoleSpec) bool) []string {
	if !slices.ContainsFunc(j.roles, some) { // as in most jobs, which may be large
		return nil
	}
	var list []string
	for _, o := range j.tasks {
		if o != t && o.loc.container != "" && some(o.role) {
			list = append(list, o.loc.container)
		}
	}
	for _, s := range j.spares {
		if s.task != nil && s.task != t && s.container != "" && some(s.task.role) {
			list = append(list, s.container)
		}
	}
	return list
}

// occupied reports whether a node has another task with which this one must not share it.
func (j *Job) occupied(t *task, node string) bool {
	return slices.ContainsFunc(j.roles, t.role.Apart) && j.any(func(o *task) bool {
		return o != t && o.loc.container != "" && o.loc.node == node && t.role.Apart(o.role)
	})
}

// noteTrouble puts a failure down to a node. One that is decisive makes it one to avoid by
// itself.
func (j *Job) noteTrouble(node, why string, decisive bool) {
	if j.nodes.Blame(j.now, node, why, decisive) {
		j.record(nil, action.KindNote, "the node %s is avoided for %s, while others have room: %s", node, j.limits.Window, why)
	}
}

// AvoidedNodes returns the nodes to which containers are brought only if no other has room, in
// the order of their names.
func (j *Job) AvoidedNodes() []nodes.Avoided {
	list := j.nodes.Avoided(j.now)
	for i, a := range list {
		if _, closes := j.nodes.Closes(a.Node); closes {
			list[i].Until = j.forgottenAt(a.Node)
		}
	}
	return list
}

// avoid names the nodes to avoid.
func (j *Job) avoid() []string {
	var names []string
	for _, a := range j.nodes.Avoided(j.now) {
		names = append(names, a.Node)
	}
	return names
}
