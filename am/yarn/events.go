package yarn

import (
	"sync"

	"holdfast/am"
)

// events is a channel without a bound: who reads it is who calls the driver's
// methods, and those must not wait.
type events struct {
	out  chan am.DriverEvent
	mu   sync.Mutex
	list []am.DriverEvent
	more chan struct{} // capacity 1
	done chan struct{}
	once sync.Once
}

func newEvents() *events {
	e := &events{out: make(chan am.DriverEvent), more: make(chan struct{}, 1), done: make(chan struct{})}
	go e.pass()
	return e
}

func (e *events) put(ev am.DriverEvent) {
	e.mu.Lock()
	e.list = append(e.list, ev)
	e.mu.Unlock()
	select {
	case e.more <- struct{}{}:
	default:
	}
}

// close ends the channel; what nobody has taken is dropped.
func (e *events) close() { e.once.Do(func() { close(e.done) }) }

func (e *events) pass() {
	defer close(e.out)
	for {
		e.mu.Lock()
		var next []am.DriverEvent
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
