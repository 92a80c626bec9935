package stage

import (
	"sync"
	"sync/atomic"
	"time"

	"holdfast/proto"
)

// StepsAfterRestore is how many steps an attempt has shown once it goes on: many programs say
// which step they restore before they read it.
const StepsAfterRestore = 2

// Restore measures how long an attempt reads at its checkpoint paths before it goes on: from the
// first read to the last one before its second step, or before the first file that it completes
// there. Its methods may be called from many goroutines.
type Restore struct {
	over atomic.Bool // the attempt goes on; what it reads is no restore

	mu          sync.Mutex
	first, last time.Time // when the first read began and the last one ended; zero: nothing was read
}

// Begin begins with an attempt.
func (r *Restore) Begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.first, r.last = time.Time{}, time.Time{}
	r.over.Store(false)
}

// Read takes in a read that has ended now.
func (r *Restore) Read(began time.Time) {
	if r.over.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.first.IsZero() || began.Before(r.first) {
		r.first = began
	}
	r.last = time.Now()
}

// End says that the attempt goes on.
func (r *Restore) End() { r.over.Store(true) }

// Report returns what the restore has taken; nil if nothing was read, or it may go on.
func (r *Restore) Report() *proto.Restore {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over.Load() || r.first.IsZero() {
		return nil
	}
	return &proto.Restore{TookMs: r.last.Sub(r.first).Milliseconds(), AgeMs: time.Since(r.last).Milliseconds()}
}
