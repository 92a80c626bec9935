package mount

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"holdfast/hdfsckpt/store"
)

// gate admits the operations that change the store. Closing it refuses new ones and cancels
// those under way.
type gate struct {
	ctx    context.Context
	cancel context.CancelFunc

	lease func() error // nil: without end

	mu     sync.Mutex
	reason error
	busy   int
	idle   chan struct{} // closed when busy falls to 0 and somebody waits
}

func (g *gate) init() {
	g.ctx, g.cancel = context.WithCancel(store.Guarded(context.Background(), g.open))
}

// open returns nil if the gate is open, and else a fencedError. It is called again right
// before a change is sent to the store: the process may have been suspended since enter.
func (g *gate) open() error {
	if g.lease != nil {
		if err := g.lease(); err != nil {
			return &fencedError{err}
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reason != nil {
		return &fencedError{g.reason}
	}
	return nil
}

// enter fails with EIO once the gate is closed or the lease is over; otherwise
// leave must be called.
func (g *gate) enter() (ctx context.Context, leave func(), err error) {
	if g.lease != nil {
		if err := g.lease(); err != nil {
			g.expired(err)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.reason != nil {
		return nil, nil, &fencedError{g.reason}
	}
	g.busy++
	return g.ctx, g.leave, nil
}

// fenceWait is how long operations after the lease's end wait for Fence.
const fenceWait = time.Second

// expired closes the gate at the lease's end, unless Fence does so first: its caller kills
// the processes before, so that they see no error.
func (g *gate) expired(reason error) {
	select {
	case <-g.ctx.Done():
	case <-time.After(fenceWait):
		g.close(reason)
	}
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.busy--; g.busy == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// close reports whether this call closed it.
func (g *gate) close(reason error) bool {
	if reason == nil {
		reason = errors.New("fenced")
	}
	g.mu.Lock()
	first := g.reason == nil
	if first {
		g.reason = reason
	}
	g.mu.Unlock()
	g.cancel()
	return first
}

func (g *gate) wait(ctx context.Context) error {
	g.mu.Lock()
	if g.busy == 0 {
		g.mu.Unlock()
		return nil
	}
	if g.idle == nil {
		g.idle = make(chan struct{})
	}
	idle, n := g.idle, g.busy
	g.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d operations of the store are still under way: %w", n, ctx.Err())
	}
}

// fencedError is returned by operations once the gate is closed.
type fencedError struct{ reason error }

func (e *fencedError) Error() string { return "nothing may be committed any more: " + e.reason.Error() }
func (e *fencedError) Unwrap() error { return syscall.EIO }
