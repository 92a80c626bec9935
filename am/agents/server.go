package am

import (
	"errors"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"holdfast/proto"
)

// fromAgent is a message of an agent; a nil message says that its stream ended,
// in order if the agent closed it.
type fromAgent struct {
	container string
	message   *proto.FromAgent
	orderly   bool
	heard     time.Time // with the stream's end: when something was heard last
}

// hub keeps the streams of all agents. Each stream is served by the goroutine
// of its RPC, which hears, and now and then by one that sends and ends when it has
// sent all: there may be thousands of streams. Both end with the stream.
type hub struct {
	proto.UnimplementedAgentServiceServer
	log     *logrus.Entry
	events  chan<- fromAgent
	beat    func(container string, b *proto.Heartbeat) // called by many goroutines
	closed  <-chan struct{}                            // no one reads events any longer
	silence time.Duration                              // after which an agent's stream is given up
	attempt int32                                      // of the application: which master this is

	mu     sync.Mutex
	lines  map[string]*line
	tokens *proto.ToAgent // the newest, for agents that come later; nil: none
}

// line is what is still to be sent to one agent. It is unbounded: the loop
// must never wait for an agent, and says little.
type line struct {
	stream  proto.AgentService_ConnectServer
	giveUp  func()        // ends the stream; it may be called again
	serving chan struct{} // closed when nothing more will be heard on it

	mu      sync.Mutex
	queue   []message
	sending bool
	ended   bool // nothing more is sent
	senders sync.WaitGroup

	hearing sync.Mutex // held while something is passed on that was heard
	deaf    bool       // nothing more is passed on
	heard   time.Time  // when something was heard, last
}

// message is one for one agent, or the same for many.
type message interface {
	// in gives the form in which a stream sends it.
	in(proto.AgentService_ConnectServer) (any, error)
}

type single struct{ *proto.ToAgent }

func (m single) in(proto.AgentService_ConnectServer) (any, error) { return m.ToAgent, nil }

// common is written once for all streams, which may be thousands.
type common struct {
	message *proto.ToAgent
	once    sync.Once
	written grpc.PreparedMsg
	err     error
}

func (m *common) in(s proto.AgentService_ConnectServer) (any, error) {
	m.once.Do(func() { m.err = m.written.Encode(s, m.message) })
	return &m.written, m.err
}

func (l *line) put(m message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.queue = append(l.queue, m)
	if !l.sending {
		l.sending = true
		l.senders.Go(l.send)
	}
}

// take gives what is to be sent next; nothing: the sender is to end.
func (l *line) take() []message {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.queue
	l.queue = nil
	l.sending = len(q) > 0
	return q
}

// send sends what is in the line. What cannot be sent ends the stream.
func (l *line) send() {
	for q := l.take(); len(q) > 0; q = l.take() {
		for _, m := range q {
			form, err := m.in(l.stream)
			if err == nil {
				err = l.stream.SendMsg(form)
			}
			if err != nil {
				l.end()
				l.giveUp()
				return
			}
		}
	}
}

// end has nothing more sent.
func (l *line) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended, l.queue = true, nil
}

// hear passes something on, unless the stream has been given up.
func (l *line) hear(pass func() bool) bool {
	l.hearing.Lock()
	defer l.hearing.Unlock()
	if l.deaf {
		return false
	}
	l.heard = time.Now()
	return pass()
}

// close has nothing more passed on, and tells when something was heard last.
func (l *line) close() time.Time {
	l.hearing.Lock()
	defer l.hearing.Unlock()
	l.deaf = true
	return l.heard
}

func newHub(events chan<- fromAgent, beat func(string, *proto.Heartbeat), closed <-chan struct{}, silence time.Duration, attempt int, log *logrus.Entry) *hub {
	return &hub{log: log, events: events, beat: beat, closed: closed, silence: silence, attempt: int32(attempt), lines: map[string]*line{}}
}

// send queues a message for an agent; one that is not connected misses it.
func (h *hub) send(container string, m *proto.ToAgent) {
	h.mu.Lock()
	l := h.lines[container]
	h.mu.Unlock()
	if l != nil {
		l.put(single{m})
	}
}

// together is for how many agents sendToAll queues a message at once.
const together = 64

// sendToAll queues the same message for several agents. Each line has goroutines
// of its own, and what else this process has to do would wait for all of them:
// after some of them, it takes its turn.
func (h *hub) sendToAll(containers []string, m *proto.ToAgent) {
	c := &common{message: m}
	for some := range slices.Chunk(containers, together) {
		h.putAll(some, c)
		runtime.Gosched()
	}
}

func (h *hub) putAll(containers []string, m message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range containers {
		if l := h.lines[name]; l != nil {
			l.put(m)
		}
	}
}

// announceTokens queues tokens for every agent that is there or comes.
func (h *hub) announceTokens(m *proto.ToAgent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tokens = m
	for _, l := range h.lines {
		l.put(single{m})
	}
}

// Connect serves one agent. An agent that comes again has lost its former stream,
// known here or not, and that one ends.
func (h *hub) Connect(stream proto.AgentService_ConnectServer) error {
	giveUp := connection(stream.Context())
	introduction := time.AfterFunc(h.silence, giveUp)
	first, err := stream.Recv()
	introduction.Stop()
	if err != nil {
		return err
	}
	hello := first.GetHello()
	if hello == nil || hello.Container == "" {
		return status.Error(codes.InvalidArgument, "the first message must be Hello, with the container's name")
	}
	if own := speaksFor(stream.Context()); hello.Container != own {
		h.log.Warnf("the agent in %s claims to be that in %s, and is not listened to", own, hello.Container)
		return status.Errorf(codes.PermissionDenied, "this agent speaks for the container %q, not for %q", own, hello.Container)
	}
	l := &line{stream: stream, giveUp: giveUp, serving: make(chan struct{})}
	h.enter(hello.Container, l)
	orderly := false
	defer func() {
		heard := l.close()
		h.mu.Lock()
		delete(h.lines, hello.Container)
		h.mu.Unlock()
		h.pass(fromAgent{container: hello.Container, orderly: orderly, heard: heard})
		close(l.serving)
	}()
	l.hear(func() bool { return h.pass(fromAgent{container: hello.Container, message: first}) })
	silent := time.AfterFunc(h.silence, l.giveUp)
	defer silent.Stop()
	err = h.hear(stream, l, hello.Container, silent)
	l.end()
	silent.Reset(h.silence) // for an agent that does not take what it is told
	l.senders.Wait()
	if orderly = errors.Is(err, io.EOF); orderly {
		return nil
	}
	log := h.log.WithField("container", hello.Container)
	if time.Since(l.close()) >= h.silence {
		log.Warnf("its agent has said nothing for %v; its connection is given up", h.silence)
	} else {
		log.WithError(err).Debug("the agent's stream ended")
	}
	return err
}

// enter makes a stream the agent's one, once its former one has ended.
func (h *hub) enter(container string, l *line) {
	for {
		h.mu.Lock()
		old := h.lines[container]
		if old == nil {
			h.lines[container] = l
			if h.tokens != nil {
				l.put(single{h.tokens})
			}
			h.mu.Unlock()
			return
		}
		h.mu.Unlock()
		old.giveUp()
		<-old.serving
	}
}

// hear passes on what an agent says, and answers its beats, until the stream's end.
func (h *hub) hear(stream proto.AgentService_ConnectServer, l *line, container string, silent *time.Timer) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		silent.Stop() // that the loop is busy is not the agent's silence
		if b := m.GetHeartbeat(); b != nil {
			if !l.hear(func() bool { h.beat(container, b); return true }) {
				return nil
			}
			l.put(single{&proto.ToAgent{Message: &proto.ToAgent_HeartbeatReply{HeartbeatReply: &proto.HeartbeatReply{Sequence: b.Sequence, AmAttempt: h.attempt}}}})
		} else if !l.hear(func() bool { return h.pass(fromAgent{container: container, message: m}) }) {
			return status.Error(codes.Unavailable, "the job has ended")
		}
		silent.Reset(h.silence)
	}
}

func (h *hub) pass(e fromAgent) bool {
	select {
	case h.events <- e:
		return true
	case <-h.closed:
		return false
	}
}
