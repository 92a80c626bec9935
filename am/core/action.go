package core

import (
	"time"

	"holdfast/proto"
)

// Action is something that Job.Step wants done. Actions are carried out in
// order; none of them answers other than by a later Event.
type Action interface{ action() }

// Ask wants a container for a task.
type Ask struct {
	Request  string
	Task     string
	Role     string
	MemoryMB int64
	VCores   int32
	GPUs     int32
	Avoid    []string // nodes
}

// Withdraw takes an Ask back.
type Withdraw struct{ Request string }

// Launch starts an agent in a container.
type Launch struct{ Container string }

// Release ends a container.
type Release struct{ Container string }

// Check asks the cluster about a container whose agent cannot be reached.
type Check struct{ Container string }

// Assign tells an agent which task it hosts. Port 0: it chooses one.
type Assign struct {
	Container, Task string
	Port            int
}

// Start runs an attempt of the task that the container hosts.
type Start struct {
	Container, Task       string
	Attempt, Generation   int
	ConsistentServerState bool // the attempt continues from the state that the services hold
}

// Stop ends the attempt that runs in a container; TaskExited follows. Stack: that is to
// say where the attempt stands.
type Stop struct {
	Container string
	Stack     bool
}

// Vacate does the same for a task that moves: it gets Grace to save its state.
type Vacate struct {
	Container string
	Grace     time.Duration
}

// ReleaseAgent tells an agent to exit; AgentDisconnected follows.
type ReleaseAgent struct{ Container, Why string }

// Route tells all agents where the tasks are now (Job.Routes), and to cut
// the connections to these tasks.
type Route struct{ Cut []string }

// PrepareStore makes the checkpoint directories safe to start from; StorePrepared follows.
// AllDown says that no task runs, so that broken saves may be removed.
type PrepareStore struct{ AllDown bool }

// Record adds a line to the job's story.
type Record struct {
	Task   string
	Kind   string
	Text   string
	TookMS int64 // since the loss: to learn of it, or to be back
}

// Finish ends the job.
type Finish struct {
	State proto.JobState
	Why   string
}

// RequiresWriteAhead reports whether the journal entry that records an action must be
// durable before the action is carried out, so that a successor knows of it.
func RequiresWriteAhead(a Action) bool {
	switch a.(type) {
	case Start, ReleaseAgent:
		return true
	}
	return false
}

func (Ask) action()          {}
func (Withdraw) action()     {}
func (Launch) action()       {}
func (Release) action()      {}
func (Check) action()        {}
func (Assign) action()       {}
func (Start) action()        {}
func (Stop) action()         {}
func (Vacate) action()       {}
func (ReleaseAgent) action() {}
func (Route) action()        {}
func (PrepareStore) action() {}
func (Record) action()       {}
func (Finish) action()       {}

// Kinds of Record.
const (
	KindStarted = "started"
	KindLost    = "lost"
	KindBack    = "back"
	KindEnded   = "ended"
	KindWaiting = "waiting"
	KindNote    = "note"
	KindStalled = "stalled"
)
