package steer

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"holdfast/internal/backoff"
)

// Forwarder replaces a Supervisor where the kernel does not allow one (before Linux 5.6): it
// listens on loopback addresses that stand for the peers' virtual ones, in a block that no other
// agent of the host has, and forwards connections. Data is copied, bind is not steered, and only
// ports with a route are forwarded.
//
// A peer on the same host whose port is the one that others know needs no forwarding: a
// server that listens on all addresses can be reached at any loopback address.
//
// Goroutines: one for each listener, and two for each connection; Close ends
// them and waits.
type Forwarder struct {
	block *Block
	own   netip.Addr
	host  string
	log   *logrus.Entry
	wg    sync.WaitGroup

	ctx  context.Context // ends with Close
	stop context.CancelFunc

	mu        sync.Mutex
	closed    bool
	listeners map[netip.AddrPort]*forwarding
	conns     map[*net.TCPConn]netip.Addr // both ends of each, by virtual address
}

type forwarding struct { // guarded by Forwarder.mu
	l     *net.TCPListener // nil while something else listens there
	route Route
}

// close stops accepting.
func (w *forwarding) close() {
	if w.l != nil {
		w.l.Close()
	}
}

const (
	forwardDial = 10 * time.Second
	// forwardHeld is how long a connection waits for a peer that refuses it. Its caller was
	// told that it is connected, before the peer could be asked: some try again when a
	// connection is refused, as by a peer that does not listen yet, and give up when one
	// is reset (PyTorch's TCPStore).
	forwardHeld = 30 * time.Second
	// forwardAgain is the pause after the first refusal; it doubles up to forwardAgainMax.
	forwardAgain, forwardAgainMax = 10 * time.Millisecond, 250 * time.Millisecond
	// listenAgain is the pause after the first failure to listen; it doubles up to
	// listenAgainMax.
	listenAgain, listenAgainMax = 100 * time.Millisecond, 5 * time.Second
)

// NewForwarder makes a forwarder for a task, on a host that its peers reach as host. The
// addresses of routes are in the block, which it owns from now on, and own is that of the task.
func NewForwarder(block *Block, own netip.Addr, host string, log *logrus.Entry) *Forwarder {
	ctx, stop := context.WithCancel(context.Background())
	return &Forwarder{
		block: block, own: own, host: host, log: log, ctx: ctx, stop: stop,
		listeners: map[netip.AddrPort]*forwarding{}, conns: map[*net.TCPConn]netip.Addr{},
	}
}

// Replace replaces all routes. It does not affect existing connections.
func (f *Forwarder) Replace(routes []Route) Routes {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return Routes{}
	}
	wanted := map[netip.AddrPort]Route{}
	for _, r := range routes {
		here := r.Host == f.host && r.Port == r.Virtual.Port()
		if r.Virtual.Addr() != f.own && !here {
			wanted[r.Virtual] = r
		}
	}
	for at, l := range f.listeners {
		if _, ok := wanted[at]; !ok {
			l.close()
			delete(f.listeners, at)
		}
	}
	for at, r := range wanted {
		if l := f.listeners[at]; l != nil {
			l.route = r
			continue
		}
		w := &forwarding{route: r}
		f.listeners[at] = w
		if err := w.listen(at); err != nil {
			f.log.WithError(err).WithField("address", at.String()).Error("cannot forward connections from a peer's virtual address yet; the task cannot reach that peer until this works")
			f.wg.Go(func() { f.listenLater(w, at) })
			continue
		}
		f.wg.Go(func() { f.accept(w) })
	}
	return Routes{}
}

func (w *forwarding) listen(at netip.AddrPort) (err error) {
	w.l, err = net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(at))
	return err
}

// listenLater accepts connections once what listens in its place has ended, unless the
// route has been withdrawn by then.
func (f *Forwarder) listenLater(w *forwarding, at netip.AddrPort) {
	for wait := backoff.New(listenAgain, listenAgainMax); wait.Wait(f.ctx); {
		f.mu.Lock()
		withdrawn := f.closed || f.listeners[at] != w
		works := !withdrawn && w.listen(at) == nil
		f.mu.Unlock()
		switch {
		case withdrawn:
			return
		case works:
			f.log.WithField("address", at.String()).Info("connections from a peer's virtual address are forwarded now")
			f.accept(w)
			return
		}
	}
}

func (f *Forwarder) accept(w *forwarding) {
	for {
		c, err := w.l.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			f.log.WithError(err).Warn("accepting a connection to be forwarded")
			time.Sleep(100 * time.Millisecond) // out of descriptors, most likely
			continue
		}
		virtual := f.routeOf(w).Virtual.Addr()
		if !f.track(c, virtual) {
			c.Close()
			return
		}
		f.wg.Go(func() {
			defer f.untrack(c)
			f.forward(c, virtual, w)
		})
	}
}

func (f *Forwarder) routeOf(w *forwarding) Route {
	f.mu.Lock()
	defer f.mu.Unlock()
	return w.route
}

// track registers a connection for Cut and Close; false after Close.
func (f *Forwarder) track(c *net.TCPConn, virtual netip.Addr) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.conns[c] = virtual
	return true
}

func (f *Forwarder) untrack(c *net.TCPConn) {
	f.mu.Lock()
	delete(f.conns, c)
	f.mu.Unlock()
	c.Close()
}

func (f *Forwarder) forward(c *net.TCPConn, virtual netip.Addr, w *forwarding) {
	t, err := f.dial(c, w)
	if err != nil {
		_ = c.SetLinger(0) // a reset is the closest to a refusal that is possible
		return
	}
	if !f.track(t, virtual) {
		t.Close()
		return
	}
	defer f.untrack(t)
	var both sync.WaitGroup
	pass := func(to, from *net.TCPConn) {
		if _, err := io.Copy(to, from); err != nil { // splice(2): it does not come through our memory
			_ = to.SetLinger(0)
			to.Close()
			from.Close()
			return
		}
		_ = to.CloseWrite()
	}
	both.Go(func() { pass(t, c) })
	pass(c, t)
	both.Wait()
}

// dial connects to where the route leads. While the peer refuses, it tries again, for
// forwardHeld at most, and for as long as the caller's connection c is open.
func (f *Forwarder) dial(c *net.TCPConn, w *forwarding) (*net.TCPConn, error) {
	dialer := net.Dialer{Timeout: forwardDial}
	end := time.Now().Add(forwardHeld)
	for wait := backoff.New(forwardAgain, forwardAgainMax); ; {
		r := f.routeOf(w)
		to, err := dialer.DialContext(f.ctx, "tcp", net.JoinHostPort(r.Host, strconv.Itoa(int(r.Port))))
		if err == nil {
			return to.(*net.TCPConn), nil
		}
		if !errors.Is(err, syscall.ECONNREFUSED) || time.Now().After(end) || !wait.Wait(f.ctx) || hungUp(c) {
			return nil, err
		}
	}
}

// hungUp reports whether a connection was closed by its caller, who may have sent all and
// wait for an answer: such a one is not told from one that has given up.
func hungUp(c *net.TCPConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return true
	}
	var events int16
	err = raw.Control(func(fd uintptr) { events = poll(int(fd), unix.POLLRDHUP, 0) })
	return err != nil || events != 0
}

// Cut ends the connections to peers that are lost.
func (f *Forwarder) Cut(_ Routes, lost []netip.Addr, _ []int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for c, virtual := range f.conns {
		for _, a := range lost {
			if a == virtual {
				_ = c.SetLinger(0)
				c.Close()
				n++
			}
		}
	}
	return (n + 1) / 2
}

// Close ends all listeners and connections.
func (f *Forwarder) Close() {
	f.stop()
	f.mu.Lock()
	f.closed = true
	for _, l := range f.listeners {
		l.close()
	}
	for c := range f.conns {
		c.Close()
	}
	f.mu.Unlock()
	f.wg.Wait()
	f.block.Release()
}
