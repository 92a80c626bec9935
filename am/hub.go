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
	"google.golang.org/grpc/keepalive"
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
}

// hub keeps the streams of all agents. Each stream is served by the goroutine
// of its RPC and one that sends; both end with the stream.
type hub struct {
	proto.UnimplementedAgentsServer
	log    *logrus.Entry
	events chan<- fromAgent
	closed <-chan struct{} // no one reads events any longer

	mu    sync.Mutex
	lines map[string]*line
}

// line is what is still to be sent to one agent. It is unbounded: the loop
// must never wait for an agent, and says little.
type line struct {
	mu     sync.Mutex
	queue  []*proto.ToAgent
	signal chan struct{}
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

func newHub(events chan<- fromAgent, closed <-chan struct{}, log *logrus.Entry) *hub {
	return &hub{log: log, events: events, closed: closed, lines: map[string]*line{}}
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

// Attend serves one agent.
func (h *hub) Attend(stream proto.Agents_AttendServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	hello := first.GetHello()
	if hello == nil || hello.Container == "" {
		return status.Error(codes.InvalidArgument, "the first message must be Hello, with the container's name")
	}
	c := hello.Container
	l := &line{signal: make(chan struct{}, 1)}
	h.mu.Lock()
	_, twice := h.lines[c]
	if !twice {
		h.lines[c] = l
	}
	h.mu.Unlock()
	if twice {
		return status.Errorf(codes.AlreadyExists, "container %s has an agent already", c)
	}
	orderly := false
	defer func() {
		h.mu.Lock()
		delete(h.lines, c)
		h.mu.Unlock()
		h.pass(fromAgent{container: c, orderly: orderly})
	}()
	h.pass(fromAgent{container: c, message: first})

	ctx, cancel := context.WithCancel(stream.Context())
	var sending sync.WaitGroup
	sending.Go(func() {
		defer cancel()
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
	})
	defer sending.Wait()
	defer cancel()
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			orderly = true
			return nil
		}
		if err != nil {
			h.log.WithField("container", c).WithError(err).Debug("the agent's stream ended")
			return err
		}
		if b := m.GetBeat(); b != nil {
			l.put(&proto.ToAgent{Message: &proto.ToAgent_Renewed{Renewed: &proto.Renewed{SentNs: b.SentNs}}})
		}
		if !h.pass(fromAgent{container: c, message: m}) {
			return status.Error(codes.Unavailable, "the job has ended")
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

// An agent or client that has been silent for askAfter is asked for a sign of
// life; after another silenceLimit without one its stream is broken.
const (
	askAfter     = 5 * time.Second
	silenceLimit = 10 * time.Second
)

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
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: askAfter, Timeout: silenceLimit}),
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
