package core

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/core/pace"
	"holdfast/proto"
)

// reconciliation is how an application master takes over without the journal of the one
// before it: it collects the agents' reports until all that there can be have reported,
// or the leases of those that have not must have expired. The reports make a journal,
// and from there on all goes the way of one that was read. Until then nothing is asked
// for, started or stopped.
type reconciliation struct {
	known  Journal // from other sources: may be out of date, and empty
	first  event.Recovered
	until  time.Time    // unless a gap in the updates of the liveness file comes before (confirmedExpiry)
	events []timedEvent // in order, to be taken in afterwards

	missing map[string]bool                  // containers of first that have not reported
	reports map[string]*event.AgentConnected // by container, the last
	ended   map[string]bool                  // containers in which nothing can run
}

type timedEvent struct {
	at    time.Time
	event event.Event
}

func newReconciliation(known Journal) *reconciliation {
	return &reconciliation{known: known, missing: map[string]bool{}, reports: map[string]*event.AgentConnected{}, ended: map[string]bool{}}
}

// takeReport takes in an event while reconciling, and decides once it may.
func (j *Job) takeReport(e event.Event) {
	r := j.reconciliation
	over := false
	switch e := e.(type) {
	case event.Recovered:
		r.first, r.until = e, j.now.Add(j.limits.LeaseExpiry)
		j.waiting = "for what the agents report to the new application master"
		for c := range e.Containers {
			r.missing[c] = true
		}
		j.record(nil, action.KindNote, "where the tasks are is not known any longer: application master attempt %d waits for what the agents in %d containers report, for %s or a little more", e.Attempt, len(e.Containers), j.limits.LeaseExpiry)
	case event.LivenessConfirmed:
		j.liveness = livenessWindow{e.Since, e.Until}
	case event.AgentConnected:
		delete(r.missing, e.Container)
		r.reports[e.Container] = &e
		r.noteNumbers(e)
	case event.ContainerFound:
		r.first.Containers[e.Container] = e.Node
		if r.reports[e.Container] == nil {
			r.missing[e.Container] = true
		}
	case event.ContainerEnded:
		if e.Cause != event.CauseNodeLost { // else what runs there may go on
			delete(r.missing, e.Container)
			r.ended[e.Container] = true
		}
	case event.RestartRequested:
		j.restartRequested(e)
		return
	case event.ScaleRequested:
		j.scaleRequested(e)
		return
	case event.Kill, event.Broken:
		over = true
	}
	if _, first := e.(event.Recovered); !first {
		r.events = append(r.events, timedEvent{j.now, e})
	}
	if over || j.past(j.confirmedExpiry(r.until)) || len(r.missing) == 0 && j.allReported() {
		j.endReconciling()
		j.decideFromReports(r)
	}
}

// noteNumbers keeps what an agent reports of its task, above all its numbers, for another
// application master if this one is lost, too.
func (r *reconciliation) noteNumbers(e event.AgentConnected) {
	r.known.Generation = max(r.known.Generation, e.Generation)
	r.known.PeersNeeded = r.known.PeersNeeded || e.NeedsPeers
	if e.Attempt < 0 {
		return
	}
	i := slices.IndexFunc(r.known.Tasks, func(k TaskRecord) bool { return k.Name == e.Task })
	if i < 0 {
		i = len(r.known.Tasks)
		r.known.Tasks = append(r.known.Tasks, TaskRecord{Name: e.Task, Attempt: -1})
	}
	k := &r.known.Tasks[i]
	k.Port = cmp.Or(e.PeerPort, k.Port) // others may be out of date
	if e.Attempt >= k.Attempt {
		k.Attempt, k.Container = e.Attempt, e.Container
	}
	if e.TaskPID != 0 {
		k.State = proto.TaskState_TASK_STATE_RUNNING
	}
}

// allReported reports whether every task that can be anywhere has been reported.
func (j *Job) allReported() bool {
	newest, known := j.reconciliation.newest(), j.reconciliation.records()
	missing, begun := false, len(known) < len(j.tasks)
	for _, t := range j.tasks {
		k, ok := known[t.name]
		// An attempt that its agent has run began after older ones had ended elsewhere;
		// where none has, an older one may still run.
		e := newest[t.name]
		here := j.reconciliation.usable(e) && e.Attempt >= 0
		missing = missing || !here && !(ok && isDone(k.State))
		begun = begun || k.Attempt >= 0
	}
	return !missing || !begun
}

func (r *reconciliation) records() map[string]TaskRecord {
	m := map[string]TaskRecord{}
	for _, k := range r.known.Tasks {
		m[k.Name] = k
	}
	return m
}

func isDone(s proto.TaskState) bool {
	return s == proto.TaskState_TASK_STATE_SUCCEEDED || s == proto.TaskState_TASK_STATE_FAILED
}

// newest finds for each task the agent with its newest attempt. An agent whose attempt is
// older than what is known to have been elsewhere has been given up.
func (r *reconciliation) newest() map[string]*event.AgentConnected {
	known := r.records()
	newest := map[string]*event.AgentConnected{}
	for _, c := range slices.Sorted(maps.Keys(r.reports)) {
		e := r.reports[c]
		if k, ok := known[e.Task]; e.Task == "" || ok && k.Attempt > e.Attempt && k.Container != c {
			continue
		}
		if o := newest[e.Task]; o == nil || o.Attempt < e.Attempt {
			newest[e.Task] = e
		}
	}
	return newest
}

// usable reports whether the agent's container is there and is the job's.
func (r *reconciliation) usable(e *event.AgentConnected) bool {
	if e == nil {
		return false
	}
	_, there := r.first.Containers[e.Container]
	return there && !r.ended[e.Container]
}

// decideFromReports makes a journal of the reports and goes on from there.
func (j *Job) decideFromReports(r *reconciliation) {
	newest := r.newest()
	journal, lost, apart := j.journalFromReports(r, newest)
	if !journal.GangStart {
		journal.Pace = pace.Assumed()
	}
	r.noteExpiring(&journal, newest, j.limits.LeaseExpiry)
	stray := journal.stray()
	if apart && !journal.GangStart || stray != "" {
		journal.Generation++
		journal.GangStart = true
		for i, t := range j.tasks { // they are stopped when their agents are back
			if k := &journal.Tasks[i]; k.State == proto.TaskState_TASK_STATE_RUNNING && (stray != "" || t.together()) {
				k.Stop = &StopRecord{Reason: event.StopTogether}
			}
		}
	}
	j.Resume(journal)
	j.recovered(r.first)
	j.noteUnknown()
	for _, t := range lost {
		if !j.ending() {
			t.loss.why = "no agent has reported it to the new application master"
			j.noteFault(t, FaultLost, 0)
			j.lost(t, event.CauseAgentLost)
		}
	}
	if stray != "" && !j.ending() {
		j.record(nil, action.KindNote, "generation %d: all tasks start again, since the port under which they know %s is lost", j.generation, stray)
	}
	for _, e := range r.events {
		j.handle(later(e.event, j.now.Sub(e.at)))
	}
}

// later is an event as it would be reported after a delay.
func later(e event.Event, delay time.Duration) event.Event {
	switch e := e.(type) {
	case event.AgentDisconnected:
		e.Silent += delay
		return e
	case event.AgentConnected:
		if e.Stopping != nil {
			s := *e.Stopping
			s.KillIn -= delay
			e.Stopping = &s
		}
		return e
	case event.NodeDecommissioning:
		e.Within = remaining(e.Within, delay)
		return e
	case event.PreemptionWarned:
		e.Within = remaining(e.Within, delay)
		return e
	}
	return e
}

// remaining is what is left of a time after a delay: not 0, which means that the time is not
// known.
func remaining(within, delay time.Duration) time.Duration {
	if within <= 0 {
		return within
	}
	return max(within-delay, time.Millisecond)
}

// journalFromReports also returns the tasks that have run and that nobody has reported,
// and whether tasks are apart that run together only.
func (j *Job) journalFromReports(r *reconciliation, newest map[string]*event.AgentConnected) (journal Journal, lost []*task, apart bool) {
	known := r.records()
	journal = r.known
	journal.Tasks, journal.Partial, journal.GangStart = nil, false, true
	journal.Spares = slices.DeleteFunc(slices.Clone(journal.Spares), func(k SpareRecord) bool {
		e := r.reports[k.Container] // it may have been given to a task since
		return !r.usable(e) || e.Task != ""
	})
	for _, t := range j.tasks {
		k, ok := known[t.name]
		if !ok {
			k = TaskRecord{Name: t.name, Attempt: -1}
		}
		k.PID, k.StoreDirty, k.AwaitingExpiry, k.Stop = 0, true, map[string]int64{}, nil
		e := newest[t.name]
		if e != nil {
			k.Attempt, k.Port = max(k.Attempt, e.Attempt), cmp.Or(e.PeerPort, k.Port)
		}
		k.Port = cmp.Or(k.Port, t.port)
		behind := !isDone(k.State)
		switch {
		case r.usable(e):
			k.Container = e.Container
			k.State = proto.TaskState_TASK_STATE_PREPARING
			if k.Attempt >= 0 && e.Attempt == k.Attempt { // else it never heard of that one
				k.State, k.StoreDirty = proto.TaskState_TASK_STATE_RUNNING, false
				behind = e.Generation < journal.Generation || e.Exited != nil && e.Exited.Stopped
			}
		case !isDone(k.State):
			k.State, k.Container = proto.TaskState_TASK_STATE_WAITING, ""
			if k.Attempt >= 0 {
				lost = append(lost, t)
			}
		}
		journal.GangStart = journal.GangStart && k.Attempt < 0
		apart = apart || behind && t.together()
		journal.Tasks = append(journal.Tasks, k)
	}
	return journal, lost, apart
}

// noteUnknown notes the faults of tasks of which nothing is known but that they have run,
// as all have that restart together once one has: what they ended by is lost.
func (j *Job) noteUnknown() {
	if !j.any(func(t *task) bool { return t.together() && t.run.number >= 0 }) {
		return
	}
	for _, t := range j.tasks {
		if t.run.number < 0 {
			j.noteFault(t, FaultLost, 0)
		}
	}
}

// noteExpiring notes the agents of tasks that others have been given to: what they run
// may go on for a while.
func (r *reconciliation) noteExpiring(journal *Journal, newest map[string]*event.AgentConnected, wait time.Duration) {
	index := map[string]int{}
	for i, k := range journal.Tasks {
		index[k.Name] = i
	}
	for c, e := range r.reports {
		if i, ok := index[e.Task]; ok && !r.ended[c] && !(e == newest[e.Task] && r.usable(e)) {
			journal.Tasks[i].AwaitingExpiry[c] = r.lastReport(c).Add(wait).UnixMilli()
		}
	}
}

func (r *reconciliation) lastReport(container string) time.Time {
	for _, e := range slices.Backward(r.events) {
		if a, ok := e.event.(event.AgentConnected); ok && a.Container == container {
			return e.at
		}
	}
	return r.until
}

// stray names a task that is nowhere and whose port is not known, while others run that
// know it; "" if there is none.
func (r Journal) stray() string {
	if r.GangStart {
		return ""
	}
	for _, k := range r.Tasks {
		if k.State == proto.TaskState_TASK_STATE_WAITING && k.Port == 0 {
			return k.Name
		}
	}
	return ""
}
