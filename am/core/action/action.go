// Package action has what core.Job.Step decides is to be done, for the loop around it to
// carry out. Actions are values: nobody changes one after it was decided.
package action

import (
	"time"

	"holdfast/proto"
)

// Action is something that core.Job.Step wants done. Actions are carried out in order. Their
// results come as later events.
type Action interface{ action() }

// Ask requests a container for a task. With an empty Task, it is for a spare.
type Ask struct {
	Request  string
	Task     string
	Role     string
	MemoryMB int64
	VCores   int32
	GPUs     int32
	Others   map[string]*proto.Amount // of other resource types; not to be changed
	Avoid    []string                 // nodes on which it should not be
	Apart    []string                 // containers with which it must not share a node
	Near     []string                 // containers beside which it is wanted
	Pause    time.Duration            // before the scheduler is asked
}

// Withdraw cancels an Ask.
type Withdraw struct{ Request string }

// Launch starts an agent in a container.
type Launch struct{ Container string }

// Release ends a container.
type Release struct{ Container string }

// Check asks the cluster for the state of a container whose agent is unreachable.
type Check struct{ Container string }

// Assign tells an agent which task it hosts. With port 0, the agent chooses one.
type Assign struct {
	Container, Task string
	Port            int
}

// ChangePort has the next attempts of the task that a container hosts listen on another
// port; AgentPrepared follows.
type ChangePort struct {
	Container string
	Port      int
}

// Start runs an attempt of the task that the container hosts.
type Start struct {
	Container, Task       string
	Attempt, Generation   int
	ConsistentServerState bool    // the attempt continues from the state that the services hold
	Absent                []int32 // the tasks that the generation is without, by their places in the list given to New
	WorldChanged          bool    // the generation has other members than the one before
}

// Stop ends the attempt that runs in a container; TaskExited follows. With Stack, that
// event reports where the attempt was.
type Stop struct {
	Container string
	Stack     bool
}

// EndLingering lets the lingering process of an attempt end; LetEnd follows, and TaskExited.
type EndLingering struct{ Container string }

// Vacate ends an attempt as Stop does, with Grace between SIGTERM and SIGKILL.
type Vacate struct {
	Container string
	Grace     time.Duration
}

// ReleaseAgent tells an agent to exit; AgentDisconnected follows.
type ReleaseAgent struct{ Container, Why string }

// Route tells all agents where the tasks are now, and to shut down the connections to
// those in Cut.
type Route struct{ Cut []string }

// PrepareStore makes the checkpoint directories safe to start from; StorePrepared follows.
// AllDown: no task runs but optional ones, so broken saves may be moved out of the way.
// Observed: optional ones run, which may write for themselves. What may still be alive in
// the containers Fenced is not to complete a save any longer.
type PrepareStore struct {
	AllDown  bool
	Observed bool
	Fenced   []string
}

// Record adds a line to the event log.
type Record struct {
	Task   string
	Kind   string
	Text   string
	TookMS int64 // since the loss: until it was noticed (KindLost), or the task was back (KindRecovered)
}

// RequestAnswered answers RestartRequested and ScaleRequested. With an empty Refusal, what
// was asked for is done.
type RequestAnswered struct{ Refusal string }

// Finish ends the job.
type Finish struct {
	State proto.JobState
	Why   string
}

// RequiresWriteAhead reports whether the journal entry that records an action must be
// durable before the action is carried out, so that a successor knows of it.
func RequiresWriteAhead(a Action) bool {
	switch a.(type) {
	case Start, ReleaseAgent, ChangePort, RequestAnswered:
		return true
	}
	return false
}

func (Ask) action()             {}
func (Withdraw) action()        {}
func (Launch) action()          {}
func (Release) action()         {}
func (Check) action()           {}
func (Assign) action()          {}
func (ChangePort) action()      {}
func (Start) action()           {}
func (Stop) action()            {}
func (Vacate) action()          {}
func (EndLingering) action()    {}
func (ReleaseAgent) action()    {}
func (Route) action()           {}
func (PrepareStore) action()    {}
func (Record) action()          {}
func (RequestAnswered) action() {}
func (Finish) action()          {}

// Kinds of Record.
const (
	KindStarted   = "started"
	KindLost      = "lost"
	KindRecovered = "recovered"
	KindEnded     = "ended"
	KindWaiting   = "waiting"
	KindNote      = "note"
	KindStalled   = "stalled"
	KindResumed   = "resumed"   // a stalled job makes steps again, or a straggler keeps up with the others
	KindResized   = "resized"   // a group has formed with other members than before
	KindStraggler = "straggler" // a task is slower than the others of its role
)
