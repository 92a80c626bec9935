package container

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"holdfast/proto"
)

const (
	// reachLimit is how long an agent without a task looks for its AM.
	reachLimit = 30 * time.Second
	// silenceLimit is how long the AM's host may leave what we send (a beat
	// each second) unacknowledged before the connection is broken.
	silenceLimit = 20 * time.Second
	dialLimit    = 3 * time.Second
	maxMessage   = 64 << 20
	backlog      = 256 // messages that may wait to be sent
	window       = 1 << 20
)

// line is the stream to the AM.
type line struct {
	in  chan *proto.ToAgent // closed when the stream has ended
	err error               // why, after that

	out     chan *proto.FromAgent
	hangUp  context.CancelFunc
	conn    *grpc.ClientConn
	sending sync.WaitGroup
}

// attend opens a stream to the AM at an address.
func attend(ctx context.Context, cfg Config, address string) (*line, error) {
	tlsConfig, err := cfg.Keys.Dialer()
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: dialLimit, Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		e := c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silenceLimit/time.Millisecond))
		})
		return errors.Join(e, err)
	}}
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(credentials.NewTLS(tlsConfig)),
		// A dialer of our own also keeps proxies of the environment out.
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		}),
		// A window that grows is measured by pings, which the master would have to answer.
		grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window),
		grpc.WithReadBufferSize(16<<10), grpc.WithWriteBufferSize(16<<10),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
	)
	if err != nil {
		return nil, err
	}
	// Not derived from ctx: at the end there is still something to be said.
	streamCtx, hangUp := context.WithCancel(context.Background())
	cutShort := context.AfterFunc(ctx, hangUp)
	stream, err := proto.NewAgentServiceClient(conn).Connect(metadata.AppendToOutgoingContext(streamCtx,
		proto.HeaderContainer, cfg.Container, proto.HeaderPass, string(cfg.Keys.Pass)))
	if err == nil && !cutShort() {
		err = ctx.Err()
	}
	if err != nil {
		hangUp()
		conn.Close()
		return nil, err
	}
	l := &line{
		in: make(chan *proto.ToAgent), out: make(chan *proto.FromAgent, backlog),
		hangUp: hangUp, conn: conn,
	}
	go func() {
		defer close(l.in)
		for {
			m, err := stream.Recv()
			if err != nil {
				l.err = err
				return
			}
			select {
			case l.in <- m:
			case <-streamCtx.Done():
				l.err = streamCtx.Err()
				return
			}
		}
	}()
	l.sending.Go(func() {
		for m := range l.out {
			if stream.Send(m) != nil {
				break // Recv tells why
			}
		}
		_ = stream.CloseSend()
		for range l.out {
		}
	})
	return l, nil
}

// say queues a message. Where the AM does not keep up, a beat is dropped, and
// for anything else the stream is given up: what it missed, the next one tells.
func (l *line) say(m *proto.FromAgent) {
	select {
	case l.out <- m:
	default:
		if m.GetHeartbeat() == nil {
			l.hangUp()
		}
	}
}

// abandon lets go of a stream that has nothing more to carry.
func (l *line) abandon() {
	l.hangUp()
	l.close()
}

// close says what is still to be said, within limits, and hangs up.
func (l *line) close() {
	close(l.out)
	sent := make(chan struct{})
	go func() {
		l.sending.Wait()
		close(sent)
	}()
	timeout := time.After(3 * time.Second)
	for in := l.in; in != nil; {
		select {
		case _, open := <-in:
			if !open {
				in = nil // the AM has closed its side: it has heard all
			}
		case <-timeout:
			in = nil
		}
	}
	l.hangUp()
	<-sent
	l.conn.Close()
}
