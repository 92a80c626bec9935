package am

import (
	"context"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/internal/mailbox"
)

// Driver gets containers for the application master and gives them back; am/yarn and
// am/local implement it. Its methods do not block, but for Finish, and are called from one
// goroutine only. Their outcome arrives on Events.
type Driver interface {
	// Events returns where the driver puts what happened, in order: core's events about
	// containers, nodes and the cluster.
	Events() *mailbox.Mailbox[event.Event]
	// Superseded receives an error once the cluster has given up this master, but not the
	// job. A driver that never says that may return nil.
	Superseded() <-chan error
	// PreviousContainers returns the nodes of the containers that the job still has from
	// an earlier application master, by container. They count as launched.
	PreviousContainers() map[string]string
	// Ask asks for one more container, of the given role. event.Allocated follows, unless
	// the request is withdrawn. The same Request is never used twice.
	Ask(action.Ask)
	// Withdraw takes an Ask back. A container that is allocated for it all the same is
	// released by the driver.
	Withdraw(request string)
	// Launch starts an agent in an allocated container. event.LaunchFailed or, later,
	// event.ContainerEnded follows.
	Launch(container string)
	// Release ends a container and gives it back. event.ContainerEnded follows unless it
	// had ended.
	Release(container string)
	// Check says that a container's agent cannot be reached. If the container has ended,
	// event.ContainerEnded is wanted as soon as the cluster can tell.
	Check(container string)
	// Finish tells the outcome to the cluster, gives everything back and ends the driver.
	// ctx bounds it.
	Finish(ctx context.Context, outcome action.Finish) error
}
