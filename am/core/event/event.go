// Package event has what happens to a job, as drivers, agents' streams, the checkpoint
// store and people report it to core.Job.Step, and the causes and reasons that are reported
// with it. Events are values: nobody changes one after it was reported.
package event

import (
	"time"

	"holdfast/am/core/pace"
)

// Event is something that happened. It is reported to core.Job.Step.
type Event interface{ event() }

// Begin is the first event: the driver is ready.
type Begin struct{}

// Recovered is the first event of an application master that takes over. Containers are
// those that the job still has, with their nodes. ContainerEnded follows for those that
// have ended meanwhile.
type Recovered struct {
	Attempt    int
	Containers map[string]string
}

// Allocated answers an Ask.
type Allocated struct{ Request, Container, Node string }

// LaunchFailed reports that no agent could be started in a container, which has been
// released.
type LaunchFailed struct{ Container, Why string }

// ContainerEnded reports the end of a container, once for each.
type ContainerEnded struct {
	Container   string
	Cause       Cause
	Exit        int
	Diagnostics string
}

// AgentConnected reports that the agent in a container has connected. One that was
// connected before also reports what it hosts: Task and Port once the task is prepared,
// PeerPort by which peers know it, and the present or last Attempt (-1 before the first)
// of a Generation, with its process and whether that is to end or, if it has ended, its end.
type AgentConnected struct {
	Container, Host string
	PID             int
	Task            string
	Port, PeerPort  int
	Attempt         int
	Generation      int
	TaskPID         int
	Exited          *TaskExited
	NeedsPeers      bool      // it has reported PeersNeeded
	Stopping        *Stopping // nil: the attempt was not told to end
}

// Stopping is what an agent reports of an attempt that was told to end and has not ended yet:
// what core.Job.Stopping returned then.
type Stopping struct {
	Reason StopReason
	Cause  Cause
	KillIn time.Duration // until SIGKILL; below 0: since then
}

// AgentPrepared reports that a task can start now, and on which port it will listen.
// PeerPort is the one by which peers know it.
type AgentPrepared struct {
	Container      string
	Port, PeerPort int
	Notes          []string
}

// Prewarmed reports that a container without a task has finished preparing for one.
type Prewarmed struct{ Container string }

// AgentFailed reports that an agent could not prepare its task, or that the task cannot
// stay in the container.
type AgentFailed struct {
	Container, Detail string
	NodeSpecific      bool // a retry on another node may succeed
	Permanent         bool // a retry cannot succeed anywhere
	DirectoryRemoved  bool // the container's directory was removed; the task may or may not still run
}

// AgentDisconnected reports that an agent's stream ended. Orderly: the agent has stopped
// its task and exits. Otherwise it may be back before its lease expires, which it counts
// from no later than its last message, which came Silent ago.
type AgentDisconnected struct {
	Container string
	Orderly   bool
	Silent    time.Duration
}

// TaskStarted reports that an attempt's process runs.
type TaskStarted struct {
	Container    string
	Attempt, PID int
}

// TaskExited reports how an attempt ended.
type TaskExited struct {
	Container      string
	Attempt        int
	Code, Signal   int
	OutOfMemory    bool
	CommandMissing bool
	PeerLost       bool
	Stopped        bool // because Stop was decided, by this master or one before it
	Detail, Advice string
	Tail           []string
	AtMS           int64    // Unix milliseconds by the clock of its node; of the error, if its output has a time
	Error          string   // that ended it, in one line, if its output names one
	Step           int64    // the last that it has reported; 0: none
	Stack          []string // where it was when it was told to end, if Stop asked for that
}

// PeersNeeded reports that the attempt in a container needs the processes of other tasks,
// also of those whose work is done.
type PeersNeeded struct{ Container string }

// TaskLingers reports that an attempt has done its work, and that its process stays until
// EndLingering because other tasks may need it. It comes again when the agent is connected
// again.
type TaskLingers struct {
	Container string
	Attempt   int
}

// LetEnd reports that EndLingering was carried out: the agent keeps the process of an attempt
// no longer.
type LetEnd struct {
	Container string
	Attempt   int
}

// PreemptionWarned reports that the scheduler wants containers back and takes them itself
// after Within. Unless Strict, it takes none of them once others with as much memory are
// given back.
type PreemptionWarned struct {
	Containers []string
	Strict     bool
	Within     time.Duration
}

// PreemptionCanceled reports that the scheduler does not want these containers back any
// longer, whatever it has said before.
type PreemptionCanceled struct {
	Containers []string
	Why        string
}

// NodeDecommissioning reports that a node gets no new containers, and loses those that it
// has after Within. With 0, the time is not known.
type NodeDecommissioning struct {
	Node    string
	Within  time.Duration
	HostsAM bool // this application master runs on the node
}

// NodeRecommissioned reports that such a node is in service again.
type NodeRecommissioned struct{ Node string }

// CheckpointSealed reports that a newer checkpoint has become complete, so that whoever stops
// now loses least. FixedWorld: it can be read by as many ranks only as have saved it.
type CheckpointSealed struct{ FixedWorld bool }

// CheckpointFound reports the newest checkpoint where none has become complete: as it was left
// when the application master began, or after a newer one was removed.
type CheckpointFound struct{ FixedWorld bool }

// StorePrepared reports that PrepareStore is done, with a note for each repair and for each
// directory that could not be prepared.
type StorePrepared struct{ Notes []string }

// Tick reports that the time that Deadline returned has come.
type Tick struct{}

// Kill ends the job because a person wants it.
type Kill struct{ Why string }

// RestartRequested ends the present attempt of a task, so that it is restarted, because a
// person wants it; RequestAnswered follows in the same step.
type RestartRequested struct{ Task, User string }

// ScaleRequested has the job work with another number of tasks of a role, because a person
// wants it; RequestAnswered follows in the same step.
type ScaleRequested struct {
	Role  string
	Count int32
	User  string
}

// Broken ends the job because the cluster does not serve it any longer.
type Broken struct{ Why string }

// Waiting reports why containers do not come. With an empty Why, they do.
type Waiting struct{ Why string }

// Noted reports something about the cluster that the user should know.
type Noted struct{ Text string }

// StepsReported holds the steps that tasks have reported since the previous such event.
// Saving: a task has written part of a checkpoint since, or made progress that is no step.
// It comes about once a second at most, once in pace.UsageInterval with what the tasks have
// used, and once in Job.CountInterval with what each of those that run has done.
type StepsReported struct {
	Steps  []Step
	Saving bool
	Usage  []pace.Usage
	Counts []pace.Count
}

// Step is the latest step that a task has reported.
type Step struct {
	Task string
	Step int64
}

// ContainerFound reports that YARN knows again of a container that it did not hand over
// when this application master registered: the ResourceManager was restarted as well,
// and the container's NodeManager has registered with it only now.
type ContainerFound struct{ Container, Node string }

// Localizing reports that a container's node still fetches the files of what was launched
// there, and What it does, after the node's name. It comes again every few seconds.
type Localizing struct{ Container, What string }

// LivenessConfirmed reports that the master has updated the job's AddressFile without a
// gap since Since, and that nobody can have seen it stale for too long before Until
// (package proto, lease.go): leases that agents have renewed for want of a master have
// expired, or expire, by LeaseExpiry after Since. It comes only where Limits.LivenessFile is
// set, and then again and again.
type LivenessConfirmed struct{ Since, Until time.Time }

// Sent reports that agents have been told what was decided until then, as far as they are
// connected: messages wait for the journal, and for as long as its store does not answer. It
// comes only where Limits.Journaled is set.
type Sent struct{ Until time.Time }

func (ContainerFound) event()      {}
func (Sent) event()                {}
func (LetEnd) event()              {}
func (Localizing) event()          {}
func (LivenessConfirmed) event()   {}
func (StepsReported) event()       {}
func (Recovered) event()           {}
func (Begin) event()               {}
func (Allocated) event()           {}
func (LaunchFailed) event()        {}
func (ContainerEnded) event()      {}
func (AgentConnected) event()      {}
func (AgentPrepared) event()       {}
func (Prewarmed) event()           {}
func (AgentFailed) event()         {}
func (AgentDisconnected) event()   {}
func (TaskStarted) event()         {}
func (TaskExited) event()          {}
func (PeersNeeded) event()         {}
func (TaskLingers) event()         {}
func (StorePrepared) event()       {}
func (Tick) event()                {}
func (Kill) event()                {}
func (RestartRequested) event()    {}
func (ScaleRequested) event()      {}
func (Broken) event()              {}
func (Noted) event()               {}
func (Waiting) event()             {}
func (PreemptionWarned) event()    {}
func (PreemptionCanceled) event()  {}
func (NodeDecommissioning) event() {}
func (NodeRecommissioned) event()  {}
func (CheckpointSealed) event()    {}
func (CheckpointFound) event()     {}
