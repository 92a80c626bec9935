package core

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"holdfast/proto"
)

// Journal is what of a job's state must outlive its application master. It is
// written before a deed that it records is done, so that an AM that takes over
// never starts an attempt twice or forgets a loss. Times are Unix milliseconds.
type Journal struct {
	// Partial: it was gathered from other sources, and may be out of date or
	// empty. Agents must say where the tasks are; attempts and generations count
	// on from what is in it, and what is done stays done.
	Partial    bool `json:"partial,omitempty"`
	Generation int  `json:"generation"`
	Requests   int  `json:"requests"`
	GangStart  bool `json:"gang_start"`
	// Saves counts checkpoints since what the services hold may be of several pieces.
	Saves int `json:"saves,omitempty"`
	// DirectoryRemoved is when a container's directory was removed last.
	DirectoryRemoved int64 `json:"directory_removed,omitempty"`
	// Outcome is what the job ends as, once that is decided, and Why it does.
	Outcome proto.JobState `json:"outcome,omitempty"`
	Why     string         `json:"why,omitempty"`
	Tasks   []TaskRecord   `json:"tasks"`
	// Spares are the containers that are kept for tasks that lose theirs, and SpareLosses
	// when such were lost; none is asked for before NoSparesBefore.
	Spares         []SpareRecord `json:"spares,omitempty"`
	SpareLosses    []int64       `json:"spare_losses,omitempty"`
	NoSparesBefore int64         `json:"no_spares_before,omitempty"`
	// Early is how tasks that restart together have failed before their first step.
	Early early `json:"early,omitzero"`
	// Pace is how steps were made; nil: not enough of them to tell.
	Pace *PaceRecord `json:"pace,omitempty"`
}

// TaskRecord is what a Journal says of a task.
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
	Step                  int64           `json:"step,omitempty"`    // the last that it has told, and when
	Moved                 int64           `json:"moved,omitempty"`
	StoreDirty            bool            `json:"store_dirty,omitempty"`
	Doubts                bool            `json:"doubts,omitempty"`
	ConsistentServerState bool            `json:"consistent_server_state,omitempty"` // its attempt was told to go on from what the services hold
	// Stopping: its attempt was told to end; Moving is why it moves after that.
	Stopping bool  `json:"stopping,omitempty"`
	Moving   Cause `json:"moving,omitempty"`
	Hung     bool  `json:"hung,omitempty"` // the same, because it made no steps
	// LeaveBy is when it is to be told to leave a container that the scheduler wants
	// back, and Grace the milliseconds that it then gets to stop.
	LeaveBy int64 `json:"leave_by,omitempty"`
	Grace   int64 `json:"grace,omitempty"`
	// StopBy is until when it has time to stop, where it was given more than others, and
	// FinishBy until when it may go on while the job ends.
	StopBy   int64 `json:"stop_by,omitempty"`
	FinishBy int64 `json:"finish_by,omitempty"`
	// Early is how its attempts have failed before their first step.
	Early early `json:"early,omitzero"`
	// Fault is what its end says of its generation's failure, until that is attributed.
	Fault *Fault `json:"fault,omitempty"`
	// AwaitingExpiry are containers that may still run an attempt, until when.
	AwaitingExpiry map[string]int64 `json:"awaiting_expiry,omitempty"`
}

// SpareRecord is what a Journal says of a spare container.
type SpareRecord struct {
	Container string `json:"container"`
	Node      string `json:"node"`
	MemoryMB  int64  `json:"memory_mb"`
	Task      string `json:"task,omitempty"` // that it is for; empty: any
	Early     bool   `json:"early,omitempty"`
}

// NeedsJournal reports whether the last Step may have changed the Journal in a way that
// another application master has to know of. Steps come each second for as long as the
// job runs; of them it need only know that enough were made to know their pace.
func (j *Job) NeedsJournal() bool { return j.needsJournal }

// Containers are all that may have an agent.
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

// Journal gives the present state's.
func (j *Job) Journal() Journal {
	if j.survey != nil {
		known := j.survey.known
		known.Tasks = slices.Clone(known.Tasks)
		return known
	}
	r := Journal{Generation: j.generation, Requests: j.requests, GangStart: j.gathering, Saves: j.saves, DirectoryRemoved: millis(j.ousted), Pace: j.pace.record(), Early: j.early,
		Spares: j.spareRecords(), SpareLosses: toMillis(j.spareLosses), NoSparesBefore: millis(j.thriftyUntil)}
	if j.outcome != proto.JobState_JOB_STATE_UNSPECIFIED {
		r.Outcome, r.Why = j.outcome, j.why
	}
	r.Tasks = make([]TaskRecord, 0, len(j.tasks))
	for _, t := range j.tasks {
		r.Tasks = append(r.Tasks, TaskRecord{
			Name: t.Name, State: t.State, Attempt: t.Attempt,
			Container: t.Container, Node: t.Node, Port: t.Port, PID: t.PID,
			MemoryMB: t.memoryMB, Failures: toMillis(t.failures), Losses: toMillis(t.losses),
			LastLoss: millis(t.lastLoss), LostAt: millis(t.lostAt), StoreDirty: t.unsafe,
			Stopping: t.stopping, Moving: t.moving, Hung: t.hung, Doubts: t.doubts, ConsistentServerState: t.kept,
			Early: t.early, Step: t.step, Moved: millis(t.moved), StopBy: millis(t.stopBy), FinishBy: millis(t.finishBy),
		})
		if t.wanted { // for another reason, it is decided anew
			r.Tasks[len(r.Tasks)-1].LeaveBy, r.Tasks[len(r.Tasks)-1].Grace = millis(t.leaveBy), t.grace.Milliseconds()
		}
		if t.fault.Kind != FaultNone {
			fault := t.fault
			r.Tasks[len(r.Tasks)-1].Fault = &fault
		}
		if len(t.draining) > 0 {
			r.Tasks[len(r.Tasks)-1].AwaitingExpiry = make(map[string]int64, len(t.draining))
		}
		for c, until := range t.draining {
			r.Tasks[len(r.Tasks)-1].AwaitingExpiry[c] = until.UnixMilli()
		}
	}
	return r
}

// Resume takes a journal over into a new job. Its first event is Recovered, in
// place of Begin.
func (j *Job) Resume(r Journal) {
	if r.Partial {
		j.survey = newSurvey(r)
		return
	}
	j.generation, j.requests, j.gathering, j.saves = r.Generation, r.Requests, r.GangStart, r.Saves
	j.outcome, j.why, j.ousted = r.Outcome, r.Why, fromMilli(r.DirectoryRemoved)
	j.pace.resume(r.Pace)
	j.early = r.Early
	j.resumeSpares(r)
	if !r.GangStart {
		j.state = proto.JobState_JOB_STATE_RUNNING
	}
	for _, rec := range r.Tasks {
		if t := j.named[rec.Name]; t != nil {
			j.host(t, rec.Container)
			t.State, t.Attempt = rec.State, rec.Attempt
			j.begun = j.begun || t.Attempt >= 0
			t.Node, t.Port, t.PID = rec.Node, cmp.Or(rec.Port, t.Port), rec.PID
			t.failures, t.losses = fromMillis(rec.Failures), fromMillis(rec.Losses)
			t.unsafe, t.stopping, t.moving, t.hung, t.doubts, t.kept = rec.StoreDirty, rec.Stopping, rec.Moving, rec.Hung, rec.Doubts, rec.ConsistentServerState
			t.memoryMB = max(t.memoryMB, rec.MemoryMB)
			if rec.Fault != nil {
				t.fault = *rec.Fault
				j.openFaults++
			}
			for c, until := range rec.AwaitingExpiry {
				j.drain(t, c, time.UnixMilli(until))
			}
			t.lastLoss, t.lostAt = fromMilli(rec.LastLoss), fromMilli(rec.LostAt)
			t.early = rec.Early
			t.step, t.moved = rec.Step, fromMilli(rec.Moved)
			t.stopBy, t.finishBy = fromMilli(rec.StopBy), fromMilli(rec.FinishBy)
			t.leaveBy, t.grace = fromMilli(rec.LeaveBy), time.Duration(rec.Grace)*time.Millisecond
			t.wanted = rec.LeaveBy != 0
		}
	}
}

// recovered begins the work of an AM that takes over: what runs is left alone
// until its agent is back or its lease has ended; what is not there any longer
// is asked for anew; what nobody knows is given back. Spares stay what they are, if
// they were handed over.
func (j *Job) recovered(e Recovered) {
	j.record(nil, KindNote, "application master attempt %d has taken over %d containers", e.Attempt, len(e.Containers))
	wanted := j.recoveredSpares(e)
	for _, t := range j.tasks {
		switch t.State {
		case proto.TaskState_TASK_STATE_SUCCEEDED, proto.TaskState_TASK_STATE_FAILED:
			j.host(t, "")
			continue
		}
		node, there := e.Containers[t.Container]
		switch {
		case t.Container != "":
			t.silent = j.now
			t.deadline = j.now.Add(j.limits.LeaseExpiry)
			t.prepared = false
			if there {
				wanted[t.Container] = true
				t.Node = node
				break
			}
			// It has ended, of which the cluster tells, too, or its NodeManager is
			// gone, as that of the application master before may be, or the cluster
			// was restarted itself: in these cases what it runs may be well.
			j.setOrphan(t, j.now.Add(j.limits.Orphan), "YARN did not hand its container over to this application master")
			if j.standIn(t) == nil {
				j.askStandIn(t, true)
			}
		case t.request == "": // else a task before it in the list has brought it back already
			j.ask(t)
		}
		if j.ending() {
			return
		}
	}
	for _, c := range slices.Sorted(maps.Keys(e.Containers)) {
		if !wanted[c] {
			j.do(Release{c})
		}
	}
	if j.outcome != proto.JobState_JOB_STATE_UNSPECIFIED {
		j.end(j.outcome, j.why)
	}
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
