package core

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/core/journal"
	"holdfast/am/core/reconcile"
	"holdfast/proto"
)

// NeedsJournal reports whether the last Step may have changed the Journal in a way that
// another application master has to know of. Steps are reported each second for as long
// as the job runs; of them it need only know that there were enough to know their pace.
func (j *Job) NeedsJournal() bool { return j.needsJournal }

// Journal returns the journal of the present state.
func (j *Job) Journal() journal.Journal {
	if j.reports != nil {
		return j.reports.Known()
	}
	r := journal.Journal{Generation: j.generation, Requests: j.requests, GangStart: j.phase == assembling, Saves: j.consistentSaves, PeersNeeded: j.peersNeeded, DirectoryRemoved: journal.Millis(j.dirRemoved), Pace: j.pace.Record(), Early: j.early,
		FixedWorld: j.fixedWorld, WorldChanged: j.worldChanged, Resized: journal.Millis(j.resized), Grown: journal.AllMillis(j.grown), MoreWanted: journal.Millis(j.moreWanted),
		Spares: j.spareRecords(), SpareLosses: journal.AllMillis(j.spareLosses), NoSparesBefore: journal.Millis(j.noSparesUntil), NodeTroubles: j.nodes.Records(j.now)}
	if j.outcome != proto.JobState_JOB_STATE_UNSPECIFIED {
		r.Outcome, r.Why = j.outcome, j.why
	}
	if j.unexplained != nil {
		r.Unexplained = j.unexplained.name
	}
	r.Tasks = make([]journal.TaskRecord, 0, len(j.tasks))
	for _, t := range j.tasks {
		r.Tasks = append(r.Tasks, t.journal())
	}
	return r
}

// journal returns the task's state for the Journal.
func (t *task) journal() journal.TaskRecord {
	r := journal.TaskRecord{
		Name: t.name, State: t.state.shown(), Attempt: t.run.number,
		Container: t.loc.container, Node: t.loc.node, Port: t.port, PID: t.run.pid,
		MemoryMB: t.memoryMB, Failures: journal.AllMillis(t.history.failures), Losses: journal.AllMillis(t.history.losses),
		LastLoss: journal.Millis(t.history.lastLoss), LostAt: journal.Millis(t.loss.since), StoreDirty: t.dirty, Parked: t.parked, Surplus: t.surplus, ParkedSince: journal.Millis(t.absence.since), ParkedBy: t.absence.cause,
		SuspectsServices: t.loss.suspectsServices, ConsistentServerState: t.run.fromServices, FinishBy: journal.Millis(t.run.finishBy),
		Early: t.history.early, Moves: t.history.moves, Step: t.progress.step, StepAt: journal.Millis(t.progress.at),
	}
	if s := t.run.stop; s.reason != "" {
		r.Stop = &journal.StopRecord{Reason: s.reason, Cause: s.cause, By: journal.Millis(s.by)}
	}
	if o := t.loc.leave; o.whateverNode() { // another reason is found anew
		r.LeaveBy, r.Grace, r.LeaveReason = journal.Millis(o.by), o.grace.Milliseconds(), o.reason
	}
	if t.loss.fault.Kind != journal.FaultNone {
		fault := t.loss.fault
		fault.Cause, fault.Why = t.loss.cause, t.loss.why
		r.Fault = &fault
	}
	if len(t.expiring) > 0 {
		r.AwaitingExpiry = make(map[string]int64, len(t.expiring))
	}
	for c, until := range t.expiring {
		r.AwaitingExpiry[c] = until.UnixMilli()
	}
	return r
}

// Resume restores a journal into a new job, whose first event is then Recovered instead
// of Begin.
func (j *Job) Resume(r journal.Journal) {
	if r.Partial {
		j.beginReconciling(r)
		return
	}
	j.generation, j.requests, j.consistentSaves = r.Generation, r.Requests, r.Saves
	j.peersNeeded = r.PeersNeeded
	j.outcome, j.why, j.dirRemoved = r.Outcome, r.Why, journal.Time(r.DirectoryRemoved)
	j.pace.Resume(r.Pace)
	j.early = r.Early
	j.fixedWorld, j.worldChanged, j.resized, j.grown, j.moreWanted = r.FixedWorld, r.WorldChanged, journal.Time(r.Resized), journal.Times(r.Grown), journal.Time(r.MoreWanted)
	j.resumeSpares(r)
	j.nodes.Resume(r.NodeTroubles)
	if !r.GangStart {
		j.beginRunning()
		j.started = true
	}
	for _, rec := range r.Tasks {
		if t := j.named[rec.Name]; t != nil {
			j.resumeTask(t, rec)
		}
	}
	j.unexplained = j.named[r.Unexplained]
	j.absent = j.parkedOrdinals()
}

func (j *Job) resumeTask(t *task, r journal.TaskRecord) {
	j.restoreState(t, r)
	j.begun = j.begun || r.Attempt >= 0
	t.port = cmp.Or(r.Port, t.port)
	t.history = history{failures: journal.Times(r.Failures), losses: journal.Times(r.Losses), lastLoss: journal.Time(r.LastLoss), early: r.Early, moves: r.Moves}
	t.progress = progress{r.Step, journal.Time(r.StepAt)}
	t.loss.since, t.loss.suspectsServices, t.dirty = journal.Time(r.LostAt), r.SuspectsServices, r.StoreDirty
	t.parked, t.surplus = r.Parked, r.Surplus
	t.absence = absence{journal.Time(r.ParkedSince), r.ParkedBy}
	t.memoryMB = max(t.memoryMB, r.MemoryMB)
	if r.Fault != nil {
		t.loss.fault, t.loss.cause, t.loss.why = *r.Fault, r.Fault.Cause, r.Fault.Why
		j.openFaults++
	}
	for c, until := range r.AwaitingExpiry {
		j.awaitExpiry(t, c, time.UnixMilli(until))
	}
}

// recovered begins the work of an application master that takes over: what runs is left
// alone until its agent is back or its lease has expired; what is not there any longer is
// asked for anew; what nobody knows is given back. Spares stay what they are, if they
// were handed over.
func (j *Job) recovered(e event.Recovered) {
	j.record(nil, action.KindNote, "application master attempt %d has taken over %d containers", e.Attempt, len(e.Containers))
	known := j.recoveredSpares(e)
	for _, t := range j.tasks {
		switch {
		case t.state.done():
			j.clearLocation(t)
			continue
		case t.loc.container != "":
			known[t.loc.container] = j.recoveredTask(t, e)
		case t.request == "": // else a task before it in the list has brought it back already
			j.ask(t)
		}
		if j.ending() {
			return
		}
	}
	for _, c := range slices.Sorted(maps.Keys(e.Containers)) {
		if !known[c] {
			j.emit(action.Release{Container: c})
		}
	}
	if j.outcome != proto.JobState_JOB_STATE_UNSPECIFIED {
		j.end(j.outcome, j.why)
	}
}

// recoveredTask waits for the agent of a task, and reports whether its container was
// handed over.
func (j *Job) recoveredTask(t *task, e event.Recovered) (there bool) {
	j.becomeUnreachable(t, j.now, j.now.Add(j.limits.LeaseExpiry))
	node, there := e.Containers[t.loc.container]
	if there {
		t.loc.node = node
		return true
	}
	// It has ended, which the cluster reports, too, or its NodeManager is gone, as that
	// of the application master before may be, or the cluster was restarted itself: in
	// these cases what it runs may be well.
	j.becomeOrphan(t, j.now.Add(j.limits.Orphan), "YARN did not hand its container over to this application master")
	if j.standIn(t) == nil {
		j.askStandIn(t, true)
	}
	return false
}

// An application master that takes over without the journal of the one before it collects the
// agents' reports until all that there can be have reported, or the leases of those that have
// not must have expired. The reports make a journal (package reconcile), and from there on all
// goes the way of one that was read. Until then nothing is asked for, started or stopped.

// takeReport takes in an event while reconciling, and decides once it may.
func (j *Job) takeReport(e event.Event) {
	r, over := j.reports, false
	switch e := e.(type) {
	case event.Recovered:
		j.waiting = "for what the agents report to the new application master"
		j.record(nil, action.KindNote, "where the tasks are is not known any longer: application master attempt %d waits for what the agents in %d containers report, for %s or a little more", e.Attempt, len(e.Containers), j.limits.LeaseExpiry)
	case event.LivenessConfirmed:
		j.liveness = livenessWindow{e.Since, e.Until}
	case event.RestartRequested:
		j.restartRequested(e)
		return
	case event.ScaleRequested:
		j.scaleRequested(e)
		return
	case event.Kill, event.Broken:
		over = true
	}
	r.Take(j.now, e)
	if over || j.past(j.confirmedExpiry(r.Until())) || r.Complete() {
		j.endReconciling()
		j.resumeFromReports(r.Result(j.now))
	}
}

// resumeFromReports goes on from the journal that the reports have made.
func (j *Job) resumeFromReports(r reconcile.Result) {
	j.Resume(r.Journal)
	j.recovered(r.Recovered)
	j.noteUnknown()
	for _, name := range r.Lost {
		if t := j.named[name]; !j.ending() {
			t.loss.why = "no agent has reported it to the new application master"
			j.noteFault(t, journal.FaultLost, 0)
			j.lost(t, event.CauseAgentLost)
		}
	}
	if r.Unaddressed != "" && !j.ending() {
		j.record(nil, action.KindNote, "generation %d: all tasks start again, since the port under which they know %s is lost", j.generation, r.Unaddressed)
	}
	for _, e := range r.Events {
		j.handle(e)
	}
}

// noteUnknown notes the faults of tasks of which nothing is known but that they have run,
// as all have that restart together once one has: what they ended by is lost.
func (j *Job) noteUnknown() {
	if !j.any(func(t *task) bool { return t.together() && t.run.number >= 0 }) {
		return
	}
	for _, t := range j.tasks {
		if t.run.number < 0 {
			j.noteFault(t, journal.FaultLost, 0)
		}
	}
}
