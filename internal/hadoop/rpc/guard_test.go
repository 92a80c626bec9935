package rpc_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/internal/hadoop/rpc"
)

// TestGuardIsAskedBeforeSending: a call whose right was lost is not sent, and
// others on the connection are.
func TestGuardIsAskedBeforeSending(t *testing.T) {
	var received atomic.Int64
	f := newFarm(t, map[string]func(*server){"a": func(s *server) {
		s.each(func(r request) { received.Add(1); s.reply(r) })
	}})
	c, closeClient := f.client(rpc.Options{Addresses: []string{"a"}})
	defer closeClient()
	lost := errors.New("the lease is over")
	asked := 0
	guarded := rpc.Guarded(t.Context(), func() error {
		if asked++; asked > 1 {
			return lost
		}
		return nil
	})
	if err := callContext(guarded, c, "one"); err != nil {
		t.Fatal(err)
	}
	if err := callContext(guarded, c, "two"); !errors.Is(err, lost) {
		t.Errorf("a call that may not be sent any more: %v", err)
	}
	if err := call(c, "three"); err != nil {
		t.Fatal(err)
	}
	if n := received.Load(); n != 2 {
		t.Errorf("the server has received %d calls, want 2", n)
	}
}

// TestGuardedCallIsTakenBack: what the kernel has not sent of a call that is given
// up never is, though the server is slow to take it.
func TestGuardedCallIsTakenBack(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const size = 1 << 20 // more than a connection takes unread, and less than the sender's buffer
	c := rpc.New(rpc.Options{
		Protocol: "p", Addresses: []string{l.Addr().String()}, User: "u", Retry: rpc.Retry{Limit: -1},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err == nil {
				err = conn.(*net.TCPConn).SetWriteBuffer(4 * size)
			}
			return conn, err
		},
	})
	defer c.Close()
	ctx, cancel := context.WithCancel(rpc.Guarded(t.Context(), func() error { return nil }))
	done := make(chan error, 1)
	go func() { done <- callContext(ctx, c, strings.Repeat("x", size)) }()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(4096)
	// The call has begun to arrive.
	if _, err := io.ReadFull(conn, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err == nil {
		t.Fatal("the call was answered")
	}
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	n, err := io.Copy(io.Discard, conn)
	if n >= size-1000 || err == nil {
		t.Errorf("after the call was given up %d bytes of it have arrived, then: %v", n, err)
	}
}
