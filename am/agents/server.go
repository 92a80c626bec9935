// Package agents is the master's side of its agents' streams: the gRPC service that they
// connect to, and the messages that are sent to them.
//
// Each stream is served by the goroutine of its RPC, which receives, and while there is
// something to send by a second one; both end with the stream. There may be thousands of
// streams. Messages and Router and Prewarmer hold no goroutine and belong to the event
// loop.
package agents

import (
	"errors"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"holdfast/am/server"
	"holdfast/proto"
)

// Received is a message of an agent. A nil Message says that its stream has ended.
type Received struct {
	Container string
	Message   *proto.FromAgent

	// Of a stream that has ended: whether the agent closed it, and when it last sent
	// something.
	Orderly   bool
	LastHeard time.Time

	stream *stream // of Hello
}

// Config is what a Server needs.
type Config struct {
	Attempt int // of the application master
	// Timeout is how long an agent may send nothing until its connection is closed.
	Timeout time.Duration
	// Received takes messages other than heartbeats, until Done is closed.
	Received chan<- Received
	Done     <-chan struct{}
	// Heartbeat is called for each heartbeat, concurrently for different agents.
	Heartbeat func(container string, h *proto.Heartbeat)
	Log       *logrus.Entry
}

// Server implements proto.AgentServiceServer. Its methods may be called concurrently, and
// those that send do not block.
type Server struct {
	proto.UnimplementedAgentServiceServer
	cfg Config

	mu      sync.Mutex
	streams map[string]*stream // by container
	// introduced are those of them of which the event loop knows.
	introduced map[string]*stream
	// released are the containers whose agents were told to end, whose leases are not renewed.
	released map[string]bool
	execs    map[int64]*exec // by id
	lastID   int64           // of execs
	tokens   *proto.ToAgent  // the latest, for agents that connect later; nil: none
}

var _ proto.AgentServiceServer = (*Server)(nil)

// NewServer returns a server without agents.
func NewServer(cfg Config) *Server {
	return &Server{cfg: cfg, streams: map[string]*stream{}, introduced: map[string]*stream{}, released: map[string]bool{}, execs: map[int64]*exec{}}
}

// Introduced notes that the event loop has taken a Hello in: what it decides from now on is meant
// for that stream.
func (s *Server) Introduced(r Received) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams[r.Container] == r.stream {
		s.introduced[r.Container] = r.stream
	}
}

// Sender returns a function that queues a message for the agent in a container, on the stream that
// the event loop knows of now. It is lost if that ends before the agent has received it, and is not
// sent on the next, on which the agent says what it has missed. From Release on, heartbeats are
// not answered: an agent that does not end all the same loses its lease.
func (s *Server) Sender(container string) func(*proto.ToAgent) {
	s.mu.Lock()
	st := s.introduced[container]
	s.mu.Unlock()
	if st == nil {
		return func(*proto.ToAgent) {}
	}
	return func(m *proto.ToAgent) {
		if m.GetRelease() != nil {
			s.mu.Lock()
			s.released[container] = true
			s.mu.Unlock()
		}
		st.enqueue(single{m})
	}
}

// isReleased reports whether the agent in a container was told to end.
func (s *Server) isReleased(container string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.released[container]
}

// send queues a message for the agent in a container, if it is connected.
func (s *Server) send(container string, m *proto.ToAgent) {
	s.mu.Lock()
	st := s.streams[container]
	s.mu.Unlock()
	if st != nil {
		st.enqueue(single{m})
	}
}

// batch is the number of agents for which SendToAll queues a message before it yields.
const batch = 64

// SendToAll queues the same message for those of several agents that are connected. Each queued message
// may start a goroutine, so it yields the processor from time to time: otherwise the rest
// of the process would wait behind all of them.
func (s *Server) SendToAll(containers []string, m *proto.ToAgent) {
	shared := &shared{message: m}
	for some := range slices.Chunk(containers, batch) {
		s.enqueueAll(some, shared)
		runtime.Gosched()
	}
}

func (s *Server) enqueueAll(containers []string, m message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range containers {
		if st := s.streams[name]; st != nil {
			st.enqueue(m)
		}
	}
}

// SetTokens queues a message with tokens for every agent that is connected, and for each
// that connects later, until it is called again.
func (s *Server) SetTokens(m *proto.ToAgent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = m
	for _, st := range s.streams {
		st.enqueue(single{m})
	}
}

// Connect implements proto.AgentServiceServer. An agent that connects again has lost its
// former stream, whether or not this side knows, so that is ended first.
func (s *Server) Connect(rpc proto.AgentService_ConnectServer) error {
	closeConn := server.CloseConnection(rpc.Context())
	timeout := time.AfterFunc(s.cfg.Timeout, closeConn)
	first, err := rpc.Recv()
	timeout.Stop()
	if err != nil {
		return err
	}
	hello := first.GetHello()
	if hello == nil || hello.Container == "" {
		return status.Error(codes.InvalidArgument, "the first message must be Hello, with the container's name")
	}
	if own := server.Container(rpc.Context()); hello.Container != own {
		s.cfg.Log.Warnf("the agent in %s claims to be that in %s, and is refused", own, hello.Container)
		return status.Errorf(codes.PermissionDenied, "this agent speaks for the container %q, not for %q", own, hello.Container)
	}
	st := &stream{rpc: rpc, closeConn: closeConn, done: make(chan struct{})}
	s.add(hello.Container, st)
	orderly := false
	defer func() {
		heard := st.stopReceiving()
		s.mu.Lock()
		delete(s.streams, hello.Container)
		if s.introduced[hello.Container] == st {
			delete(s.introduced, hello.Container)
		}
		s.mu.Unlock()
		s.abandonExecs(hello.Container)
		s.pass(Received{Container: hello.Container, Orderly: orderly, LastHeard: heard})
		close(st.done)
	}()
	st.receive(func() bool { return s.pass(Received{Container: hello.Container, Message: first, stream: st}) })
	silence := time.AfterFunc(s.cfg.Timeout, st.closeConn)
	defer silence.Stop()
	err = s.receiveAll(st, hello.Container, silence)
	st.stopSending()
	silence.Reset(s.cfg.Timeout) // for an agent that does not receive what is being sent
	st.senders.Wait()
	if orderly = errors.Is(err, io.EOF); orderly {
		return nil
	}
	log := s.cfg.Log.WithField("container", hello.Container)
	if time.Since(st.stopReceiving()) >= s.cfg.Timeout {
		log.Warnf("its agent has sent nothing for %v; its connection is closed", s.cfg.Timeout)
	} else {
		log.WithError(err).Debug("the agent's stream ended")
	}
	return err
}

// add makes a stream the one of its container, once the former one has ended.
func (s *Server) add(container string, st *stream) {
	for {
		s.mu.Lock()
		old := s.streams[container]
		if old == nil {
			s.streams[container] = st
			if s.tokens != nil {
				st.enqueue(single{s.tokens})
			}
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		old.closeConn()
		<-old.done
	}
}

// receiveAll passes on what an agent sends, and answers its heartbeats, until the stream
// ends.
func (s *Server) receiveAll(st *stream, container string, silence *time.Timer) error {
	for {
		m, err := st.rpc.Recv()
		if err != nil {
			return err
		}
		silence.Stop() // that the loop is busy is not the agent's silence
		if h := m.GetHeartbeat(); h != nil {
			if !st.receive(func() bool { s.cfg.Heartbeat(container, h); return true }) {
				return nil
			}
			if !s.isReleased(container) {
				st.enqueue(single{&proto.ToAgent{Message: &proto.ToAgent_HeartbeatReply{
					HeartbeatReply: &proto.HeartbeatReply{Sequence: h.Sequence, AmAttempt: int32(s.cfg.Attempt)},
				}}})
			}
		} else if o := m.GetExecOutput(); o != nil {
			s.deliver(container, o)
		} else if !st.receive(func() bool { return s.pass(Received{Container: container, Message: m}) }) {
			return status.Error(codes.Unavailable, "the job has ended")
		}
		silence.Reset(s.cfg.Timeout)
	}
}

func (s *Server) pass(r Received) bool {
	select {
	case s.cfg.Received <- r:
		return true
	case <-s.cfg.Done:
		return false
	}
}
