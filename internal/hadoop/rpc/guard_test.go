package rpc_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
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

// TestGuardedCallIsTakenBack: what the kernel has not sent of a call that is given up never is, though
// the server is slow to take it: nor when it is another call, which needs no permission, that waits in vain.
func TestGuardedCallIsTakenBack(t *testing.T) {
	for name, timeout := range map[string]time.Duration{"itself": 0, "with another": 2 * time.Second} {
		t.Run(name, func(t *testing.T) { takenBack(t, timeout) })
	}
}

// largeCall is more than a connection takes unread, and less than the buffer of largeSends.
const largeCall = 1 << 20

// largeSends returns a client whose calls the kernel takes at once, however slow the server is.
func largeSends(address string, timeout time.Duration) (c *rpc.Client, closeClient func()) {
	c = rpc.New(rpc.Options{
		Protocol: "p", Addresses: []string{address}, User: "u", Retry: rpc.Retry{Limit: -1}, Timeout: timeout, Idle: time.Hour,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err == nil {
				err = conn.(*net.TCPConn).SetWriteBuffer(4 * largeCall)
			}
			return conn, err
		},
	})
	return c, func() { c.Close() }
}

// takenBack cancels a call, or, if timeout is not 0, has one that was sent before it wait that long.
func takenBack(t *testing.T, timeout time.Duration) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, closeClient := largeSends(l.Addr().String(), timeout)
	defer closeClient()
	ctx, cancel := context.WithCancel(rpc.Guarded(t.Context(), func() error { return nil }))
	defer cancel()
	done := make(chan error, 1)
	begin := func(ctx context.Context, text string) { go func() { done <- callContext(ctx, c, text) }() }
	const first = 2000
	if timeout > 0 {
		begin(t.Context(), strings.Repeat("y", first))
	} else {
		begin(ctx, strings.Repeat("x", largeCall))
	}
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
	if timeout > 0 {
		begin(ctx, strings.Repeat("x", largeCall))
		if _, err := io.ReadFull(conn, make([]byte, first)); err != nil {
			t.Fatal(err)
		}
	} else {
		cancel()
	}
	if err := <-done; err == nil {
		t.Fatal("the call was answered")
	}
	if timeout > 0 {
		<-done // the other one of the connection
	}
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	n, err := io.Copy(io.Discard, conn)
	if n >= largeCall-first || err == nil {
		t.Errorf("after the call was given up %d bytes of it have arrived, then: %v", n, err)
	}
}

// TestAKilledProcessTakesItsCallBack: what the kernel has not sent of a call never is, once the
// process is killed that made it.
func TestAKilledProcessTakesItsCallBack(t *testing.T) {
	const server = "SERVER_OF_THE_CALL"
	if address := os.Getenv(server); address != "" {
		c, closeClient := largeSends(address, 0)
		defer closeClient()
		t.Fatal(callContext(rpc.Guarded(t.Context(), func() error { return nil }), c, strings.Repeat("x", largeCall)))
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	caller := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	caller.Env = append(os.Environ(), server+"="+l.Addr().String())
	if err := caller.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(4096)
	if _, err := io.ReadFull(conn, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	_ = caller.Process.Kill()
	_ = caller.Wait()
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	if n, err := io.Copy(io.Discard, conn); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after the process was killed %d bytes of its call have arrived, then: %v", n, err)
	}
}
