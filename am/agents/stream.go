package agents

import (
	"sync"
	"time"

	"google.golang.org/grpc"

	"holdfast/proto"
)

// stream is one agent's stream, with the queue of what is still to be sent on it. The
// queue is unbounded: the event loop must never wait for an agent, and sends little.
type stream struct {
	rpc       proto.AgentService_ConnectServer
	closeConn func()        // ends the stream; it may be called more than once
	done      chan struct{} // closed when nothing more will be received on it

	mu      sync.Mutex
	queue   []message
	sending bool // a sender runs
	stopped bool // nothing more is sent
	senders sync.WaitGroup

	receiving sync.Mutex // held while something received is passed on
	discard   bool       // nothing more is passed on
	lastHeard time.Time  // when something was last received
}

// message is one for one agent, or the same for many.
type message interface {
	// encode returns the message in the form in which the stream sends it.
	encode(proto.AgentService_ConnectServer) (any, error)
}

type single struct{ *proto.ToAgent }

func (m single) encode(proto.AgentService_ConnectServer) (any, error) { return m.ToAgent, nil }

// shared is a message that is encoded once for all streams; there may be thousands.
type shared struct {
	message *proto.ToAgent
	once    sync.Once
	encoded grpc.PreparedMsg
	err     error
}

func (m *shared) encode(s proto.AgentService_ConnectServer) (any, error) {
	m.once.Do(func() { m.err = m.encoded.Encode(s, m.message) })
	return &m.encoded, m.err
}

// enqueue queues a message, and starts a sender unless one runs.
func (s *stream) enqueue(m message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	s.queue = append(s.queue, m)
	if !s.sending {
		s.sending = true
		s.senders.Go(s.send)
	}
}

// dequeue returns what is to be sent next. If that is nothing, the sender must end.
func (s *stream) dequeue() []message {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queue
	s.queue = nil
	s.sending = len(q) > 0
	return q
}

// send sends until the queue is empty. A message that cannot be sent ends the stream.
func (s *stream) send() {
	for q := s.dequeue(); len(q) > 0; q = s.dequeue() {
		for _, m := range q {
			form, err := m.encode(s.rpc)
			if err == nil {
				err = s.rpc.SendMsg(form)
			}
			if err != nil {
				s.stopSending()
				s.closeConn()
				return
			}
		}
	}
}

// stopSending drops the queue and what is enqueued later.
func (s *stream) stopSending() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped, s.queue = true, nil
}

// receive calls pass to pass something on, unless stopReceiving was called. It returns
// false in that case, and otherwise what pass does.
func (s *stream) receive(pass func() bool) bool {
	s.receiving.Lock()
	defer s.receiving.Unlock()
	if s.discard {
		return false
	}
	s.lastHeard = time.Now()
	return pass()
}

// stopReceiving makes receive pass nothing on any longer, and returns when something was
// last received.
func (s *stream) stopReceiving() time.Time {
	s.receiving.Lock()
	defer s.receiving.Unlock()
	s.discard = true
	return s.lastHeard
}
