// Package backoff waits between the attempts of a loop that repeats what failed.
//
// The loops themselves stay with their owners, since each returns its last error and
// not the context's, and remembers something from one attempt to the next;
// github.com/cenkalti/backoff, whose Retry owns the loop, makes none of them shorter.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff is a sequence of waits, each twice as long as the one before, up to a limit.
// It is for one goroutine.
type Backoff struct{ next, most time.Duration }

// New returns a Backoff whose first wait is about as long as first, and whose later ones
// are about as long as most.
func New(first, most time.Duration) *Backoff { return &Backoff{first, most} }

// Wait waits for the next time, and reports whether ctx has not ended. The time is random,
// between a half and one and a half of what is due, so that clients that failed together do not
// retry together.
func (b *Backoff) Wait(ctx context.Context) bool {
	wait := b.next/2 + rand.N(b.next)
	b.next = min(2*b.next, b.most)
	return Sleep(ctx, wait)
}

// Sleep waits for d, and reports whether ctx has not ended.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}
