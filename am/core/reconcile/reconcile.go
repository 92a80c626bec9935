// Package reconcile makes the journal of a job anew whose application master has left none: of
// what the agents report to the next one, and of what is known from other sources. It reads
// no clock.
package reconcile

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"holdfast/am/core/event"
	"holdfast/am/core/journal"
	"holdfast/am/core/pace"
	"holdfast/proto"
)

// Task is what is known of a task whatever happens.
type Task struct {
	Name     string
	Port     int  // by which peers know it; 0: it has none before it is prepared
	Together bool // it is restarted with all others of its kind
}

// Reports are what has been heard since a job was taken over. They are collected until all
// agents that there can be have reported, or the leases of those that have not must have
// expired. Reports are not safe for concurrent use.
type Reports struct {
	tasks  []Task
	expiry time.Duration   // of leases
	known  journal.Journal // from other sources: may be out of date, and empty
	first  event.Recovered
	until  time.Time
	events []timedEvent // in order, to be taken in afterwards

	missing map[string]bool                  // containers of first that have not reported
	reports map[string]*event.AgentConnected // by container, the last
	ended   map[string]bool                  // containers in which nothing can run
}

type timedEvent struct {
	at    time.Time
	event event.Event
}

// New returns the reports of a job with these tasks before the first has come. Known is from
// other sources than a journal: it may be out of date, and empty. Expiry is after how long an
// agent's lease has expired.
func New(known journal.Journal, tasks []Task, expiry time.Duration) *Reports {
	return &Reports{tasks: tasks, expiry: expiry, known: known, missing: map[string]bool{}, reports: map[string]*event.AgentConnected{}, ended: map[string]bool{}}
}

// Take takes in an event, of which Recovered is the first.
func (r *Reports) Take(now time.Time, e event.Event) {
	switch e := e.(type) {
	case event.Recovered:
		r.first, r.until = e, now.Add(r.expiry)
		for c := range e.Containers {
			r.missing[c] = true
		}
		return
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
	}
	r.events = append(r.events, timedEvent{now, e})
}

// Known is what is known until now, above all the numbers of attempts and generations: for
// another application master, if this one is lost, too.
func (r *Reports) Known() journal.Journal {
	known := r.known
	known.Tasks = slices.Clone(known.Tasks)
	return known
}

// Until is when the leases of agents that have not reported have expired, unless a gap in the
// updates of the liveness file comes before.
func (r *Reports) Until() time.Time { return r.until }

// Containers returns those in which agents are or may be, some of them twice.
func (r *Reports) Containers() []string {
	return slices.AppendSeq(slices.Collect(maps.Keys(r.first.Containers)), maps.Keys(r.reports))
}

// noteNumbers keeps what an agent reports of its task, above all its numbers.
func (r *Reports) noteNumbers(e event.AgentConnected) {
	r.known.Generation = max(r.known.Generation, e.Generation)
	r.known.PeersNeeded = r.known.PeersNeeded || e.NeedsPeers
	if e.Attempt < 0 {
		return
	}
	i := slices.IndexFunc(r.known.Tasks, func(k journal.TaskRecord) bool { return k.Name == e.Task })
	if i < 0 {
		i = len(r.known.Tasks)
		r.known.Tasks = append(r.known.Tasks, journal.TaskRecord{Name: e.Task, Attempt: -1})
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

// Complete reports whether every agent, and every task that can be anywhere, has been reported.
func (r *Reports) Complete() bool {
	if len(r.missing) > 0 {
		return false
	}
	newest, known := r.newest(), r.records()
	missing, begun := false, len(known) < len(r.tasks)
	for _, t := range r.tasks {
		k, ok := known[t.Name]
		// An attempt that its agent has run began after older ones had ended elsewhere;
		// where none has, an older one may still run.
		e := newest[t.Name]
		here := r.usable(e) && e.Attempt >= 0
		missing = missing || !here && !(ok && isDone(k.State))
		begun = begun || k.Attempt >= 0
	}
	return !missing || !begun
}

func (r *Reports) records() map[string]journal.TaskRecord {
	m := map[string]journal.TaskRecord{}
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
func (r *Reports) newest() map[string]*event.AgentConnected {
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
func (r *Reports) usable(e *event.AgentConnected) bool {
	if e == nil {
		return false
	}
	_, there := r.first.Containers[e.Container]
	return there && !r.ended[e.Container]
}

// Result is what follows from reports.
type Result struct {
	Journal journal.Journal
	// Recovered is the event by which the job was taken over, with the containers that were
	// found since, and Events those after it, as they would be reported now.
	Recovered event.Recovered
	Events    []event.Event
	// Lost names the tasks that have run and that nobody has reported.
	Lost []string
	// Unaddressed is a task whose port is lost, while others run that know it, so that all
	// start again; empty: there is none.
	Unaddressed string
}

// Result makes a journal of the reports, as of now.
func (r *Reports) Result(now time.Time) Result {
	newest := r.newest()
	made, lost, apart := r.journal(newest)
	if !made.GangStart {
		made.Pace = pace.Assumed()
	}
	r.noteExpiring(&made, newest)
	unaddressed := unaddressed(made)
	if apart && !made.GangStart || unaddressed != "" {
		made.Generation++
		made.GangStart = true
		for i, t := range r.tasks { // they are stopped when their agents are back
			if k := &made.Tasks[i]; k.State == proto.TaskState_TASK_STATE_RUNNING && (unaddressed != "" || t.Together) {
				k.Stop = &journal.StopRecord{Reason: event.StopTogether}
			}
		}
	}
	x := Result{Journal: made, Recovered: r.first, Lost: lost, Unaddressed: unaddressed}
	for _, e := range r.events {
		x.Events = append(x.Events, later(e.event, now.Sub(e.at)))
	}
	return x
}

// journal also returns the tasks that have run and that nobody has reported,
// and whether tasks are apart that run together only.
func (r *Reports) journal(newest map[string]*event.AgentConnected) (made journal.Journal, lost []string, apart bool) {
	known := r.records()
	made = r.known
	made.Tasks, made.Partial, made.GangStart = nil, false, true
	made.Spares = slices.DeleteFunc(slices.Clone(made.Spares), func(k journal.SpareRecord) bool {
		e := r.reports[k.Container] // it may have been given to a task since
		return !r.usable(e) || e.Task != ""
	})
	for _, t := range r.tasks {
		k, ok := known[t.Name]
		if !ok {
			k = journal.TaskRecord{Name: t.Name, Attempt: -1}
		}
		k.PID, k.StoreDirty, k.AwaitingExpiry, k.Stop = 0, true, map[string]int64{}, nil
		e := newest[t.Name]
		if e != nil {
			k.Attempt, k.Port = max(k.Attempt, e.Attempt), cmp.Or(e.PeerPort, k.Port)
		}
		k.Port = cmp.Or(k.Port, t.Port)
		behind := !isDone(k.State)
		switch {
		case r.usable(e):
			k.Container = e.Container
			k.State = proto.TaskState_TASK_STATE_PREPARING
			if k.Attempt >= 0 && e.Attempt == k.Attempt { // else it never heard of that one
				k.State, k.StoreDirty = proto.TaskState_TASK_STATE_RUNNING, false
				behind = e.Generation < made.Generation || e.Exited != nil && e.Exited.Stopped
			}
		case !isDone(k.State):
			k.State, k.Container = proto.TaskState_TASK_STATE_WAITING, ""
			if k.Attempt >= 0 {
				lost = append(lost, t.Name)
			}
		}
		made.GangStart = made.GangStart && k.Attempt < 0
		apart = apart || behind && t.Together
		made.Tasks = append(made.Tasks, k)
	}
	return made, lost, apart
}

// noteExpiring notes the agents of tasks that others have been given to: what they run
// may go on for a while.
func (r *Reports) noteExpiring(made *journal.Journal, newest map[string]*event.AgentConnected) {
	index := map[string]int{}
	for i, k := range made.Tasks {
		index[k.Name] = i
	}
	for c, e := range r.reports {
		if i, ok := index[e.Task]; ok && !r.ended[c] && !(e == newest[e.Task] && r.usable(e)) {
			made.Tasks[i].AwaitingExpiry[c] = r.lastReport(c).Add(r.expiry).UnixMilli()
		}
	}
}

func (r *Reports) lastReport(container string) time.Time {
	for _, e := range slices.Backward(r.events) {
		if a, ok := e.event.(event.AgentConnected); ok && a.Container == container {
			return e.at
		}
	}
	return r.until
}

// unaddressed names a task that is nowhere and whose port is not known, while others run that
// know it; "" if there is none.
func unaddressed(r journal.Journal) string {
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
