// Package journal has what of a job's state outlives its application master, and the times in
// it. Package core makes it and goes on from it, and package recovery (am/recovery) stores it.
package journal

import (
	"maps"
	"slices"
	"time"

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
	Early Early `json:"early,omitzero"`
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
	LeaveReason LeaveReason `json:"leave_reason,omitempty"`
	// FinishBy is until when it may go on while the job ends.
	FinishBy int64 `json:"finish_by,omitempty"`
	// Early is how its attempts have failed before their first step.
	Early Early `json:"early,omitzero"`
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

// LeaveReason is why a task is to leave its container.
type LeaveReason int

// The reasons.
const (
	LeaveNode      LeaveReason = iota // it closes or was lost
	LeaveScheduler                    // wants the container back
	LeaveSurplus                      // a person wants fewer tasks
)

// FaultKind is how the end of a task relates to its generation's failure. Of two kinds,
// the greater is the stronger sign.
type FaultKind int

// The kinds of faults.
const (
	FaultNone FaultKind = iota
	FaultLost           // it went with its container, or left it: nobody's failure
	FaultPeer           // it reports that it ended because of a peer
	FaultLate           // it failed after it had been told to stop
	FaultOwn            // it failed
)

// Fault is such an end, until it is attributed.
type Fault struct {
	Kind FaultKind `json:"kind"`
	AtMS int64     `json:"at,omitempty"` // Unix milliseconds, by the clock of its node
	// Evicted is that a directory had been removed lately, by which any task may fail. It
	// is noted with the end: that the others take their time must not make it a failure.
	Evicted bool `json:"evicted,omitempty"`
	// Cause and Why are the task's loss, in a Journal only.
	Cause event.Cause `json:"cause,omitempty"`
	Why   string      `json:"why,omitempty"`
}

// Early counts early failures of a task, or of tasks that restart together, for as long as
// all of theirs were early and alike.
type Early struct {
	Error string `json:"error,omitempty"` // the same each time
	Times int    `json:"times,omitempty"`
	Over  bool   `json:"over,omitempty"` // one came later, or was another: they count no longer
}

// Millis returns a time in Unix milliseconds; 0 for the zero time.
func Millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// Time is the inverse of Millis.
func Time(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// AllMillis returns times in Unix milliseconds.
func AllMillis(times []time.Time) []int64 {
	var ms []int64
	for _, t := range times {
		ms = append(ms, t.UnixMilli())
	}
	return ms
}

// Times is the inverse of AllMillis.
func Times(ms []int64) []time.Time {
	var times []time.Time
	for _, m := range ms {
		times = append(times, time.UnixMilli(m))
	}
	return times
}
