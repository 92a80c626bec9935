package am

import "sync"

// eventsAhead is how many events can be taken without waiting for the goroutine
// that passes them on: with thousands of others, its turn comes late.
const eventsAhead = 256

// DriverEvents is a channel without a bound, for drivers to say things on: who
// reads it is who calls the driver's methods, and those must not wait. Put and
// Close may be called from many goroutines.
type DriverEvents struct {
	out  chan DriverEvent
	mu   sync.Mutex
	list []DriverEvent
	more chan struct{} // capacity 1
	done chan struct{}
	once sync.Once
}

// NewDriverEvents makes one. Close ends its goroutine.
func NewDriverEvents() *DriverEvents {
	e := &DriverEvents{out: make(chan DriverEvent, eventsAhead), more: make(chan struct{}, 1), done: make(chan struct{})}
	go e.pass()
	return e
}

// C is the channel; it is closed some time after Close.
func (e *DriverEvents) C() <-chan DriverEvent { return e.out }

// Put says something. After Close it does nothing.
func (e *DriverEvents) Put(ev DriverEvent) {
	e.mu.Lock()
	e.list = append(e.list, ev)
	e.mu.Unlock()
	select {
	case e.more <- struct{}{}:
	default:
	}
}

// Close ends the channel; what has not come far enough to be taken is dropped.
func (e *DriverEvents) Close() { e.once.Do(func() { close(e.done) }) }

func (e *DriverEvents) pass() {
	defer close(e.out)
	for {
		e.mu.Lock()
		var next []DriverEvent
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
