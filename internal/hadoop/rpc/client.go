package rpc

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/wire/common"
	"holdfast/internal/proc"
	"holdfast/internal/tcp"
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
	active int     // index into o.Addresses
	conns  []*conn // to each of them; nil or ended at times
	closed bool
	// oneIsActive is what a server has answered to oneActive, if kindKnown.
	kindKnown, oneIsActive bool
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
	c := &Client{o: o, id: make([]byte, 16), conns: make([]*conn, len(o.Addresses))}
	rand.Read(c.id) // never fails
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

// CurrentUser returns the user as whom calls are made without security: HADOOP_USER_NAME, or
// the user of this process, by its uid if that has no name.
func CurrentUser() string {
	if name := os.Getenv("HADOOP_USER_NAME"); name != "" {
		return name
	}
	if name, err := proc.UserName(); err == nil {
		return name
	}
	return strconv.Itoa(os.Getuid())
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

// Reconnect closes connections as soon as their calls are done, so that later calls log in
// again, after a token was replaced.
func (c *Client) Reconnect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for index := range c.conns {
		c.retire(index)
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
	id := c.nextID()
	c.mu.Unlock()

	// The pauses are not those of package backoff: they come after a round over all
	// servers only, and end with the client, too.
	start, limit := time.Now(), Limit(ctx, c.o.Retry.Limit)
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
		case Unreachable(err):
			c.rotate(index)
			if sent && !c.o.Retry.Resend {
				return fmt.Errorf("call %s at %s: %w", method, c.o.Addresses[index], err)
			}
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
		if limit < 0 || time.Since(start)+pause > limit || errors.Is(err, errHTTP) {
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

// nextID returns the id of a new call; c.mu is held.
func (c *Client) nextID() int32 {
	id := c.call
	c.call = (c.call + 1) & 0x7fffffff
	return id
}

// ask makes one call at an address. sent reports whether the server may have received
// it.
func (c *Client) ask(ctx context.Context, index int, id, retry int32, protocol, method string, req, resp proto.Message) (sent bool, err error) {
	k, err := c.connection(index)
	if err != nil {
		return false, err
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
				DeclaringClassProtocolName: &protocol,
				ClientProtocolVersion:      &c.o.Version,
			},
			req),
		resp: resp,
		may:  guardOf(ctx),
		done: make(chan struct{}),
	}
	return k.do(ctx, call, c.o.Timeout)
}

// connection returns the connection to an address, maybe not yet open.
func (c *Client) connection(index int) (*conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	if k := c.conns[index]; k == nil || k.over() {
		c.conns[index] = newConn(c, c.o.Addresses[index])
		c.wg.Go(c.conns[index].run)
	}
	return c.conns[index], nil
}

// preferred returns the index of the active address.
func (c *Client) preferred() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.active
}

// rotate makes the next address active, unless another call has done so.
func (c *Client) rotate(from int) { c.prefer((from+1)%len(c.o.Addresses), from) }

// prefer makes an address active in place of one, unless another call has done so.
func (c *Client) prefer(index, from int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active != from || index == from {
		return
	}
	c.active = index
	c.retire(from)
}

// retire closes the connection to an address, if there is one, once its calls are
// done; c.mu is held.
func (c *Client) retire(index int) {
	if k := c.conns[index]; k != nil {
		k.retire()
	}
	c.conns[index] = nil
}

// unacknowledged is for how long what was sent may stay unacknowledged.
const unacknowledged = 30 * time.Second

// dial connects over TCP, and detects a host that has silently gone away.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	return tcp.Dialer(20*time.Second, unacknowledged).DialContext(ctx, network, address)
}
