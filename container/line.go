package container

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"holdfast/proto"
)

const (
	// reachLimit is for the first connection: the AM listens before it starts agents.
	reachLimit = 30 * time.Second
	// silenceLimit is how long the AM's host may leave what we send (a beat
	// each second) unacknowledged before the connection is broken.
	silenceLimit = 20 * time.Second
	maxMessage   = 64 << 20
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

// attend opens the stream.
func attend(ctx context.Context, cfg Config) (*line, error) {
	tlsConfig, err := cfg.Keys.Dialer()
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second, Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		e := c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silenceLimit/time.Millisecond))
		})
		return errors.Join(e, err)
	}}
	conn, err := grpc.NewClient("passthrough:///"+cfg.Master,
		grpc.WithTransportCredentials(credentials.NewTLS(tlsConfig)),
		// A dialer of our own also keeps proxies of the environment out.
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		}),
		grpc.WithReadBufferSize(16<<10), grpc.WithWriteBufferSize(16<<10),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
	)
	if err != nil {
		return nil, fmt.Errorf("connecting to the application master at %s: %w", cfg.Master, err)
	}
	// Not derived from ctx: at the end there is still something to be said.
	streamCtx, hangUp := context.WithCancel(context.Background())
	stream, err := open(ctx, streamCtx, conn)
	if err != nil {
		hangUp()
		conn.Close()
		return nil, fmt.Errorf("connecting to the application master at %s, for up to %v: %w; is that address reachable from this container's host?", cfg.Master, reachLimit, err)
	}
	l := &line{
		in: make(chan *proto.ToAgent), out: make(chan *proto.FromAgent, 256),
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

// open tries for a while: a network may not be up at once.
func open(ctx, streamCtx context.Context, conn *grpc.ClientConn) (grpc.BidiStreamingClient[proto.FromAgent, proto.ToAgent], error) {
	deadline := time.After(reachLimit)
	for {
		stream, err := proto.NewAgentsClient(conn).Attend(streamCtx)
		if err == nil {
			return stream, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		case <-deadline:
			return nil, err
		case <-time.After(250 * time.Millisecond):
			conn.ResetConnectBackoff()
		}
	}
}

// say queues a message. A beat is dropped where the AM does not keep up.
func (l *line) say(m *proto.FromAgent) {
	if m.GetBeat() != nil {
		select {
		case l.out <- m:
		default:
		}
		return
	}
	select {
	case l.out <- m:
	case <-time.After(silenceLimit): // the stream is as good as broken, and soon will be
	}
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
