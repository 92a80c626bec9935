package steer_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/container/steer"
	"holdfast/test/ports"
)

func forwarder(t *testing.T) *steer.Forwarder {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	block, err := steer.ClaimBlock()
	if err != nil {
		t.Fatal(err)
	}
	f := steer.NewForwarder(block, own, "192.0.2.1", logrus.NewEntry(log))
	t.Cleanup(f.Close)
	return f
}

// TestBlocksAreOfOneAgentEach: what stands for a peer is an address of that agent alone.
func TestBlocksAreOfOneAgentEach(t *testing.T) {
	claim := func() *steer.Block {
		t.Helper()
		b, err := steer.ClaimBlock()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	first, second := claim(), claim()
	defer first.Release()
	defer second.Release()
	at := first.Address(peer)
	if at == second.Address(peer) || !at.IsLoopback() || at.As4()[2] != peer.As4()[2] || at.As4()[3] != peer.As4()[3] {
		t.Errorf("%s is %s for one agent and %s for another", peer, at, second.Address(peer))
	}
}

func TestForwarder(t *testing.T) {
	f := forwarder(t)
	first, second := greet(t, "127.0.0.1", "first"), greet(t, "127.0.0.2", "second")
	at := netip.AddrPortFrom(peer, freePort(t)).String()
	r := func(to netip.AddrPort) []steer.Route {
		return []steer.Route{{Virtual: netip.MustParseAddrPort(at), Host: to.Addr().String(), Port: to.Port()}}
	}
	dial := func() (net.Conn, string) {
		t.Helper()
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		b := make([]byte, 100)
		c.SetReadDeadline(time.Now().Add(patience))
		n, err := c.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return c, string(b[:n])
	}
	refused := func() {
		t.Helper()
		if _, err := net.Dial("tcp", at); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("a peer without a route: %v", err)
		}
	}
	refused()
	f.Replace(r(first))
	old, text := dial()
	if text != "first" {
		t.Errorf("heard %q", text)
	}
	f.Replace(r(second))
	kept, text := dial()
	if text != "second" {
		t.Errorf("after the move, heard %q", text)
	}
	if n := f.Cut(steer.Routes{}, []netip.Addr{own}, nil); n != 0 {
		t.Errorf("%d connections to somebody else were cut", n)
	}
	if n := f.Cut(steer.Routes{}, []netip.Addr{peer}, nil); n != 2 {
		t.Errorf("%d connections were cut instead of 2", n)
	}
	for _, c := range []net.Conn{old, kept} {
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) || strings.Contains(err.Error(), "timeout") {
			t.Errorf("a connection that was cut: %v", err)
		}
	}
	f.Replace(nil)
	refused()
}

// TestForwarderListensOnceItCan: where another program has a peer's address at first, the peer
// is reached once that program has ended, without new routes.
func TestForwarderListensOnceItCan(t *testing.T) {
	f := forwarder(t)
	at := netip.AddrPortFrom(peer, freePort(t))
	other, err := net.Listen("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	there := greet(t, "127.0.0.1", "the peer")
	route := steer.Route{Virtual: at, Host: there.Addr().String(), Port: there.Port()}
	f.Replace([]steer.Route{route})
	f.Replace([]steer.Route{route}) // as with each heartbeat
	other.Close()
	heard := func() string {
		c, err := net.Dial("tcp", at.String())
		if err != nil {
			return err.Error()
		}
		defer c.Close()
		c.SetReadDeadline(time.Now().Add(patience))
		b := make([]byte, 100)
		n, _ := c.Read(b)
		return string(b[:n])
	}
	text, deadline := heard(), time.Now().Add(patience)
	for ; text != "the peer" && time.Now().Before(deadline); text = heard() {
		time.Sleep(10 * time.Millisecond)
	}
	if text != "the peer" {
		t.Errorf("heard %q", text)
	}
	f.Replace(nil)
	if text := heard(); !strings.Contains(text, "refused") {
		t.Errorf("a route that was withdrawn: heard %q", text)
	}
}

// TestForwarderWaitsForAPeer: a connection to a peer that does not listen yet is passed on
// once it does. Its caller was told already that it is connected, and may not try again.
func TestForwarderWaitsForAPeer(t *testing.T) {
	f := forwarder(t)
	at, there := netip.AddrPortFrom(peer, freePort(t)), freePort(t)
	f.Replace([]steer.Route{{Virtual: at, Host: "127.0.0.1", Port: there}})
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", at.String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	read := func(c net.Conn, wait time.Duration) (string, error) {
		b := make([]byte, 100)
		c.SetReadDeadline(time.Now().Add(wait))
		n, err := c.Read(b)
		return string(b[:n]), err
	}
	early, other := dial(), dial()
	if _, err := read(early, 300*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("while nobody listens: %v", err)
	}
	f.Cut(steer.Routes{}, []netip.Addr{netip.MustParseAddr("127.77.9.9")}, nil) // of another
	l, err := net.Listen("tcp4", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), there).String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			fmt.Fprint(c, "at last")
		}
	})
	for _, c := range []net.Conn{early, other} {
		if text, err := read(c, patience); text != "at last" {
			t.Errorf("heard %q, %v", text, err)
		}
	}
	l.Close()
	wg.Wait()

	late := dial()
	if _, err := read(late, 100*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("while nobody listens again: %v", err)
	}
	f.Cut(steer.Routes{}, []netip.Addr{peer}, nil)
	if _, err := read(late, patience); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection that waited for a lost peer: %v", err)
	}
}

func TestForwarderPassesWhatIsSent(t *testing.T) {
	f := forwarder(t)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // answers when all was sent
				defer c.Close()
				b, _ := io.ReadAll(c)
				fmt.Fprintf(c, "%d", len(b))
			}()
		}
	}()
	at := netip.AddrPortFrom(peer, freePort(t))
	f.Replace([]steer.Route{{Virtual: at, Host: "localhost", Port: uint16(l.Addr().(*net.TCPAddr).Port)}})
	c, err := net.Dial("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(c); err != nil || string(b) != "1048576" {
		t.Fatalf("heard %q, %v", b, err)
	}
}

func freePort(t *testing.T) uint16 {
	t.Helper()
	return uint16(ports.ForTest(t, 1)[0])
}
