package rpc

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/wire/common"
)

// Client calls one protocol of one service, which may have several servers.
// Any number of goroutines may use it.
type Client struct {
	o  Options
	id []byte // 16 bytes, with a call id it names a call for the retry cache

	life context.Context // ends with Close
	end  context.CancelFunc
	wg   sync.WaitGroup // connections' goroutines

	mu     sync.Mutex
	call   int32
	active int   // index into o.Addresses
	conn   *conn // to the active address; nil or ended at times
	closed bool
}

var _ Caller = (*Client)(nil)

// ErrClosed is returned by calls on a closed client.
var ErrClosed = errors.New("the client is closed")

func newClient(o Options) *Client {
	if o.Version == 0 {
		o.Version = 1
	}
	if o.User == "" && o.Login == nil {
		o.User = CurrentUser()
	}
	if o.Dial == nil {
		o.Dial = dial
	}
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Minute
	}
	if o.Idle == 0 {
		o.Idle = 10 * time.Second
	}
	if o.Retry.Limit == 0 {
		o.Retry.Limit = 20 * time.Second
	}
	if o.Retry.Pause == 0 {
		o.Retry.Pause = 100 * time.Millisecond
	}
	if o.Retry.MaxPause == 0 {
		o.Retry.MaxPause = 3 * time.Second
	}
	c := &Client{o: o, id: make([]byte, 16)}
	rand.Read(c.id) // never fails
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

// CurrentUser is who calls are made as without security: HADOOP_USER_NAME, or
// the user of this process.
func CurrentUser() string {
	if name := os.Getenv("HADOOP_USER_NAME"); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return os.Getenv("USER")
}

// Close ends the connections; calls in flight fail with ErrClosed.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.end()
	c.wg.Wait()
	return nil
}

// Reconnect closes the connection as soon as its calls are done, so that later
// calls log in anew: for a token that was replaced.
func (c *Client) Reconnect() {
	c.mu.Lock()
	old := c.conn
	c.conn = nil
	c.mu.Unlock()
	if old != nil {
		old.retire()
	}
}

// Call implements Caller.
func (c *Client) Call(ctx context.Context, method string, req, resp proto.Message) error {
	if len(c.o.Addresses) == 0 {
		return fmt.Errorf("call %s: no address of the service is known", method)
	}
	if err := proto.CheckInitialized(req); err != nil {
		return fmt.Errorf("call %s: the request is incomplete: %w", method, err)
	}
	c.mu.Lock()
	id := c.call
	c.call = (c.call + 1) & 0x7fffffff
	c.mu.Unlock()

	start := time.Now()
	pause := c.o.Retry.Pause
	resent, round := int32(0), 0
	for try := 1; ; try++ {
		index, sent, err := c.attempt(ctx, id, resent, method, req, resp)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("call %s at %s, without an answer for %s: %w", method, c.o.Addresses[index], time.Since(start).Round(time.Millisecond), err)
		}
		switch {
		case errors.Is(err, errRetired): // it never left; there is a new connection
			continue
		case IsStandby(err):
			c.rotate(index)
		case IsRetriable(err):
		case Unreachable(err) && (!sent || c.o.Retry.Resend):
			c.rotate(index)
		default: // also ErrClosed
			return fmt.Errorf("call %s at %s: %w", method, c.o.Addresses[index], err)
		}
		if sent {
			resent++
		}
		// All servers are tried one after the other, then there is a pause.
		if round++; round%len(c.o.Addresses) != 0 && !IsRetriable(err) {
			continue
		}
		if c.o.Retry.Limit < 0 || time.Since(start)+pause > c.o.Retry.Limit || errors.Is(err, errHTTP) {
			return c.o.gaveUp(method, try, err)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("call %s at %s: %w (last: %w)", method, c.o.Addresses[index], ctx.Err(), err)
		case <-c.life.Done():
			timer.Stop()
			return fmt.Errorf("call %s: %w", method, ErrClosed)
		}
		pause = min(2*pause, c.o.Retry.MaxPause)
	}
}

// attempt makes one call at the active address. sent tells whether the server
// may have received it.
func (c *Client) attempt(ctx context.Context, id, retry int32, method string, req, resp proto.Message) (index int, sent bool, err error) {
	k, index, err := c.connection()
	if err != nil {
		return index, false, err
	}
	call := &call{
		id: id,
		packet: packet(
			&common.RpcRequestHeaderProto{
				RpcKind:    common.RpcKindProto_RPC_PROTOCOL_BUFFER.Enum(),
				RpcOp:      common.RpcRequestHeaderProto_RPC_FINAL_PACKET.Enum(),
				CallId:     &id,
				ClientId:   c.id,
				RetryCount: &retry,
			},
			&common.RequestHeaderProto{
				MethodName:                 &method,
				DeclaringClassProtocolName: &c.o.Protocol,
				ClientProtocolVersion:      &c.o.Version,
			},
			req),
		resp: resp,
		done: make(chan struct{}),
	}
	sent, err = k.do(ctx, call, c.o.Timeout)
	return index, sent, err
}

// connection returns the connection to the active address, maybe not yet open.
func (c *Client) connection() (*conn, int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, c.active, ErrClosed
	}
	if c.conn == nil || c.conn.over() {
		c.conn = newConn(c, c.o.Addresses[c.active])
		c.wg.Go(c.conn.run)
	}
	return c.conn, c.active, nil
}

// rotate makes the next address active, unless another call has done so.
func (c *Client) rotate(from int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active != from || len(c.o.Addresses) == 1 {
		return
	}
	c.active = (from + 1) % len(c.o.Addresses)
	if c.conn != nil {
		c.conn.retire()
	}
	c.conn = nil
}

// dial connects over TCP, with a bound on how long sent data may go
// unacknowledged: that is how a host that has silently gone is noticed.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: 20 * time.Second, Control: userTimeout}
	return d.DialContext(ctx, network, address)
}
