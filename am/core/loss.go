package core

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/proto"
)

// exited decides what the end of an attempt means.
func (j *Job) exited(e TaskExited) {
	t := j.Hosted(e.Container)
	if t == nil || e.Attempt != t.Attempt || t.State == proto.TaskState_TASK_STATE_SUCCEEDED {
		return
	}
	t.PID = 0
	if e.Step != 0 {
		t.step = e.Step
	}
	if j.ending() {
		j.exitedAtEnd(t, e)
		return
	}
	hung := t.hung && e.Stopped
	t.hung = false
	if hung {
		j.endedHung(t, e)
		return
	}
	if e.Signal == 0 && e.Code != 0 && !e.CommandMissing && !e.OutOfMemory && j.oustedLately() {
		e.PeerLost = true // if it is: what they saved together is in pieces
	}
	if t.stopping { // because all restart together, or it moves
		t.stopping = false
		t.unsafe = true // it may have been saving
		if t.moving != CauseUnknown {
			j.depart(t)
			return
		}
		t.State = proto.TaskState_TASK_STATE_READY
		if t.together() {
			j.endedStopping(t, e)
		}
		return
	}
	if e.Code == 0 && e.Signal == 0 && !t.service() {
		t.State = proto.TaskState_TASK_STATE_SUCCEEDED
		t.Why = ""
		j.record(t, KindEnded, "attempt %d ended with exit code 0", t.Attempt)
		if !t.together() {
			j.do(ReleaseAgent{t.Container, "its task is done"})
		}
		return
	}
	t.Tail, t.Why, t.failing = e.Tail, describeExit(e), e
	if e.Stopped { // by a master that was lost before it wrote down why
		j.lost(t, CauseRestartedAll)
		t.State = proto.TaskState_TASK_STATE_RESTARTING
		return
	}
	if e.CommandMissing {
		j.fail(t, "its command cannot be run: "+e.Detail)
		return
	}
	t.doubt(e)
	j.lost(t, exitCause(e))
	if j.ending() {
		return
	}
	t.State = proto.TaskState_TASK_STATE_RESTARTING
	if e.OutOfMemory {
		j.charge(t)
		if !j.ending() && t.State == proto.TaskState_TASK_STATE_RESTARTING {
			j.moveToGrow(t)
		}
		return
	}
	if e.PeerLost && t.together() {
		j.noteFault(t, FaultPeer, e.AtMS)
		return
	}
	if e.PeerLost {
		// Whether it was a peer is decided when another's loss is known.
		t.blamed = true
		if j.again(t) || !j.peerLost(t) {
			t.notUntil = j.now.Add(j.limits.Settle)
		}
		return
	}
	j.charge(t)
}

func exitCause(e TaskExited) Cause {
	switch {
	case e.OutOfMemory:
		return CauseOutOfMemory
	case e.PeerLost:
		return CausePeerLost
	default:
		return CauseOwnFault
	}
}

func describeExit(e TaskExited) string {
	var s string
	switch {
	case e.Error != "" && e.Signal != 0 && e.Detail != "":
		s = e.Detail + ": " + e.Error
	case e.Error != "":
		s = e.Error
	case e.Detail != "":
		s = e.Detail
	case e.Signal != 0:
		s = fmt.Sprintf("ended by signal %d", e.Signal)
	default:
		s = fmt.Sprintf("exit code %d", e.Code)
	}
	if e.Advice != "" {
		s += "; " + e.Advice
	}
	return s
}

// lost records the loss of a task and, where its role says so, brings the
// others down for a common start.
func (j *Job) lost(t *Task, c Cause) {
	at := j.now
	if t.unreachable() { // nothing was heard of it since then
		at = t.silent
	}
	if t.lostAt.IsZero() {
		t.lostAt = at
	}
	t.lastLoss = j.now
	for _, o := range j.tasks {
		if o != t && o.blamed && o.notUntil.After(j.now) && !j.again(o) { // for want of this
			o.notUntil = j.now
		}
	}
	t.Cause = c
	t.unsafe = true
	if c != CauseOwnFault && c != CausePeerLost && t.Attempt >= 0 {
		j.earlyOf(t).Over = true // it may have been about to go well
	}
	j.do(Record{Task: t.Name, Kind: KindLost, TookMS: j.now.Sub(at).Milliseconds(),
		Text: fmt.Sprintf("attempt %d: %s (%s)", max(t.Attempt, 0), c, t.Why)})
	if t.together() && t.Attempt >= 0 {
		j.restartAll(t)
	}
}

// restartAll begins a new generation of the tasks that restart together.
func (j *Job) restartAll(cause *Task) {
	j.restart(cause, (*Task).together)
}

// restart begins a new generation: the tasks that are to be in it are stopped
// where they are and start again once all are ready.
func (j *Job) restart(cause *Task, in func(*Task) bool) {
	j.regroup(cause, "was lost", 0, in)
}

// regroup does the same, and says why. With grace, who is stopped has that to save.
func (j *Job) regroup(cause *Task, why string, grace time.Duration, in func(*Task) bool) {
	if !j.gathering {
		j.generation++
		j.gathering, j.since, j.enough = true, j.now, time.Time{}
		j.record(nil, KindNote, "generation %d: all tasks start again because %s %s", j.generation, cause.Name, why)
	}
	for _, t := range j.tasks {
		if t == cause || !in(t) {
			continue
		}
		switch t.State {
		case proto.TaskState_TASK_STATE_RUNNING:
			if !t.stopping && !t.hung {
				t.Why = CauseRestartedAll.String()
				j.halt(t, grace)
			}
		case proto.TaskState_TASK_STATE_SUCCEEDED:
			if !t.together() {
				break // its work is done
			}
			t.State = proto.TaskState_TASK_STATE_READY
			t.unsafe = true
			if t.Container == "" {
				j.ask(t)
			}
		}
	}
}

// halt has a task's attempt end within grace; 0: within what all get.
func (j *Job) halt(t *Task, grace time.Duration) {
	t.stopping, t.stopBy = true, time.Time{}
	if grace == 0 {
		j.do(Stop{Container: t.Container})
		return
	}
	t.stopBy = j.now.Add(grace)
	j.do(Vacate{t.Container, grace})
}

// charge takes in that a task has failed. Whether it was the first is decided later
// where others ended with it.
func (j *Job) charge(t *Task) {
	if t.together() {
		j.noteFault(t, FaultOwn, t.failing.AtMS)
		return
	}
	j.countFailure(t)
}

// countFailure counts a failure against a task and sets its back-off, or gives the
// job up.
func (j *Job) countFailure(t *Task) {
	t.failures = append(t.failures, j.now)
	failures := j.failuresWith(t)
	n := j.within(failures)
	if j.failsAlike(t) {
		j.fail(t, fmt.Sprintf("failed twice, each time soon and in the same way, and has never made a step: %s", t.Why))
		return
	}
	if n > j.restarts {
		if t.together() {
			j.fail(t, fmt.Sprintf("has failed, and the job with it %s; it is restarted %s (--restarts %d); this time: %s", times(n), times(j.restarts), j.restarts, t.Why))
			return
		}
		j.fail(t, fmt.Sprintf("failed %s; it is restarted %s (--restarts %d); the last time: %s", times(n), times(j.restarts), j.restarts, t.Why))
		return
	}
	n = j.inARow(failures)
	if wait := j.backoff(n); wait > 0 {
		t.notUntil = j.now.Add(wait)
		if t.together() {
			j.record(t, KindNote, "the tasks failed %s in quick succession, this time by it: the next start waits for %s", times(n), wait)
			return
		}
		j.record(t, KindNote, "it failed %s in quick succession: its next attempt waits for %s", times(n), wait)
	}
}

// inARow counts the last failures that followed each other closely. After an
// attempt that was at work for a while, the next has nothing to wait for.
func (j *Job) inARow(failures []time.Time) int {
	n := len(failures)
	for i := n - 1; i > 0; i-- {
		if failures[i].Sub(failures[i-1]) >= j.limits.Calm {
			return n - i
		}
	}
	return n
}

// backoff is nothing for a first failure, then 1, 2, 4... seconds.
func (j *Job) backoff(n int) time.Duration {
	if n <= 1 {
		return 0
	}
	if n > 10 {
		return j.limits.BackoffMax
	}
	return min(time.Second<<(n-2), j.limits.BackoffMax)
}

func times(n int) string {
	switch n {
	case 0:
		return "not at all"
	case 1:
		return "once"
	case 2:
		return "twice"
	default:
		return fmt.Sprintf("%d times", n)
	}
}

// optional tells whether the task never decides how the job goes.
func (t *Task) optional() bool {
	return t.Role.Completion == proto.CompletionRule_COMPLETION_RULE_OPTIONAL
}

// unjustBlame looks at a task that is about to start again after it blamed a
// peer: if no other task was lost near its exit, the failure is its own.
func (j *Job) unjustBlame(t *Task) bool {
	if !t.blamed {
		return false
	}
	t.blamed = false
	if !j.peerLost(t) {
		j.charge(t)
		return t.notUntil.After(j.now) || j.ending() || t.State == proto.TaskState_TASK_STATE_FAILED
	}
	// Tasks that only ever blame each other must come to an end, too.
	t.losses = append(t.losses, j.now)
	if n := j.within(t.losses); n > j.limits.Losses {
		j.fail(t, fmt.Sprintf("ended because of a lost peer, or lost its container, %s within %s; the last time: %s", times(n), j.limits.Window, t.Why))
	}
	return j.ending() || t.State == proto.TaskState_TASK_STATE_FAILED
}

// again tells whether a task was lost by no fault of its own a short while ago
// already, so that it had better not hurry.
func (j *Job) again(t *Task) bool {
	n := len(t.losses)
	return n > 0 && j.now.Sub(t.losses[n-1]) < j.limits.Calm
}

// peerLost tells whether another task was lost near the exit of one.
func (j *Job) peerLost(t *Task) bool {
	return slices.ContainsFunc(j.tasks, func(o *Task) bool {
		return o != t && !o.lastLoss.IsZero() && t.lastLoss.Sub(o.lastLoss) < j.limits.PeerWindow
	})
}

// serviceDown tells whether a task that others depend on is down. Services that
// blame each other must not wait for each other.
func (j *Job) serviceDown(except *Task) bool {
	return slices.ContainsFunc(j.services, func(t *Task) bool {
		return t != except && t.notRunning() && (!except.service() || !t.blamed)
	})
}

// unreachable tells whether its agent was connected and is not any longer.
func (t *Task) unreachable() bool { return !t.silent.IsZero() }

func (t *Task) notRunning() bool { return t.State != proto.TaskState_TASK_STATE_RUNNING }

func (t *Task) service() bool {
	return t.Role.Completion == proto.CompletionRule_COMPLETION_RULE_SERVICE
}

// agentLost: an agent without a connection tries to come back for as long as
// its lease lasts, and then stops its task and ends. So the task is left to it
// until that is surely over, or its container has ended.
func (j *Job) agentLost(e AgentDisconnected) {
	if e.Orderly { // it was sent home
		j.endDrain(e.Container)
	}
	j.drainOn(e.Container, j.now.Add(-e.Silent))
	if s := j.spareByContainer(e.Container); s != nil {
		s.agentPID = 0
		j.dropSpare(s, true)
		return
	}
	t := j.Hosted(e.Container)
	if t == nil {
		return
	}
	t.AgentPID = 0
	switch {
	case j.ending():
		t.PID, t.prepared = 0, false
	case t.State == proto.TaskState_TASK_STATE_SUCCEEDED:
		j.do(Release{t.Container})
		j.forget(t)
	case t.orphan != nil && e.Orderly: // nothing more is told of its container
		j.loseContainer(t, CauseNodeLost, fmt.Sprintf("its agent on %s has ended, too: %s", t.Node, t.orphan.why))
	default:
		t.silent = j.now.Add(-e.Silent)
		t.deadline = t.silent.Add(j.limits.LeaseExpiry)
		j.do(Check{e.Container})
		j.askEarly(t)
	}
}

// drainOn waits longer for a container that was given up and whose agent was
// heard after that: its lease has begun again.
func (j *Job) drainOn(container string, heard time.Time) {
	if !j.drains {
		return
	}
	for _, t := range j.tasks {
		if until, ok := t.draining[container]; ok && until.Before(heard.Add(j.limits.LeaseExpiry)) {
			j.drain(t, container, heard.Add(j.limits.LeaseExpiry))
		}
	}
}

// drain notes that a task's attempt may still run in a container.
func (j *Job) drain(t *Task, container string, until time.Time) {
	if t.draining == nil {
		t.draining = map[string]time.Time{}
	}
	t.draining[container] = until
	j.drains = true
}

// endDrain notes that nothing runs in a container any longer.
func (j *Job) endDrain(container string) {
	if !j.drains {
		return
	}
	for _, t := range j.tasks {
		delete(t.draining, container)
	}
}

func (j *Job) containerEnded(e ContainerEnded) {
	if e.Cause != CauseNodeLost {
		j.endDrain(e.Container)
	}
	if s := j.spareByContainer(e.Container); s != nil {
		j.dropSpare(s, false)
		return
	}
	t := j.Hosted(e.Container)
	if t == nil {
		return
	}
	why := e.Diagnostics
	if why == "" {
		why = fmt.Sprintf("exit status %d", e.Exit)
	}
	if e.Cause == CauseNodeLost && !t.finishBy.IsZero() && t.AgentPID != 0 { // it may go on, as at any time
		if t.orphan == nil { // else that is known
			j.setOrphan(t, j.now.Add(j.limits.Orphan), strings.TrimSpace(why))
			j.record(t, KindNote, "YARN has lost its container on %s (%s), and it still runs there", t.Node, t.orphan.why)
		}
		return
	}
	if j.ending() || t.State == proto.TaskState_TASK_STATE_SUCCEEDED {
		j.sendHome(t.Container, t.AgentPID)
		j.forget(t)
		return
	}
	cause := e.Cause
	if cause == CauseUnknown || cause == CauseOwnFault {
		cause = CauseAgentLost
	}
	if e.Cause == CauseNodeLost { // what it ran may still be there
		switch {
		case t.orphan != nil: // as was known; its agent has until its deadline
			return
		case t.unreachable():
			j.drain(t, t.Container, t.deadline)
		case t.AgentPID != 0:
			j.orphaned(t, strings.TrimSpace(why))
			return
		}
	}
	if e.Cause.memory() {
		why = j.grow(t, e.Cause)
	}
	j.loseContainer(t, cause, strings.TrimSpace(why))
	if e.Cause.memory() && !j.ending() {
		j.charge(t)
	}
}

// memory reports whether a larger container would have done. NodeManagers limit
// virtual memory in proportion to a container's size.
func (c Cause) memory() bool { return c == CauseOutOfMemory || c == CauseVirtualLimit }

// grow has a task that its container was too small for ask for half as much again,
// as far as its role allows, and says so.
func (j *Job) grow(t *Task, c Cause) string {
	before := t.memoryMB
	t.memoryMB = max(before, min(before*3/2, t.Role.MemoryMaxMb))
	what, remedy := fmt.Sprintf("it needed more than the %d MB of its container", before), ""
	if c == CauseVirtualLimit {
		what = fmt.Sprintf("it reserved more virtual memory than its node allows a container of %d MB (yarn.nodemanager.vmem-pmem-ratio)", before)
		remedy = "what is reserved is not used, so have yarn.nodemanager.vmem-check-enabled set to false on the nodes; until then, "
	}
	if t.memoryMB > before {
		return fmt.Sprintf("%s; from now on it has %d", what, t.memoryMB)
	}
	return fmt.Sprintf("%s; %sgive the role more with --%s-memory, or let it grow with --%s-memory-max", what, remedy, t.Role.Name, t.Role.Name)
}

// moveToGrow exchanges the container of a task whose process ran out of memory
// for a larger one, where its role allows that; false: it stays where it is.
func (j *Job) moveToGrow(t *Task) bool {
	before := t.memoryMB
	t.Why = j.grow(t, CauseOutOfMemory)
	if t.memoryMB == before {
		return false
	}
	c := t.Container
	j.record(t, KindNote, "%s", t.Why)
	j.do(ReleaseAgent{c, "its task needs a larger container"}, Release{c})
	j.forget(t)
	j.do(Route{Cut: []string{t.Name}})
	j.ask(t)
	return true
}

func (j *Job) trouble(e AgentFailed) {
	if e.DirectoryRemoved {
		j.ousted = j.now
	}
	t := j.Hosted(e.Container)
	if t == nil || j.ending() && (t.finishBy.IsZero() || !e.DirectoryRemoved) {
		return
	}
	if e.DirectoryRemoved {
		j.oust(t, e.Detail)
		return
	}
	if e.Permanent {
		t.Why = e.Detail
		j.fail(t, "cannot be prepared: "+e.Detail)
		return
	}
	if e.NodeSpecific {
		j.nodeTrouble[t.Node] = append(j.nodeTrouble[t.Node], j.now)
	}
	c := t.Container
	j.loseContainer(t, CauseLaunch, e.Detail)
	j.do(ReleaseAgent{c, "it could not prepare its task"}, Release{c})
}

// loseContainer gives a task's container up and asks for another.
func (j *Job) loseContainer(t *Task, c Cause, why string) {
	t.Why, t.failing = why, TaskExited{}
	t.blamed = false
	if c != CausePreempted && c != CauseNodeLost { // which happen as often as the cluster likes
		t.losses = append(t.losses, j.now)
	}
	if c == CauseLaunch || c == CauseDisksFailed {
		j.nodeTrouble[t.Node] = append(j.nodeTrouble[t.Node], j.now)
	}
	hadAddress := t.RealPort != 0
	if t.Attempt >= 0 {
		j.noteFault(t, FaultLost, 0)
	}
	j.lost(t, c)
	j.forget(t)
	if hadAddress {
		j.do(Route{Cut: []string{t.Name}})
	}
	if n := j.within(t.losses); n > j.limits.Losses {
		j.fail(t, fmt.Sprintf("lost its container %s within %s; the last time: %s", times(n), j.limits.Window, why))
		return
	}
	j.ask(t)
}

// forget lets go of a task's container.
func (j *Job) forget(t *Task) {
	j.host(t, "")
	if t.orphan != nil {
		j.orphans--
	}
	t.Node, t.Host, t.RealPort, t.PID, t.AgentPID = "", "", 0, 0, 0
	t.prepared, t.stopping, t.hung = false, false, false
	t.silent, t.deadline, t.moving, t.orphan = time.Time{}, time.Time{}, CauseUnknown, nil
	t.stay()
}
