package core

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/core/nodes"
	"holdfast/am/core/pace"
	"holdfast/proto"
)

// Journal is what of a job's state must outlive its application master. It is written
// ahead of the actions that it records, so that an application master that takes over
// never starts an attempt twice or forgets a loss. Times are Unix milliseconds.
type Journal struct {
	// Partial: the journal was assembled from other sources, and may be out of date or
	// empty. Agents must report where the tasks are. Attempts and generations count on
	// from the numbers in it, and a task that is done in it stays done.
	Partial    bool `json:"partial,omitempty"`
	Generation int  `json:"generation"`
	Requests   int  `json:"requests"`
	GangStart  bool `json:"gang_start"` // the job is assembling
	// Saves counts the checkpoints sealed since the services' state may have become
	// inconsistent.
	Saves int `json:"saves,omitempty"`
	// PeersNeeded: a task has said that it needs the processes of others.
	PeersNeeded bool `json:"peers_needed,omitempty"`
	// DirectoryRemoved is when a container's directory was removed last.
	DirectoryRemoved int64 `json:"directory_removed,omitempty"`
	// Outcome is the job's final state, once it is decided, and Why its reason.
	Outcome proto.JobState `json:"outcome,omitempty"`
	Why     string         `json:"why,omitempty"`
	Tasks   []TaskRecord   `json:"tasks"`
	// Spares are the spare containers, and SpareLosses the times at which such were
	// lost. None is asked for before NoSparesBefore.
	Spares         []SpareRecord `json:"spares,omitempty"`
	SpareLosses    []int64       `json:"spare_losses,omitempty"`
	NoSparesBefore int64         `json:"no_spares_before,omitempty"`
	// NodeTroubles are the failures that are put down to nodes and count still, by node.
	NodeTroubles map[string][]nodes.Record `json:"node_troubles,omitempty"`
	// FixedWorld: the newest checkpoint can be read by as many ranks only as have saved it.
	FixedWorld bool `json:"fixed_world,omitempty"`
	// WorldChanged: the generation has other members than the one before.
	WorldChanged bool `json:"world_changed,omitempty"`
	// Resized is when the members of a group changed last, and Grown when it was stopped
	// so that others could join, the last few times.
	Resized int64   `json:"resized,omitempty"`
	Grown   []int64 `json:"grown,omitempty"`
	// MoreWanted is when a person last wanted more tasks, as long as none have joined since.
	MoreWanted int64 `json:"more_wanted,omitempty"`
	// Unexplained is the task by whose loss the generation began, as long as the event log
	// does not say why it did.
	Unexplained string `json:"unexplained,omitempty"`
	// Early is how tasks that restart together have failed before their first step.
	Early early `json:"early,omitzero"`
	// Pace is how steps were made; nil: nothing is known of them.
	Pace *pace.Record `json:"pace,omitempty"`
}

// TaskRecord is the state of a task in a Journal.
type TaskRecord struct {
	Name                  string          `json:"name"`
	State                 proto.TaskState `json:"state"`
	Attempt               int             `json:"attempt"`
	Container             string          `json:"container,omitempty"`
	Node                  string          `json:"node,omitempty"`
	Port                  int             `json:"port,omitempty"`
	PID                   int             `json:"pid,omitempty"`
	Failures              []int64         `json:"failures,omitempty"`
	Losses                []int64         `json:"losses,omitempty"`
	MemoryMB              int64           `json:"memory_mb"` // of its next container
	LastLoss              int64           `json:"last_loss,omitempty"`
	LostAt                int64           `json:"lost_at,omitempty"` // if it is not back
	Step                  int64           `json:"step,omitempty"`    // the last that it has reported, and when
	StepAt                int64           `json:"step_at,omitempty"`
	StoreDirty            bool            `json:"store_dirty,omitempty"`
	Parked                bool            `json:"parked,omitempty"`       // the generation that was formed last is without it
	Surplus               bool            `json:"surplus,omitempty"`      // a person wants fewer tasks of its role
	ParkedSince           int64           `json:"parked_since,omitempty"` // the others work without it, and what it was lost by
	ParkedBy              event.Cause     `json:"parked_by,omitempty"`
	SuspectsServices      bool            `json:"suspects_services,omitempty"`
	ConsistentServerState bool            `json:"consistent_server_state,omitempty"` // its attempt continues from what the services hold
	// Stop is why its attempt was told to end; nil: it was not.
	Stop *StopRecord `json:"stop,omitempty"`
	// LeaveBy is when it is to leave a container that the scheduler wants
	// back, or that is surplus, and Grace the milliseconds that it then gets to stop.
	LeaveBy     int64       `json:"leave_by,omitempty"`
	Grace       int64       `json:"grace,omitempty"`
	LeaveReason leaveReason `json:"leave_reason,omitempty"`
	// FinishBy is until when it may go on while the job ends.
	FinishBy int64 `json:"finish_by,omitempty"`
	// Early is how its attempts have failed before their first step.
	Early early `json:"early,omitzero"`
	// Moves is how often it was moved since it was a straggler.
	Moves int `json:"moves,omitempty"`
	// Fault is its part in its generation's failure, until that is attributed.
	Fault *Fault `json:"fault,omitempty"`
	// AwaitingExpiry are containers that may still run an attempt, until when.
	AwaitingExpiry map[string]int64 `json:"awaiting_expiry,omitempty"`
}

// StopRecord is why an attempt was told to end, in a Journal.
type StopRecord struct {
	Reason event.StopReason `json:"reason"`
	Cause  event.Cause      `json:"cause,omitempty"` // for which its task leaves the container
	By     int64            `json:"by,omitempty"`    // until when it has time, where it was given more than others
}

// SpareRecord is the state of a spare container in a Journal.
type SpareRecord struct {
	Container string `json:"container"`
	Node      string `json:"node"`
	MemoryMB  int64  `json:"memory_mb"`
	Task      string `json:"task,omitempty"` // that it is for; empty: any
	Early     bool   `json:"early,omitempty"`
}

// NeedsJournal reports whether the last Step may have changed the Journal in a way that
// another application master has to know of. Steps are reported each second for as long
// as the job runs; of them it need only know that there were enough to know their pace.
func (j *Job) NeedsJournal() bool { return j.needsJournal }

// Containers returns all containers that may have an agent.
func (r Journal) Containers() []string {
	var list []string
	for _, t := range r.Tasks {
		if t.Container != "" {
			list = append(list, t.Container)
		}
		list = append(list, slices.Sorted(maps.Keys(t.AwaitingExpiry))...)
	}
	for _, s := range r.Spares {
		list = append(list, s.Container)
	}
	return list
}

// Journal returns the journal of the present state.
func (j *Job) Journal() Journal {
	if j.reconciliation != nil {
		known := j.reconciliation.known
		known.Tasks = slices.Clone(known.Tasks)
		return known
	}
	r := Journal{Generation: j.generation, Requests: j.requests, GangStart: j.phase == assembling, Saves: j.consistentSaves, PeersNeeded: j.peersNeeded, DirectoryRemoved: millis(j.dirRemoved), Pace: j.pace.Record(), Early: j.early,
		FixedWorld: j.fixedWorld, WorldChanged: j.worldChanged, Resized: millis(j.resized), Grown: toMillis(j.grown), MoreWanted: millis(j.moreWanted),
		Spares: j.spareRecords(), SpareLosses: toMillis(j.spareLosses), NoSparesBefore: millis(j.noSparesUntil), NodeTroubles: j.nodes.Records(j.now)}
	if j.outcome != proto.JobState_JOB_STATE_UNSPECIFIED {
		r.Outcome, r.Why = j.outcome, j.why
	}
	if j.unexplained != nil {
		r.Unexplained = j.unexplained.name
	}
	r.Tasks = make([]TaskRecord, 0, len(j.tasks))
	for _, t := range j.tasks {
		r.Tasks = append(r.Tasks, t.journal())
	}
	return r
}

// journal returns the task's state for the Journal.
func (t *task) journal() TaskRecord {
	r := TaskRecord{
		Name: t.name, State: t.state.shown(), Attempt: t.run.number,
		Container: t.loc.container, Node: t.loc.node, Port: t.port, PID: t.run.pid,
		MemoryMB: t.memoryMB, Failures: toMillis(t.history.failures), Losses: toMillis(t.history.losses),
		LastLoss: millis(t.history.lastLoss), LostAt: millis(t.loss.since), StoreDirty: t.dirty, Parked: t.parked, Surplus: t.surplus, ParkedSince: millis(t.absence.since), ParkedBy: t.absence.cause,
		SuspectsServices: t.loss.suspectsServices, ConsistentServerState: t.run.fromServices, FinishBy: millis(t.run.finishBy),
		Early: t.history.early, Moves: t.history.moves, Step: t.progress.step, StepAt: millis(t.progress.at),
	}
	if s := t.run.stop; s.reason != "" {
		r.Stop = &StopRecord{s.reason, s.cause, millis(s.by)}
	}
	if o := t.loc.leave; o.whateverNode() { // another reason is found anew
		r.LeaveBy, r.Grace, r.LeaveReason = millis(o.by), o.grace.Milliseconds(), o.reason
	}
	if t.loss.fault.Kind != FaultNone {
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
func (j *Job) Resume(r Journal) {
	if r.Partial {
		j.beginReconciling(newReconciliation(r))
		return
	}
	j.generation, j.requests, j.consistentSaves = r.Generation, r.Requests, r.Saves
	j.peersNeeded = r.PeersNeeded
	j.outcome, j.why, j.dirRemoved = r.Outcome, r.Why, fromMilli(r.DirectoryRemoved)
	j.pace.Resume(r.Pace)
	j.early = r.Early
	j.fixedWorld, j.worldChanged, j.resized, j.grown, j.moreWanted = r.FixedWorld, r.WorldChanged, fromMilli(r.Resized), fromMillis(r.Grown), fromMilli(r.MoreWanted)
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

func (j *Job) resumeTask(t *task, r TaskRecord) {
	j.restoreState(t, r)
	j.begun = j.begun || r.Attempt >= 0
	t.port = cmp.Or(r.Port, t.port)
	t.history = history{failures: fromMillis(r.Failures), losses: fromMillis(r.Losses), lastLoss: fromMilli(r.LastLoss), early: r.Early, moves: r.Moves}
	t.progress = progress{r.Step, fromMilli(r.StepAt)}
	t.loss.since, t.loss.suspectsServices, t.dirty = fromMilli(r.LostAt), r.SuspectsServices, r.StoreDirty
	t.parked, t.surplus = r.Parked, r.Surplus
	t.absence = absence{fromMilli(r.ParkedSince), r.ParkedBy}
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

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMilli(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func toMillis(times []time.Time) []int64 {
	var ms []int64
	for _, t := range times {
		ms = append(ms, t.UnixMilli())
	}
	return ms
}

func fromMillis(ms []int64) []time.Time {
	var times []time.Time
	for _, m := range ms {
		times = append(times, time.UnixMilli(m))
	}
	return times
}
