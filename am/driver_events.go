package am

import (
	"sync"

	"holdfast/am/core"
)

// eventsAhead is how many events the channel buffers. With thousands of goroutines, the
// turn of the one that fills it comes late.
const eventsAhead = 256

// DriverEvents is an unbounded channel of a driver's events: who receives them is who calls
// the driver's methods, and those must not block. Its methods may be called concurrently.
type DriverEvents struct {
	out  chan core.Event
	mu   sync.Mutex
	list []core.Event
	more chan struct{} // capacity 1
	done chan struct{}
	once sync.Once
}

// NewDriverEvents returns an open channel. Close ends its goroutine.
func NewDriverEvents() *DriverEvents {
	e := &DriverEvents{out: make(chan core.Event, eventsAhead), more: make(chan struct{}, 1), done: make(chan struct{})}
	go e.pass()
	return e
}

// C returns the channel to receive from. It is closed some time after Close.
func (e *DriverEvents) C() <-chan core.Event { return e.out }

// Put sends an event. It does not block, and does nothing after Close.
func (e *DriverEvents) Put(ev core.Event) {
	e.mu.Lock()
	e.list = append(e.list, ev)
	e.mu.Unlock()
	select {
	case e.more <- struct{}{}:
	default:
	}
}

// Close closes the channel. Events that are not buffered yet are dropped.
func (e *DriverEvents) Close() { e.once.Do(func() { close(e.done) }) }

func (e *DriverEvents) pass() {
	defer close(e.out)
	for {
		e.mu.Lock()
		var next []core.Event
		next, e.list = e.list, nil
		e.mu.Unlock()
		for _, ev := range next {
			select {
			case e.out <- ev:
			case <-e.done:
				return
			}
		}
		select {
		case <-e.more:
		case <-e.done:
			return
		}
	}
}
