package am

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"holdfast/internal/jobtls"
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
// of its RPC and one that sends; both end with the stream.
type hub struct {
	proto.UnimplementedAgentsServer
	log     *logrus.Entry
	events  chan<- fromAgent
	closed  <-chan struct{} // no one reads events any longer
	silence time.Duration   // after which an agent's stream is given up

	mu     sync.Mutex
	lines  map[string]*line
	tokens *proto.ToAgent // the newest, for agents that come later; nil: none
}

// line is what is still to be sent to one agent. It is unbounded: the loop
// must never wait for an agent, and says little.
type line struct {
	mu      sync.Mutex
	queue   []*proto.ToAgent
	signal  chan struct{}
	giveUp  context.CancelFunc
	serving chan struct{} // closed when nothing more will be heard on it
	heard   time.Time     // when something was, last; of the goroutine that hears
}

func (l *line) put(m *proto.ToAgent) {
	l.mu.Lock()
	l.queue = append(l.queue, m)
	l.mu.Unlock()
	select {
	case l.signal <- struct{}{}:
	default:
	}
}

func (l *line) take() []*proto.ToAgent {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.queue
	l.queue = nil
	return q
}

func newHub(events chan<- fromAgent, closed <-chan struct{}, silence time.Duration, log *logrus.Entry) *hub {
	return &hub{log: log, events: events, closed: closed, silence: silence, lines: map[string]*line{}}
}

// send queues a message for an agent; one that is not connected misses it.
func (h *hub) send(container string, m *proto.ToAgent) {
	h.mu.Lock()
	l := h.lines[container]
	h.mu.Unlock()
	if l != nil {
		l.put(m)
	}
}

// broadcast queues a message for every agent.
func (h *hub) broadcast(m *proto.ToAgent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.lines {
		l.put(m)
	}
}

// announceTokens queues tokens for every agent that is there or comes.
func (h *hub) announceTokens(m *proto.ToAgent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tokens = m
	for _, l := range h.lines {
		l.put(m)
	}
}

// Attend serves one agent. An agent that comes again has lost its former stream,
// known here or not, and that one ends.
func (h *hub) Attend(stream proto.Agents_AttendServer) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	hello := first.GetHello()
	if hello == nil || hello.Container == "" {
		return status.Error(codes.InvalidArgument, "the first message must be Hello, with the container's name")
	}
	l := &line{signal: make(chan struct{}, 1), giveUp: cancel, serving: make(chan struct{})}
	h.enter(hello.Container, l)
	l.heard = time.Now()
	orderly := false
	defer func() {
		h.mu.Lock()
		delete(h.lines, hello.Container)
		h.mu.Unlock()
		h.pass(fromAgent{container: hello.Container, orderly: orderly, heard: l.heard})
		close(l.serving)
	}()
	h.pass(fromAgent{container: hello.Container, message: first})

	var sending sync.WaitGroup
	sending.Go(func() {
		defer cancel()
		h.sendAll(ctx, stream, l)
	})
	defer sending.Wait()
	defer cancel()
	orderly, err = h.hear(ctx, stream, l, hello.Container)
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
				l.put(h.tokens)
			}
			h.mu.Unlock()
			return
		}
		h.mu.Unlock()
		old.giveUp()
		<-old.serving
	}
}

func (h *hub) sendAll(ctx context.Context, stream proto.Agents_AttendServer, l *line) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.signal:
		}
		for _, m := range l.take() {
			if stream.Send(m) != nil {
				return
			}
		}
	}
}

// hear passes on what an agent says, and answers its beats. It returns at the
// stream's end, when the agent has been silent for too long, and with ctx.
func (h *hub) hear(ctx context.Context, stream proto.Agents_AttendServer, l *line, container string) (orderly bool, err error) {
	heard := make(chan *proto.FromAgent)
	var end error
	go func() { // ends with the RPC
		defer close(heard)
		for {
			m, err := stream.Recv()
			if err != nil {
				end = err
				return
			}
			select {
			case heard <- m:
			case <-ctx.Done():
				end = ctx.Err()
				return
			}
		}
	}()
	silent := time.NewTimer(h.silence)
	defer silent.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, status.Error(codes.Aborted, "the agent has another stream")
		case <-silent.C:
			h.log.WithField("container", container).Warnf("its agent has said nothing for %v; its connection is given up", h.silence)
			return false, status.Error(codes.DeadlineExceeded, "the agent was silent for too long")
		case m, open := <-heard:
			if !open {
				if errors.Is(end, io.EOF) {
					return true, nil
				}
				h.log.WithField("container", container).WithError(end).Debug("the agent's stream ended")
				return false, end
			}
			silent.Reset(h.silence)
			l.heard = time.Now()
			if !h.pass(fromAgent{container: container, message: m}) {
				return false, status.Error(codes.Unavailable, "the job has ended")
			}
			if b := m.GetBeat(); b != nil {
				l.put(&proto.ToAgent{Message: &proto.ToAgent_Pulse{Pulse: &proto.Pulse{Number: b.Number}}})
			}
		}
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

// newServer makes the gRPC server of a job: agents may call Agents, clients
// Jobs, and nobody anything else.
func newServer(keys jobtls.Keys, agents proto.AgentsServer, jobs proto.JobsServer) (*grpc.Server, error) {
	tlsConfig, err := keys.Server()
	if err != nil {
		return nil, err
	}
	allowed := map[string]jobtls.Party{
		proto.Agents_Attend_FullMethodName: jobtls.Agent,
		proto.Jobs_Status_FullMethodName:   jobtls.Client,
		proto.Jobs_Watch_FullMethodName:    jobtls.Client,
		proto.Jobs_Kill_FullMethodName:     jobtls.Client,
	}
	check := func(ctx context.Context, method string) error {
		p, ok := peer.FromContext(ctx)
		if !ok {
			return status.Error(codes.Unauthenticated, "no peer")
		}
		info, ok := p.AuthInfo.(credentials.TLSInfo)
		if !ok {
			return status.Error(codes.Unauthenticated, "no TLS")
		}
		who, err := jobtls.Peer(info.State)
		if err != nil {
			return status.Error(codes.Unauthenticated, err.Error())
		}
		if allowed[method] != who {
			return status.Error(codes.PermissionDenied, fmt.Sprintf("a job's %s may not call %s", who, method))
		}
		return nil
	}
	s := grpc.NewServer(
		grpc.Creds(credentials.NewTLS(tlsConfig)),
		grpc.UnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			if err := check(ctx, info.FullMethod); err != nil {
				return nil, err
			}
			return handler(ctx, req)
		}),
		grpc.StreamInterceptor(func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			if err := check(ss.Context(), info.FullMethod); err != nil {
				return err
			}
			return handler(srv, ss)
		}),
	)
	proto.RegisterAgentsServer(s, agents)
	proto.RegisterJobsServer(s, jobs)
	return s, nil
}
