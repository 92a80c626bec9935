package core

import (
	"maps"
	"slices"
	"time"

	"holdfast/am/core/event"
	"holdfast/am/core/journal"
	"holdfast/am/core/pace"
	"holdfast/proto"
)

// Task is a task as others see it: a copy of what core knows. New reads Name, Role,
// Index and Port.
type Task struct {
	Name    string
	Role    *proto.RoleSpec
	Index   int
	Ordinal int // its index in the list given to New

	State     proto.TaskState
	Attempt   int // number of the present or last attempt; -1 before the first
	Container string
	Node      string
	Host      string // at which peers reach it
	Port      int    // by which peers know it; 0: not chosen yet
	RealPort  int    // on which it listens now
	MemoryMB  int64  // of its container, or of the next one
	PID       int
	AgentPID  int
	Why       string // of its last loss
	Cause     event.Cause
	Parked    bool             // the job works without it, until its group forms again, or its role is scaled up
	Since     time.Time        // it is parked since then
	ParkedBy  event.Cause      // what it was lost by then
	Tail      []string         // last lines of output of an attempt that failed
	Exit      event.TaskExited // how that attempt ended; zero: its container was lost
	Speed     pace.Speed       // of its attempt

	failures  int
	slowSince time.Time // it is a straggler since then; zero: it is none
}

// Failures counts the failures that were the task's own, ever; where all tasks
// restart together, those of the job that it was the cause of.
func (t Task) Failures() int { return t.failures }

// task is a task's state. doc.go lists which fields belong to which states.
type task struct {
	name    string
	role    *proto.RoleSpec
	index   int // in its role
	ordinal int // in Job.tasks
	port    int // by which peers know it
	first   int // by which they knew it at first

	state    state
	request  string   // outstanding Ask
	loc      location // where it is
	run      attempt  // the present or last
	loss     loss     // the last
	history  history
	progress progress
	memoryMB int64 // of its next container

	// expiring are containers whose agents may still run an attempt, until when at
	// the latest; nothing is started before their leases have expired.
	expiring  map[string]time.Time
	departed  map[string]bool    // those of expiring in which its attempt has ended: an agent writes what is left
	releases  map[string]release // those of expiring whose agents are told to end
	notBefore time.Time          // it does not start before: the delay after a failure
	parked    bool               // the generation that was formed last is without it (group.go)
	absence   absence            // while it is parked or surplus
	surplus   bool               // a person wants fewer tasks of its role (requests.go)
	dirty     bool               // the store was not prepared since its last attempt ended, or ever
	dirtied   time.Time          // when that attempt ended; zero: none has for this application master
	listed    bool               // in Job.busy
}

// location is the container that a task is in, and its agent. The zero value is none.
type location struct {
	container, node string
	host            string     // at which peers reach the node
	agentPID        int        // 0: the agent is not connected
	port            int        // on which the task listens; 0: it is not prepared, or is to listen on another
	silent          time.Time  // since when the agent is unreachable
	deadline        time.Time  // of attach, prepare, or the return of the agent
	files           localizing // before the agent has attached
	told            told       // what the agent has not answered yet
	orphan          *orphan    // nil: YARN has not lost the container
	leave           leaveOrder
	slow            bool // it has to leave since it is a straggler there
}

// absence is since when the others work without a task, and what it was lost by.
type absence struct {
	since time.Time
	cause event.Cause
}

// leaveOrder has a task leave its container. The zero value is no order.
type leaveOrder struct {
	by     time.Time
	grace  time.Duration // to stop
	reason journal.LeaveReason
}

// whateverNode reports whether a task leaves wherever it is.
func (o leaveOrder) whateverNode() bool { return o.reason != journal.LeaveNode }

// attempt is one run of a task.
type attempt struct {
	number       int // -1 before the first
	pid          int
	started      time.Time // by this application master; zero: by one before it
	fromServices bool      // it was told to continue from what the services hold
	stop         stop
	finishBy     time.Time
	lingered     bool // it has said that it lingers
	usage        pace.Meter
	speed        speed
}

// stop is why an attempt was told to end, and what follows. The zero value: it was not.
type stop struct {
	reason    event.StopReason
	cause     event.Cause // with StopToLeave
	by        time.Time   // until when the attempt has time to end; zero: what all get
	allowance             // to end, after by
}

// release is that an agent is to end, and how long after it was told its lease has expired.
type release struct {
	decided   time.Time
	wait      time.Duration
	preempted bool // the ResourceManager has said that the container has ended
}

// told is what a connected agent was told and is to answer. The zero value: nothing.
type told struct {
	what string // for the event log
	allowance
}

// allowance is how long an agent may still take for something. It counts while the agent is
// connected, from when it was told.
type allowance struct {
	asked time.Time // when that was decided
	left  time.Duration
	until time.Time // the end of that; zero: it does not count now
}

// suspend has the time stand still since the agent was last heard.
func (a *allowance) suspend(since time.Time) {
	if !a.until.IsZero() { // the agent may have been silent before it was told
		a.left, a.until = min(a.left, a.until.Sub(since)), time.Time{}
	}
}

// loss is how the last attempt, or the container with it, was lost.
type loss struct {
	why   string
	cause event.Cause
	tail  []string
	exit  event.TaskExited // zero: the container was lost, or the attempt did not fail
	since time.Time        // when it was lost; zero: the task is back
	// blamesPeer: it reports that it ended because of a peer. Whether one was lost near that
	// time is decided when the task is about to start again.
	blamesPeer bool
	// suspectsServices: it failed by an error of its own, of which the state that the
	// services hold may be the reason.
	suspectsServices bool
	fault            journal.Fault // its part in its generation's failure
}

// history is what counts for longer than an attempt.
type history struct {
	failures []time.Time
	losses   []time.Time // of containers
	lastLoss time.Time
	early    journal.Early
	moves    int // as a straggler

	preempted   int // containers, each sooner than Limits.Calm after the one before
	preemptedAt time.Time
	unneeded    int // containers that were lost when the job could do without it, the same
	unneededAt  time.Time
}

// progress is the last step that a task has reported.
type progress struct {
	step int64
	at   time.Time // zero: it never reported one
}

// view is the task as others see it.
func (j *Job) view(t *task) Task {
	v := Task{
		Name: t.name, Role: t.role, Index: t.index, Ordinal: t.ordinal, State: t.state.shown(), Attempt: t.run.number,
		Container: t.loc.container, Node: t.loc.node, Host: t.loc.host, Port: t.port, RealPort: t.loc.port, MemoryMB: t.memoryMB,
		PID: t.run.pid, AgentPID: t.loc.agentPID, Why: t.loss.why, Cause: t.loss.cause, Parked: j.isParked(t) || t.state == surplus, Tail: t.loss.tail, Exit: t.loss.exit,
		Speed: t.run.speed.known, slowSince: t.run.speed.since,
		failures: len(t.history.failures),
	}
	if v.Parked {
		v.Since, v.ParkedBy = t.absence.since, t.absence.cause
	}
	return v
}

// unreachable reports whether its agent was connected and is not any longer.
func (t *task) unreachable() bool { return !t.loc.silent.IsZero() }

// leavesNow reports whether its attempt was told to end because it leaves its container.
func (t *task) leavesNow() bool { return t.run.stop.reason == event.StopToLeave }

// together reports whether the task restarts with all others of its kind.
func (t *task) together() bool { return t.role.Loss == proto.LossRule_LOSS_RULE_ALL }

// optional reports whether the task has no influence on the job's outcome.
func (t *task) optional() bool {
	return t.role.Completion == proto.CompletionRule_COMPLETION_RULE_OPTIONAL
}

// service reports whether others work on what the task holds.
func (t *task) service() bool {
	return t.role.Completion == proto.CompletionRule_COMPLETION_RULE_SERVICE
}

// notRunning reports whether it has no attempt.
func (t *task) notRunning() bool { return !t.state.active() }

// expiringContainers are those of expiring, in order.
func (t *task) expiringContainers() []string {
	if len(t.expiring) == 0 {
		return nil // of nearly all tasks
	}
	return slices.Sorted(maps.Keys(t.expiring))
}
