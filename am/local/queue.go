package local

import (
	"sync"

	"holdfast/am"
)

// queue is an unbounded channel: the driver's methods must not wait for the
// one who reads its events, since that is who calls them.
type queue struct {
	out    chan am.DriverEvent
	mu     sync.Mutex
	items  []am.DriverEvent
	closed bool
	signal chan struct{}
}

func newQueue() *queue {
	q := &queue{out: make(chan am.DriverEvent), signal: make(chan struct{}, 1)}
	go q.pump()
	return q
}

func (q *queue) put(e am.DriverEvent) {
	q.mu.Lock()
	if !q.closed {
		q.items = append(q.items, e)
	}
	q.mu.Unlock()
	q.wake()
}

// close ends the queue; what nobody has read by then is dropped.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.items = nil
	q.mu.Unlock()
	q.wake()
}

func (q *queue) wake() {
	select {
	case q.signal <- struct{}{}:
	default:
	}
}

func (q *queue) pump() {
	defer close(q.out)
	for {
		q.mu.Lock()
		var next am.DriverEvent
		if len(q.items) > 0 {
			next = q.items[0]
			q.items = q.items[1:]
		}
		closed := q.closed
		q.mu.Unlock()
		switch {
		case closed:
			return
		case next == nil:
			<-q.signal
		default:
			select {
			case q.out <- next:
			case <-q.signal: // closed, or more has come: look again
				q.mu.Lock()
				if !q.closed {
					q.items = append([]am.DriverEvent{next}, q.items...)
				}
				q.mu.Unlock()
			}
		}
	}
}
