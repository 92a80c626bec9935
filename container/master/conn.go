// Package master is the agent's side of its connection to the application master:
// the stream, the way to the one that has taken over, the lease that answers renew,
// and the commits, which are sent again until they are acknowledged.
package master

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"holdfast/hdfsckpt/store"
	"holdfast/internal/jobtls"
	"holdfast/internal/tcp"
	"holdfast/proto"
)

const (
	// reachLimit is how long an agent without a task looks for its AM.
	reachLimit = 30 * time.Second
	// silenceLimit is how long the AM's host may leave what we send (a heartbeat
	// each second) unacknowledged before the connection is broken.
	silenceLimit = 20 * time.Second
	dialLimit    = 3 * time.Second
	maxMessage   = 64 << 20
	backlog      = 256 // messages that may wait to be sent
	window       = 1 << 20
)

// Options are what an agent connects with.
type Options struct {
	Container string // as the driver named it
	Keys      jobtls.Keys
	// JobStore opens the job's directory, where AddressFile is.
	JobStore func(context.Context) (store.Store, error)
	Log      *logrus.Entry
}

// Conn is the agent's stream to the AM. Its methods are for one goroutine.
type Conn struct {
	// Receive gives what the AM sends. It is closed when the stream has ended.
	Receive chan *proto.ToAgent

	err     error // why the stream has ended; once Receive is closed
	out     chan *proto.FromAgent
	cancel  context.CancelFunc
	conn    *grpc.ClientConn
	sending sync.WaitGroup
}

// dial opens a stream to the AM at an address.
func dial(ctx context.Context, o Options, address string) (*Conn, error) {
	tlsConfig, err := o.Keys.Dialer()
	if err != nil {
		return nil, err
	}
	dialer := tcp.Dialer(dialLimit, silenceLimit)
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(credentials.NewTLS(tlsConfig)),
		// The explicit dialer also avoids proxies named in the environment.
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		}),
		// Dynamic windows are measured by pings, which the master would have to answer.
		grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window),
		grpc.WithReadBufferSize(16<<10), grpc.WithWriteBufferSize(16<<10),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
	)
	if err != nil {
		return nil, err
	}
	// Not derived from ctx: the last messages are sent after its end.
	streamCtx, cancel := context.WithCancel(context.Background())
	cutShort := context.AfterFunc(ctx, cancel)
	stream, err := proto.NewAgentServiceClient(conn).Connect(metadata.AppendToOutgoingContext(streamCtx,
		proto.HeaderContainer, o.Container, proto.HeaderPass, string(o.Keys.Pass)))
	if err == nil && !cutShort() {
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		conn.Close()
		return nil, err
	}
	c := &Conn{
		Receive: make(chan *proto.ToAgent), out: make(chan *proto.FromAgent, backlog),
		cancel: cancel, conn: conn,
	}
	go func() {
		defer close(c.Receive)
		for {
			m, err := stream.Recv()
			if err != nil {
				c.err = err
				return
			}
			select {
			case c.Receive <- m:
			case <-streamCtx.Done():
				c.err = streamCtx.Err()
				return
			}
		}
	}()
	c.sending.Go(func() {
		for m := range c.out {
			if stream.Send(m) != nil {
				break // Recv returns why
			}
		}
		_ = stream.CloseSend()
		for range c.out {
		}
	})
	return c, nil
}

// Err returns why the stream has ended. Receive is closed.
func (c *Conn) Err() error { return c.err }

// Break ends the stream; Receive is closed soon.
func (c *Conn) Break() { c.cancel() }

// Send queues a message, whose strings may come from programs: what is not UTF-8 in them is
// replaced in m. Where the AM does not keep up, a heartbeat is dropped, and for anything else
// the stream is closed: what it missed is sent on the next one.
func (c *Conn) Send(m *proto.FromAgent) {
	proto.MakeText(m) // else it could not be encoded, and the stream would end
	select {
	case c.out <- m:
	default:
		if m.GetHeartbeat() == nil {
			c.cancel()
		}
	}
}

// Abandon closes a stream without waiting for what is queued.
func (c *Conn) Abandon() {
	c.cancel()
	c.Close()
}

// Close sends what is queued, waits for the AM's side to end, within limits, and
// closes the connection.
func (c *Conn) Close() {
	close(c.out)
	sent := make(chan struct{})
	go func() {
		c.sending.Wait()
		close(sent)
	}()
	timeout := time.After(3 * time.Second)
	for in := c.Receive; in != nil; {
		select {
		case _, open := <-in:
			if !open {
				in = nil // the AM has closed its side: it has received all
			}
		case <-timeout:
			in = nil
		}
	}
	c.cancel()
	<-sent
	c.conn.Close()
}
