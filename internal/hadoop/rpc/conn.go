package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/wire/common"
)

// pingInterval is how often a ping is sent on a connection while an answer is awaited; Java's
// ipc.ping.interval is a minute.
const pingInterval = 10 * time.Second

// call is one attempt of a call on one connection.
type call struct {
	id     int32
	packet []byte
	resp   proto.Message
	may    func() error // asked before it is sent; nil: it may (Guarded)

	// Guarded by conn.mu until done is closed.
	taken bool // the sender has begun to write it
	done  chan struct{}
	err   error
}

// conn is a connection. run owns the socket: it opens it, starts the sender, reads until the
// end, and fails the remaining calls.
type conn struct {
	c       *Client
	address string

	ctx    context.Context // ends with the connection
	cancel context.CancelFunc
	send   chan *call

	mu      sync.Mutex
	raw     net.Conn        // nil until it is open
	pending map[int32]*call // also those not sent yet
	guarded int             // how many of them were sent and are guarded
	ended   error           // why there are no more calls on it
	retired bool            // closes when pending is empty
}

func newConn(c *Client, address string) *conn {
	k := &conn{c: c, address: address, send: make(chan *call), pending: map[int32]*call{}}
	k.ctx, k.cancel = context.WithCancel(c.life)
	return k
}

// over reports whether new calls must use another connection.
func (k *conn) over() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ended != nil || k.retired
}

// retire closes the connection once its calls are done.
func (k *conn) retire() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.retired = true
	if len(k.pending) == 0 {
		k.cancel()
	}
}

// errRetired: a call came too late, and is to be made on a new connection.
var errRetired = errors.New("the connection was closed because it was idle")

// do carries out a call. sent reports whether the server may have received it.
func (k *conn) do(ctx context.Context, a *call, timeout time.Duration) (sent bool, err error) {
	k.mu.Lock()
	if k.ended != nil || k.retired {
		err := k.ended
		k.mu.Unlock()
		if err == nil {
			err = errRetired
		}
		return false, k.failure(err, false)
	}
	k.pending[a.id] = a
	k.mu.Unlock()

	timer := time.NewTimer(timeout)
	defer timer.Stop()
	send := k.send
	for {
		select {
		case send <- a:
			send = nil
		case <-a.done:
			return a.taken, a.err
		case <-ctx.Done():
			return k.forget(a, ctx.Err())
		case <-timer.C:
			// The server does not answer at all: later calls should not wait as long.
			err := fmt.Errorf("no answer from %s within %s", k.address, timeout)
			sent, err := k.forget(a, &unreachable{err: err, sent: true})
			k.fail(err)
			return sent, err
		}
	}
}

// forget cancels a call; its answer will be dropped.
func (k *conn) forget(a *call, err error) (bool, error) {
	k.mu.Lock()
	if k.pending[a.id] != a { // it is being answered: resp is not ours yet
		k.mu.Unlock()
		<-a.done
		return a.taken, a.err
	}
	defer k.mu.Unlock()
	if a.may != nil && a.taken {
		k.failLocked(errReset) // other calls are sent again
		return true, err
	}
	delete(k.pending, a.id)
	if k.retired && len(k.pending) == 0 {
		k.cancel()
	}
	return a.taken, err
}

// errReset ends the connection of a call that must not reach the server any more.
var errReset = errors.New("the connection was reset because a call on it was cancelled")

// fail ends the connection and its calls. Only the first reason is kept.
func (k *conn) fail(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failLocked(err)
}

func (k *conn) failLocked(err error) {
	if k.ended == nil {
		k.ended = err
	}
	if k.guarded > 0 {
		k.raw.Close() // before the call returns
		k.guarded = 0
	}
	for id, a := range k.pending {
		a.err = k.failure(err, a.taken)
		delete(k.pending, id)
		close(a.done)
	}
	k.cancel()
}

// failure returns the error of a call whose connection has ended: the server's refusal or a failed
// login as it is, for anything else that the server is unreachable.
func (k *conn) failure(err error, sent bool) error {
	var remote *RemoteError
	var login *loginError
	switch {
	case k.c.life.Err() != nil:
		return ErrClosed
	case errors.As(err, &remote), errors.As(err, &login):
		return err
	}
	return &unreachable{err: err, sent: sent}
}

// run opens the connection and serves it until its end. A login that was refused because of its
// ticket is tried once more, with another ticket.
func (k *conn) run() {
	defer k.cancel()
	err := k.serve()
	var stale *staleError
	if errors.As(err, &stale) {
		err = k.serve()
	}
	k.fail(err)
}

// serve is one attempt of run. It returns why the connection has ended.
func (k *conn) serve() error {
	raw, err := k.c.o.Dial(k.ctx, "tcp", k.address)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", k.address, err)
	}
	k.mu.Lock()
	k.raw = raw
	k.mu.Unlock()
	stop := context.AfterFunc(k.ctx, func() { raw.Close() })
	defer raw.Close()
	defer stop()

	opening, cancel := context.WithTimeout(k.ctx, k.c.o.Timeout)
	s, err := openStream(opening, raw, k.address, k.c.o.Login)
	cancel()
	if err == nil {
		err = s.writePacket(k.contextPacket())
	}
	if err != nil {
		return err
	}
	var sender sync.WaitGroup
	sender.Go(func() { k.sender(s) })
	err = k.receive(s)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%s closed the connection", k.address)
	}
	k.fail(err)
	sender.Wait()
	return err
}

// contextPacket names the protocol and, without SASL, the user; a token says
// itself whose it is (ProtoUtil.makeIpcConnectionContext).
func (k *conn) contextPacket() []byte {
	ctx := &common.IpcConnectionContextProto{Protocol: &k.c.o.Protocol}
	if k.c.o.Login == nil {
		ctx.UserInfo = &common.UserInformationProto{EffectiveUser: &k.c.o.User}
	}
	return packet(k.control(callContext), ctx)
}

func (k *conn) control(id int32) *common.RpcRequestHeaderProto {
	return &common.RpcRequestHeaderProto{
		RpcKind:    common.RpcKindProto_RPC_PROTOCOL_BUFFER.Enum(),
		RpcOp:      common.RpcRequestHeaderProto_RPC_FINAL_PACKET.Enum(),
		CallId:     &id,
		ClientId:   k.c.id,
		RetryCount: proto.Int32(-1),
	}
}

// sender writes calls, pings while answers are awaited, and retires an idle connection.
func (k *conn) sender(s *stream) {
	ping := time.NewTicker(pingInterval)
	defer ping.Stop()
	idle := time.NewTicker(k.c.o.Idle)
	defer idle.Stop()
	used := true
	for {
		var err error
		select {
		case a := <-k.send:
			used = true
			if k.take(a) {
				err = s.writePacket(a.packet)
			}
		case <-ping.C:
			if k.waiting() {
				used = true
				err = s.writePacket(packet(k.control(callPing)))
			}
		case <-idle.C:
			if !used && !k.waiting() {
				k.retire()
			}
			used = false
		case <-k.ctx.Done():
			return
		}
		if err != nil {
			k.fail(fmt.Errorf("send to %s: %w", k.address, err))
			return
		}
	}
}

// take marks a call as sent, unless it was cancelled or may not be sent any more.
func (k *conn) take(a *call) bool {
	var refused error
	if a.may != nil {
		refused = a.may()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pending[a.id] != a {
		return false
	}
	if refused != nil {
		delete(k.pending, a.id)
		a.err = refused
		close(a.done)
		return false
	}
	a.taken = true
	if a.may != nil {
		if k.guarded++; k.guarded == 1 {
			dropUnsent(k.raw, true)
		}
	}
	return true
}

func (k *conn) waiting() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.pending) > 0
}

// receive hands answers to their calls until the connection ends.
func (k *conn) receive(s *stream) error {
	for {
		b, err := s.readPacket()
		if err != nil {
			return fmt.Errorf("receive from %s: %w", k.address, err)
		}
		h, body, err := parseResponse(b)
		if err != nil {
			return err
		}
		failure := remoteError(h)
		known := k.answer(int32(h.GetCallId()), body, failure)
		switch {
		case h.GetStatus() != common.RpcResponseHeaderProto_FATAL:
		case known: // it is that call's; the others have only lost their connection
			return fmt.Errorf("%s closed the connection over another call: %v", k.address, failure)
		default:
			return failure
		}
	}
}

// answer ends a call; it reports whether there was one.
func (k *conn) answer(id int32, body []byte, failure error) bool {
	k.mu.Lock()
	a, ok := k.pending[id]
	if ok {
		// From here on the call is owned here: forget does not find it.
		delete(k.pending, id)
		if a.may != nil && a.taken {
			if k.guarded--; k.guarded == 0 {
				dropUnsent(k.raw, false)
			}
		}
	}
	k.mu.Unlock()
	if !ok {
		return false
	}
	if failure == nil {
		if err := unmarshalDelimited(body, a.resp); err != nil {
			failure = fmt.Errorf("the answer of %s cannot be read: %w", k.address, err)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	a.err = failure
	close(a.done)
	if k.retired && len(k.pending) == 0 {
		k.cancel()
	}
	return true
}
