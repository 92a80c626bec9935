// Package mailbox has a queue without a bound, for goroutines that must not wait for
// the one that they hand something to.
package mailbox

import "sync"

// Mailbox is an unbounded queue with any number of writers and one reader. Nobody
// closes it: what is left in it once its reader has stopped goes with it.
type Mailbox[T any] struct {
	ready chan struct{} // capacity 1

	mu    sync.Mutex
	queue []T
}

// New returns an empty mailbox.
func New[T any]() *Mailbox[T] { return &Mailbox[T]{ready: make(chan struct{}, 1)} }

// Put adds an element. It does not wait, and may be called from any goroutine.
func (m *Mailbox[T]) Put(e T) {
	m.mu.Lock()
	m.queue = append(m.queue, e)
	m.mu.Unlock()
	select {
	case m.ready <- struct{}{}:
	default: // the reader takes this one with an earlier one
	}
}

// Ready returns a channel that can be received from after a Put, once for all that is
// put until then. What was put may have been taken meanwhile.
func (m *Mailbox[T]) Ready() <-chan struct{} { return m.ready }

// Take removes all elements and returns them in the order of Put.
func (m *Mailbox[T]) Take() []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.queue
	m.queue = nil
	return all
}

// ahead is how many elements a channel of Chan holds: with thousands of other
// goroutines, the turn of the one that fills it comes late.
const ahead = 256

// Chan returns a channel that delivers the elements one by one, for a reader that
// does not call Take itself. A goroutine fills it until done is closed; the channel is
// closed then, and what has not been delivered is dropped.
func (m *Mailbox[T]) Chan(done <-chan struct{}) <-chan T {
	out := make(chan T, ahead)
	go func() {
		defer close(out)
		for {
			for _, e := range m.Take() {
				select {
				case out <- e:
				case <-done:
					return
				}
			}
			select {
			case <-m.ready:
			case <-done:
				return
			}
		}
	}()
	return out
}
