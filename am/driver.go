package am

import (
	"context"
	"time"

	"holdfast/internal/mailbox"
)

// Driver gets containers for the application master and gives them back. am/yarn and
// am/local implement it. Its methods do not wait and may be called from one
// goroutine only; what becomes of them arrives on Events.
type Driver interface {
	// Events is where the driver puts what happened, in order.
	Events() *mailbox.Mailbox[DriverEvent]
	// Kept are the containers that the job has had since an earlier application
	// master, by name, with their nodes. They count as launched.
	Kept() map[string]string
	// Ask wants one more container. The same Ask.Request is never used twice.
	Ask(Ask)
	// Withdraw takes an Ask back. A container that comes all the same is
	// released by the driver.
	Withdraw(request string)
	// Launch starts an agent in an allocated container; LaunchFailed or,
	// later, Ended follows.
	Launch(container string)
	// Release ends a container and gives it back. Ended follows unless it had ended.
	Release(container string)
	// Check says that a container's agent cannot be reached: if the container
	// has ended, its Ended is wanted as soon as the cluster can tell.
	Check(container string)
	// Finish tells the outcome to the cluster, gives everything back and ends
	// the driver. ctx bounds it.
	Finish(ctx context.Context, o Outcome) error
}

// Ask describes a container that is wanted.
type Ask struct {
	Request  string // names the ask
	Role     string
	MemoryMB int64
	VCores   int32
	GPUs     int32
	Avoid    []string // nodes that had better not be used
}

// Outcome is how a job ended.
type Outcome struct {
	Succeeded bool
	Killed    bool
	Why       string // a line or more for a person
}

// DriverEvent is one of Allocated, Found, Localizing, LaunchFailed, Ended,
// Preempting, PreemptionOver, NodeLeaving, NodeStays, Waiting, Broken.
type DriverEvent interface{ driverEvent() }

// Allocated answers an Ask.
type Allocated struct{ Request, Container, Node string }

// Found says that a container of an earlier application master is there, which is
// not among Kept: the cluster has come to know of it since. It counts as launched.
type Found struct{ Container, Node string }

// Localizing says that a container's node has not yet begun to run what was launched
// there, and What it does meanwhile, after the node's name. It comes again and again
// for as long as that is so.
type Localizing struct{ Container, What string }

// LaunchFailed says that no agent could be started in a container; the
// container has been given back.
type LaunchFailed struct {
	Container string
	Err       error
}

// EndCause is what the driver knows about a container's end.
type EndCause int

// Causes of a container's end. YARN's exit statuses are in
// org.apache.hadoop.yarn.api.records.ContainerExitStatus.
const (
	EndExited       EndCause = iota // its process ended; see Ended.Exit
	EndReleased                     // by us
	EndPreempted                    // the scheduler wanted it back
	EndNodeLost                     // the node is gone
	EndDisksFailed                  // the node's disks
	EndOutOfMemory                  // used more than it asked for
	EndVirtualLimit                 // reserved more virtual memory than the node allows
	EndKilled                       // by the RM or a user
	EndUnknown
)

// Ended says that a container is gone; it comes once for each container.
type Ended struct {
	Container   string
	Cause       EndCause
	Exit        int    // exit code or YARN exit status
	Diagnostics string // of the cluster, for a person
}

// Preempting warns that the scheduler wants containers back and takes them
// itself after Within. Strict: these; else others with as much memory do as well.
type Preempting struct {
	Containers []string
	Strict     bool
	Within     time.Duration
}

// PreemptionOver says that the scheduler does not want these containers back any
// longer, and why.
type PreemptionOver struct {
	Containers []string
	Why        string
}

// NodeLeaving says that a node is taken out of service: it gets no new
// containers, and those that it has end after Within; 0: it is not known when.
type NodeLeaving struct {
	Node   string
	Within time.Duration
}

// NodeStays says that a node is in service again.
type NodeStays struct{ Node string }

// Waiting says in words why asks are not answered; empty: they are again.
type Waiting struct{ Why string }

// Broken says that the driver cannot go on; the job must end. Superseded: not
// the job, but this application master, for the cluster has given it up.
type Broken struct {
	Err        error
	Superseded bool
}

func (Allocated) driverEvent()      {}
func (Found) driverEvent()          {}
func (Localizing) driverEvent()     {}
func (LaunchFailed) driverEvent()   {}
func (Ended) driverEvent()          {}
func (Preempting) driverEvent()     {}
func (PreemptionOver) driverEvent() {}
func (NodeLeaving) driverEvent()    {}
func (NodeStays) driverEvent()      {}
func (Waiting) driverEvent()        {}
func (Broken) driverEvent()         {}
