// Package gate admits the operations of a mount that change its store, for as long as the
// mount may: while its lease lasts, and until it is closed.
package gate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"holdfast/hdfsckpt/store"
)

// Gate admits operations. Closing it refuses new ones and cancels those under way. Its
// methods may be called by many goroutines.
type Gate struct {
	ctx    context.Context
	cancel context.CancelFunc

	lease func() error // nil: without end

	mu     sync.Mutex
	reason error
	busy   int
	idle   chan struct{} // closed when busy falls to 0 and somebody waits
}

// New returns an open gate. lease returns why the lease is over, nil while it lasts; a nil
// lease is one without end.
func New(lease func() error) *Gate {
	g := &Gate{lease: lease}
	g.ctx, g.cancel = context.WithCancel(store.Guarded(context.Background(), g.open))
	return g
}

// Context returns the context of all operations that change the store: it ends when the
// gate is closed, and each change under it checks the lease again.
func (g *Gate) Context() context.Context { return g.ctx }

// open returns nil if the gate is open, and else a fencedError. It is called again right
// before a change is sent to the store: the process may have been suspended since Enter.
func (g *Gate) open() error {
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

// Enter admits an operation, which calls leave at its end. It fails with EIO once the gate
// is closed or the lease is over.
func (g *Gate) Enter() (ctx context.Context, leave func(), err error) {
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

// fenceWait is how long operations after the lease's end wait for Close.
const fenceWait = time.Second

// expired closes the gate at the lease's end, unless Close does so first: its caller kills
// the processes before, so that they see no error.
func (g *Gate) expired(reason error) {
	select {
	case <-g.ctx.Done():
	case <-time.After(fenceWait):
		g.Close(reason)
	}
}

func (g *Gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.busy--; g.busy == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// Close closes the gate and gives the reason, and reports whether this call did.
func (g *Gate) Close(reason error) bool {
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

// Wait waits until no operation is under way.
func (g *Gate) Wait(ctx context.Context) error {
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

// IsClosed reports whether an error is that of an operation that was not admitted.
func IsClosed(err error) bool {
	var closed *fencedError
	return errors.As(err, &closed)
}

// fencedError is returned by operations once the gate is closed.
type fencedError struct{ reason error }

func (e *fencedError) Error() string { return "nothing may be committed any more: " + e.reason.Error() }
func (e *fencedError) Unwrap() error { return syscall.EIO }
