package core

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/core/journal"
)

// lost records the loss of a task and, where its role's rule is that, brings the others down
// for a common start.
func (j *Job) lost(t *task, c event.Cause) {
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
	if !c.OfProgram() && c != event.CausePeerLost && t.run.number >= 0 {
		j.earlyOf(t).Over = true // it may have been about to go well
	}
	j.emit(action.Record{Task: t.name, Kind: action.KindLost, TookMS: j.now.Sub(at).Milliseconds(),
		Text: fmt.Sprintf("attempt %d: %s (%s)", max(t.run.number, 0), c, t.loss.why)})
	if t.together() && (t.run.number >= 0 || j.phase == jobRunning) { // also where its first attempt has not begun
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
			j.record(nil, action.KindNote, "generation %d: all tasks start again because %s %s", j.generation, cause.name, why)
		}
	}
	for _, t := range j.tasks {
		if t == cause || !in(t) {
			continue
		}
		switch t.state {
		case running, lingering:
			t.loss.why = event.CauseRestartedAll.String()
			j.halt(t, event.StopTogether, event.CauseUnknown, grace(t))
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

// restartSucceeded has a task that succeeded start again with the others, or leave if it is
// surplus.
func (j *Job) restartSucceeded(t *task) {
	j.markDirty(t)
	if t.loc.container != "" {
		j.becomeReady(t)
		if t.surplus {
			j.dismiss(t)
		}
		return
	}
	j.becomeLost(t)
	j.ask(t)
}

// halt has a task's attempt end within grace; 0: within what all get.
func (j *Job) halt(t *task, why event.StopReason, c event.Cause, grace time.Duration) {
	s := stop{reason: why, cause: c, allowance: allowance{left: j.stopLimit()}}
	if grace == 0 {
		j.becomeStopping(t, s)
		j.emit(action.Stop{Container: t.loc.container, Stack: why.ShowsStack()})
		return
	}
	s.by = j.now.Add(grace)
	j.becomeStopping(t, s)
	j.emit(action.Vacate{Container: t.loc.container, Grace: grace})
}

// continueStop takes in that an attempt is to end, as its agent reports it. An application master
// before this one has decided that, and may not have written it down.
func (j *Job) continueStop(t *task, s event.Stopping) {
	if t.state.ongoing() {
		j.record(t, action.KindNote, "attempt %d was being stopped when this application master took over, which goes on with that", t.run.number)
		reason, cause := continued(s)
		j.becomeStopping(t, stop{reason: reason, cause: cause, by: stopsBy(s, j.now), allowance: allowance{left: j.stopLimit()}})
		if t.together() {
			j.restart(t, "was being stopped when this application master took over", graceOf(0), (*task).together)
		}
	}
	if t.state != stopping {
		return
	}
	at := &t.run.stop
	if s.KillIn <= 0 { // whatever time it was to have
		at.by = time.Time{}
	}
	if at.by.IsZero() {
		at.left = min(at.left, j.limits.Kill+s.KillIn)
	}
	at.until = time.Time{}
	j.countTime(t)
}

// continued is what follows the end of the attempt now. The job goes on as far as this
// application master knows, also where the one before it had begun to end it.
func continued(s event.Stopping) (event.StopReason, event.Cause) {
	switch s.Reason {
	case event.StopToLeave:
		return s.Reason, s.Cause
	case event.StopStalled, event.StopRequested:
		return s.Reason, event.CauseUnknown
	}
	return event.StopTogether, event.CauseUnknown
}

// stopsBy is until when the attempt has time to end; zero: that is over.
func stopsBy(s event.Stopping, now time.Time) time.Time {
	if s.KillIn <= 0 {
		return time.Time{}
	}
	return now.Add(s.KillIn)
}

// stopLimit is within which time an attempt ends that is stopped, unless it hangs in the kernel.
func (j *Job) stopLimit() time.Duration { return j.limits.Stop + j.limits.Kill }

// giveUpStopped gives up a task's container, in which an attempt does not end that was stopped,
// and killed.
func (j *Job) giveUpStopped(t *task) {
	s := t.run.stop
	t.loss.exit = event.TaskExited{}
	t.loss.why = fmt.Sprintf("attempt %d was stopped on %s, and has not ended within %s of SIGKILL: a process that waits in the kernel, as for a disk or a driver that does not answer, cannot be ended",
		t.run.number, t.loc.node, j.limits.Kill)
	if t.run.pid == 0 {
		t.loss.why = fmt.Sprintf("its agent on %s was told to start attempt %d, and then to stop it, and has said nothing of it", t.loc.node, t.run.number)
	}
	if s.reason == event.StopStalled && j.stalledForGood(t) {
		return
	}
	j.noteTrouble(t.loc.node, t.name+": "+t.loss.why, true)
	j.loseConnected(t, t.loss.why, "the task's process does not end")
	if s.reason == event.StopStalled && !j.ending() {
		t.loss.suspectsServices = true
		j.charge(t)
	}
}

// giveUpSilent gives up a task's container, whose agent is connected and has not answered what
// it was told. Where the task is done, nothing of it is there any longer.
func (j *Job) giveUpSilent(t *task) {
	why := fmt.Sprintf("its agent on %s was told to %s, and has not answered within %s, although it is connected", t.loc.node, t.loc.told.what, j.limits.Answer)
	if t.state == succeeded {
		j.record(t, action.KindNote, "%s; its container is given back", why)
		j.emit(action.Release{Container: t.loc.container})
		j.clearLocation(t)
		return
	}
	j.noteTrouble(t.loc.node, t.name+": "+why, false)
	j.loseConnected(t, why, "it does not answer")
}

// loseConnected gives up a task's container whose agent is connected, and is told to end. What
// it may still run can save nothing any longer once its lease has expired: from then on, it is
// not renewed.
func (j *Job) loseConnected(t *task, why, toAgent string) {
	c := t.loc.container
	j.awaitRelease(t, c, j.limits.LeaseExpiry)
	j.emit(action.ReleaseAgent{Container: c, Why: toAgent}, action.Release{Container: c})
	j.loseContainer(t, event.CauseAgentLost, why)
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
func (j *Job) agentLost(e event.AgentDisconnected) {
	if e.Orderly || j.preempted(e.Container) { // it was released, or its node has ended it
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
		j.emit(action.Check{Container: e.Container})
	case j.ending():
		j.agentGone(t)
	case t.state == succeeded:
		j.emit(action.Release{Container: t.loc.container})
		j.clearLocation(t)
	case t.loc.orphan != nil && e.Orderly: // nothing more is reported of its container
		j.agentGone(t)
		j.loseContainer(t, event.CauseNodeLost, fmt.Sprintf("its agent%s has ended, too: %s", t.onNode(), t.loc.orphan.why))
	default:
		j.becomeUnreachable(t, heard, heard.Add(j.limits.LeaseExpiry))
		j.emit(action.Check{Container: e.Container})
		j.askEarly(t)
	}
}

// launchFailed: the container has been given back.
func (j *Job) launchFailed(e event.LaunchFailed) {
	s, t := j.spareByContainer(e.Container), j.hosted[e.Container]
	switch {
	case s != nil:
		j.dropSpare(s, false)
	case t == nil:
	case j.ending():
		j.clearLocation(t)
	default:
		j.loseContainer(t, event.CauseLaunch, e.Why)
	}
}

func (j *Job) containerEnded(e event.ContainerEnded) {
	// Of a container that was given back, or preempted, YARN says so before its node has ended it.
	if e.Cause != event.CauseNodeLost && e.Cause != event.CauseReleased && e.Cause != event.CausePreempted {
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
	case e.Cause == event.CauseNodeLost && t.state == finishing && t.loc.agentPID != 0:
		j.finishesAsOrphan(t, why)
	case j.ending() || t.state == succeeded:
		j.releaseAgent(t.loc.container, t.loc.agentPID)
		j.clearLocation(t)
		if t.state.active() {
			j.becomeStopped(t)
		}
	case e.Cause == event.CauseNodeLost && t.loc.orphan != nil: // as was known; its agent has until its deadline
	case e.Cause == event.CauseNodeLost && !t.unreachable() && t.loc.agentPID != 0:
		j.orphaned(t, why)
	default:
		j.lostContainer(t, e.Cause, why)
	}
}

// lostContainer gives up a container that has ended, and notes what follows for the
// task.
func (j *Job) lostContainer(t *task, c event.Cause, why string) {
	shown := c
	if c == event.CauseUnknown || c == event.CauseOwnFault {
		shown = event.CauseAgentLost
	}
	if c == event.CauseNodeLost && t.unreachable() { // what it ran may still be there
		j.awaitExpiry(t, t.loc.container, t.loc.deadline)
	}
	if c == event.CausePreempted && t.loc.agentPID != 0 && t.state.active() {
		j.awaitPreempted(t)
	}
	if c.OfMemory() {
		why = j.grow(t, c)
	}
	charged := c.OfMemory() && !j.unneeded(t)
	j.loseContainer(t, shown, why)
	if charged && !j.ending() {
		j.charge(t)
	}
}

// awaitPreempted waits for the end of an agent in a container that the ResourceManager takes: it
// says so at once, and the node ends what runs there at its next heartbeat. By then the agent is
// told, which may be sooner.
func (j *Job) awaitPreempted(t *task) {
	c := t.loc.container
	j.awaitRelease(t, c, j.limits.LeaseExpiry)
	r := t.releases[c]
	r.preempted = true
	t.releases[c] = r
	j.emit(action.ReleaseAgent{Container: c, Why: "its container is preempted"})
}

// preempted reports whether a container was, so that its agent does not come back once it has
// lost its connection.
func (j *Job) preempted(container string) bool {
	return j.anyExpiring && j.any(func(t *task) bool { return t.releases[container].preempted })
}

// grow has a task that its container was too small for ask for half as much again, as
// far as its role allows, and says so.
func (j *Job) grow(t *task, c event.Cause) string {
	before := t.memoryMB
	t.memoryMB = max(before, min(before*3/2, t.role.MemoryMaxMb))
	what, remedy := fmt.Sprintf("it needed more than the %d MB of its container", before), ""
	if c == event.CauseVirtualLimit {
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
	t.loss.why = j.grow(t, event.CauseOutOfMemory)
	if t.memoryMB == before {
		return
	}
	c := t.loc.container
	j.record(t, action.KindNote, "%s", t.loss.why)
	j.emit(action.ReleaseAgent{Container: c, Why: "its task needs a larger container"}, action.Release{Container: c})
	j.becomeLost(t)
	j.emit(action.Route{Cut: []string{t.name}})
	j.ask(t)
}

func (j *Job) trouble(e event.AgentFailed) {
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
	j.loseContainer(t, event.CauseLaunch, e.Detail)
	j.emit(action.ReleaseAgent{Container: c, Why: "it could not prepare its task"}, action.Release{Container: c})
}

// unneeded reports whether the job can do now without a task that has no attempt: the others
// work without it, or would, as there are as many as its role needs.
func (j *Job) unneeded(t *task) bool {
	switch {
	case t.state.active() || t.state.done() || t.optional(): // the last is given up at some time
		return false
	case t.surplus || j.isParked(t):
		return true
	case least(t.role) >= t.role.Count:
		return false
	}
	there, needed := int32(0), least(t.role)
	if t.together() {
		needed = j.membersLeast()(t.role)
	}
	for _, o := range j.tasks {
		if o != t && o.role == t.role && !o.surplus && !o.unreachable() && (o.state.active() || o.state.startable()) {
			there++
		}
	}
	return multipleOf(t.role, there) >= needed
}

// noteUnneeded notes that an unneeded task has lost its container. However often that happens,
// another is asked for, after a while.
func (j *Job) noteUnneeded(t *task) {
	if j.now.Sub(t.history.unneededAt) > j.limits.Calm {
		t.history.unneeded = 0
	}
	t.history.unneeded++
	t.history.unneededAt = j.now
}

// startWithout has the others start again of whose generation a task is a member that gives its
// container up before its attempt has begun: they would wait for it, however long it takes to get
// another, or nobody would work.
func (j *Job) startWithout(t *task) {
	if t.together() && !t.parked && j.phase == jobRunning {
		j.restart(t, "gave its container up before it started", j.afterLoss, (*task).together)
	}
}

// loseContainer gives a task's container up and asks for another.
func (j *Job) loseContainer(t *task, c event.Cause, why string) {
	t.loss.why, t.loss.exit = why, event.TaskExited{}
	t.loss.blamesPeer = false
	unneeded, without := j.unneeded(t), t.parked || t.surplus
	switch {
	case c == event.CausePreempted:
		j.notePreempted(t)
	case c == event.CauseNodeLost: // like these, as often as the cluster likes
	case !unneeded:
		t.history.losses = append(t.history.losses, j.now)
	default:
		j.noteUnneeded(t)
		if !without {
			t.loss.why += "; not counted, since the job can do without it"
		}
	}
	if c == event.CauseLaunch || c == event.CauseDisksFailed {
		j.noteTrouble(t.loc.node, t.name+": "+cmp.Or(why, c.String()), false)
	}
	hadAddress := t.loc.port != 0
	if unneeded && without { // nobody notices
		t.loss.cause = c
		j.record(t, action.KindNote, "its container on %s is lost, and the others work without it: %s (%s)", t.loc.node, c, why)
		j.startWithout(t)
	} else {
		if t.run.number >= 0 && !t.parked {
			j.noteFault(t, journal.FaultLost, 0)
		}
		j.lost(t, c)
	}
	j.becomeLost(t)
	if hadAddress {
		j.emit(action.Route{Cut: []string{t.name}})
	}
	if n := j.within(t.history.losses); n > j.limits.Losses {
		j.fail(t, fmt.Sprintf("lost its container %s within %s; the last time: %s", times(n), j.limits.Window, why))
		return
	}
	j.ask(t)
}
