package core

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// lost records the loss of a task and, where its role's rule is that, brings the others down
// for a common start.
func (j *Job) lost(t *task, c Cause) {
	at := j.now
	if t.unreachable() { // nothing was heard of it since then
		at = t.loc.silent
	}
	if t.loss.since.IsZero() && t.state != surplus { // which is not waited for
		t.loss.since = at
	}
	t.history.lastLoss = j.now
	for _, o := range j.tasks {
		if o != t && o.loss.blamesPeer && o.notBefore.After(j.now) && !j.lostLately(o) { // for want of this
			j.delay(o, j.now)
		}
	}
	t.loss.cause = c
	j.markDirty(t)
	if !c.own() && c != CausePeerLost && t.run.number >= 0 {
		j.earlyOf(t).Over = true // it may have been about to go well
	}
	j.emit(Record{Task: t.name, Kind: KindLost, TookMS: j.now.Sub(at).Milliseconds(),
		Text: fmt.Sprintf("attempt %d: %s (%s)", max(t.run.number, 0), c, t.loss.why)})
	if t.together() && t.run.number >= 0 && !j.isParked(t) {
		j.restart(t, "", j.afterLoss, (*task).together)
	}
}

// restart begins a new generation: the tasks that are to be in it are stopped where
// they are and start again once all are ready. why is for the event log, as in "worker-0
// joins"; empty: tasks were lost, and whose loss was the reason is told once it is known
// (attributeFailure). grace is what each has to end, as in halt.
func (j *Job) restart(cause *task, why string, grace func(*task) time.Duration, in func(*task) bool) {
	if j.phase != assembling {
		j.generation++
		j.beginAssembling()
		if why == "" {
			j.unexplained = cause
		} else {
			j.record(nil, KindNote, "generation %d: all tasks start again because %s %s", j.generation, cause.name, why)
		}
	}
	for _, t := range j.tasks {
		if t == cause || !in(t) {
			continue
		}
		switch t.state {
		case running, lingering:
			t.loss.why = CauseRestartedAll.String()
			j.halt(t, StopTogether, CauseUnknown, grace(t))
		case succeeded:
			if t.together() { // otherwise its work is done
				j.restartSucceeded(t)
			}
		}
	}
}

// graceOf returns a grace that is the same for all tasks.
func graceOf(grace time.Duration) func(*task) time.Duration {
	return func(*task) time.Duration { return grace }
}

// afterLoss is the grace of a task with which another has worked that was lost. Who could
// only save together with that has nothing to wait for.
func (j *Job) afterLoss(t *task) time.Duration {
	if t.role.SavesTogether && j.limits.Abandon < j.limits.Stop {
		return j.limits.Abandon
	}
	return 0
}

// restartSucceeded has a task that succeeded start again with the others.
func (j *Job) restartSucceeded(t *task) {
	j.markDirty(t)
	if t.loc.container != "" {
		j.becomeReady(t)
		return
	}
	j.becomeLost(t)
	j.ask(t)
}

// halt has a task's attempt end within grace; 0: within what all get.
func (j *Job) halt(t *task, why StopReason, c Cause, grace time.Duration) {
	if grace == 0 {
		j.becomeStopping(t, stop{reason: why, cause: c})
		j.emit(Stop{Container: t.loc.container, Stack: why.stacks()})
		return
	}
	j.becomeStopping(t, stop{reason: why, cause: c, by: j.now.Add(grace)})
	j.emit(Vacate{t.loc.container, grace})
}

// lostLately reports whether a task was lost by no fault of its own a short while ago
// already, so that it had better not hurry.
func (j *Job) lostLately(t *task) bool {
	n := len(t.history.losses)
	return n > 0 && j.now.Sub(t.history.losses[n-1]) < j.limits.Calm
}

// agentLost: an agent without a connection tries to come back for as long as its lease
// lasts, and then stops its task and ends. So the task is left to it until the lease has
// expired, or its container has ended.
func (j *Job) agentLost(e AgentDisconnected) {
	if e.Orderly { // it was released
		j.endExpiry(e.Container)
	}
	heard := j.now.Add(-e.Silent)
	j.renewedLease(e.Container, heard)
	if s := j.spareByContainer(e.Container); s != nil {
		s.agentPID = 0
		j.dropSpare(s, true)
		return
	}
	t := j.hosted[e.Container]
	switch {
	case t == nil:
	case j.ending() && !e.Orderly: // it may be saving logs, and has time for that
		j.emit(Check{e.Container})
	case j.ending():
		j.agentGone(t)
	case t.state == succeeded:
		j.emit(Release{t.loc.container})
		j.clearLocation(t)
	case t.loc.orphan != nil && e.Orderly: // nothing more is reported of its container
		j.agentGone(t)
		j.loseContainer(t, CauseNodeLost, fmt.Sprintf("its agent on %s has ended, too: %s", t.loc.node, t.loc.orphan.why))
	default:
		j.becomeUnreachable(t, heard, heard.Add(j.limits.LeaseExpiry))
		j.emit(Check{e.Container})
		j.askEarly(t)
	}
}

// launchFailed: the container has been given back.
func (j *Job) launchFailed(e LaunchFailed) {
	s, t := j.spareByContainer(e.Container), j.hosted[e.Container]
	switch {
	case s != nil:
		j.dropSpare(s, false)
	case t == nil:
	case j.ending():
		j.clearLocation(t)
	default:
		j.loseContainer(t, CauseLaunch, e.Why)
	}
}

func (j *Job) containerEnded(e ContainerEnded) {
	// Of a container that was given back, YARN says so before its node has ended it.
	if e.Cause != CauseNodeLost && e.Cause != CauseReleased {
		j.endExpiry(e.Container)
	}
	if s := j.spareByContainer(e.Container); s != nil {
		j.dropSpare(s, false)
		return
	}
	t := j.hosted[e.Container]
	if t == nil {
		return
	}
	why := e.Diagnostics
	if why == "" {
		why = fmt.Sprintf("exit status %d", e.Exit)
	}
	why = strings.TrimSpace(why)
	switch {
	case e.Cause == CauseNodeLost && t.state == finishing && t.loc.agentPID != 0:
		j.finishesAsOrphan(t, why)
	case j.ending() || t.state == succeeded:
		j.releaseAgent(t.loc.container, t.loc.agentPID)
		j.clearLocation(t)
		if t.state.active() {
			j.becomeStopped(t)
		}
	case e.Cause == CauseNodeLost && t.loc.orphan != nil: // as was known; its agent has until its deadline
	case e.Cause == CauseNodeLost && !t.unreachable() && t.loc.agentPID != 0:
		j.orphaned(t, why)
	default:
		j.lostContainer(t, e.Cause, why)
	}
}

// lostContainer gives up a container that has ended, and notes what follows for the
// task.
func (j *Job) lostContainer(t *task, c Cause, why string) {
	shown := c
	if c == CauseUnknown || c == CauseOwnFault {
		shown = CauseAgentLost
	}
	if c == CauseNodeLost && t.unreachable() { // what it ran may still be there
		j.awaitExpiry(t, t.loc.container, t.loc.deadline)
	}
	if c.memory() {
		why = j.grow(t, c)
	}
	j.loseContainer(t, shown, why)
	if c.memory() && !j.ending() {
		j.charge(t)
	}
}

// memory reports whether a larger container would have done. NodeManagers limit virtual
// memory in proportion to a container's size.
func (c Cause) memory() bool { return c == CauseOutOfMemory || c == CauseVirtualLimit }

// grow has a task that its container was too small for ask for half as much again, as
// far as its role allows, and says so.
func (j *Job) grow(t *task, c Cause) string {
	before := t.memoryMB
	t.memoryMB = max(before, min(before*3/2, t.role.MemoryMaxMb))
	what, remedy := fmt.Sprintf("it needed more than the %d MB of its container", before), ""
	if c == CauseVirtualLimit {
		what = fmt.Sprintf("it reserved more virtual memory than its node allows a container of %d MB (yarn.nodemanager.vmem-pmem-ratio)", before)
		remedy = "what is reserved is not used, so have yarn.nodemanager.vmem-check-enabled set to false on the nodes; until then, "
	}
	if t.memoryMB > before {
		return fmt.Sprintf("%s; from now on it has %d", what, t.memoryMB)
	}
	return fmt.Sprintf("%s; %sgive the role more with --%s-memory, or let it grow with --%s-memory-max", what, remedy, t.role.Name, t.role.Name)
}

// moveToGrow exchanges the container of a task whose process ran out of memory for a
// larger one, where its role allows that.
func (j *Job) moveToGrow(t *task) {
	before := t.memoryMB
	t.loss.why = j.grow(t, CauseOutOfMemory)
	if t.memoryMB == before {
		return
	}
	c := t.loc.container
	j.record(t, KindNote, "%s", t.loss.why)
	j.emit(ReleaseAgent{c, "its task needs a larger container"}, Release{c})
	j.becomeLost(t)
	j.emit(Route{Cut: []string{t.name}})
	j.ask(t)
}

func (j *Job) trouble(e AgentFailed) {
	if e.DirectoryRemoved {
		j.dirRemoved = j.now
	}
	t := j.hosted[e.Container]
	if t == nil || j.ending() && (t.state != finishing || !e.DirectoryRemoved) {
		return
	}
	if e.DirectoryRemoved {
		j.evict(t, e.Detail)
		return
	}
	if e.Permanent {
		t.loss.why = e.Detail
		j.fail(t, "cannot be prepared: "+e.Detail)
		return
	}
	if e.NodeSpecific {
		j.noteTrouble(t.loc.node, t.name+": "+e.Detail, true)
	}
	c := t.loc.container
	j.loseContainer(t, CauseLaunch, e.Detail)
	j.emit(ReleaseAgent{c, "it could not prepare its task"}, Release{c})
}

// loseContainer gives a task's container up and asks for another.
func (j *Job) loseContainer(t *task, c Cause, why string) {
	t.loss.why, t.loss.exit = why, TaskExited{}
	t.loss.blamesPeer = false
	if c == CausePreempted {
		j.notePreempted(t)
	}
	if c != CausePreempted && c != CauseNodeLost { // which happen as often as the cluster likes
		t.history.losses = append(t.history.losses, j.now)
	}
	if c == CauseLaunch || c == CauseDisksFailed {
		j.noteTrouble(t.loc.node, t.name+": "+cmp.Or(why, c.String()), false)
	}
	hadAddress := t.loc.port != 0
	if t.run.number >= 0 && !t.parked {
		j.noteFault(t, FaultLost, 0)
	}
	j.lost(t, c)
	j.becomeLost(t)
	if hadAddress {
		j.emit(Route{Cut: []string{t.name}})
	}
	if n := j.within(t.history.losses); n > j.limits.Losses {
		j.fail(t, fmt.Sprintf("lost its container %s within %s; the last time: %s", times(n), j.limits.Window, why))
		return
	}
	j.ask(t)
}
