package steer

import (
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// Route says where a virtual address leads.
type Route struct {
	Virtual netip.AddrPort
	// Host is an address or a name, resolved when it is used.
	Host string
	Port uint16
}

// Routes is a set of routes that was in force.
type Routes struct {
	routes []Route
	number int // counts replacements
}

// way is where a socket was steered to.
type way struct {
	virtual netip.Addr
	number  int // of the Routes then in force
}

// table has the current routes, and which sockets were steered by which routes.
type table struct {
	mu      sync.Mutex
	virtual map[netip.Addr]bool // all virtual addresses
	own     netip.Addr
	v6      bool // peers connect by IPv6
	present Routes

	// Sockets that were steered, by SO_COOKIE, which the kernel never uses
	// twice; the oldest are forgotten.
	steered map[uint64]way
	order   []uint64
	next    int
	tried   map[netip.Addr]bool // virtual addresses to which one was

	underway map[*connecting]bool
	cut      map[netip.Addr]int // the last Routes whose connections to a virtual address were cut
}

// remembered bounds how many sockets are remembered.
const remembered = 8192

func newTable() *table {
	return &table{
		steered: map[uint64]way{}, tried: map[netip.Addr]bool{},
		underway: map[*connecting]bool{}, cut: map[netip.Addr]int{},
	}
}

func (t *table) host(own netip.Addr, at string, virtual []netip.Addr) {
	real, err := netip.ParseAddr(at)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.v6 = err == nil && !real.Unmap().Is4()
	t.own, t.virtual = own, map[netip.Addr]bool{own: true}
	for _, a := range virtual {
		t.virtual[a] = true
	}
}

func (t *table) reachedByV6() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.v6
}

func (t *table) isOwn(a netip.Addr) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.own.IsValid() && a.Unmap() == t.own
}

// isOwnPort reports whether peers are led to a port of this host when they connect to the
// task's virtual address.
func (t *table) isOwnPort(port uint16) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.present.routes, func(r Route) bool { return r.Virtual.Addr() == t.own && r.Port == port })
}

// replace returns the former routes.
func (t *table) replace(routes []Route) Routes {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.present
	t.present = Routes{routes: slices.Clone(routes), number: before.number + 1}
	return before
}

// lookup returns the route of a destination. steer is false if the destination is not virtual;
// ok is false if there is no route. For a port without a route it returns the same port of the
// peer's host.
func (t *table) lookup(to netip.AddrPort) (r Route, number int, steer, ok bool) {
	a := to.Addr().Unmap()
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.virtual[a] {
		return Route{}, 0, false, false
	}
	for _, c := range t.present.routes {
		if c.Virtual.Addr() != a {
			continue
		}
		if c.Virtual.Port() == to.Port() {
			r, ok = c, true
			break
		}
		r, ok = Route{Host: c.Host, Port: to.Port()}, true
	}
	if a == t.own {
		if r.Port == 0 {
			r.Port = to.Port()
		}
		r.Host, ok = "127.0.0.1", true
	}
	r.Virtual = to
	return r, t.present.number, true, ok
}

// begin records that a socket is about to be connected, and where it is steered to. before
// reports whether one was steered there before. c is nil if the routes that led there have been
// cut since they were looked up. end must be called once the connect has returned.
func (t *table) begin(sock int, w way) (c *connecting, before bool) {
	cookie, err := unix.GetsockoptUint64(sock, unix.SOL_SOCKET, unix.SO_COOKIE)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isCut(w) {
		return nil, false
	}
	before, t.tried[w.virtual] = t.tried[w.virtual], true
	if err == nil {
		t.remember(cookie, w)
	}
	c = &connecting{way: w, cookie: cookie, sock: sock}
	t.underway[c] = true
	return c, before
}

// end records that a connect has returned; its socket may be closed from then on.
func (t *table) end(c *connecting) {
	t.mu.Lock()
	delete(t.underway, c)
	t.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

// isCut reports whether connections of that way have been cut; t.mu is held.
func (t *table) isCut(w way) bool {
	last, any := t.cut[w.virtual]
	return any && w.number <= last
}

func (t *table) wasCut(w way) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.isCut(w)
}

// cutBefore has connects fail that lead to virtual addresses by some routes or earlier ones,
// and returns those that are under way.
func (t *table) cutBefore(before Routes, lost []netip.Addr) []*connecting {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range lost {
		t.cut[a] = max(t.cut[a], before.number)
	}
	var list []*connecting
	for c := range t.underway {
		if slices.Contains(lost, c.way.virtual) && t.isCut(c.way) {
			list = append(list, c)
		}
	}
	return list
}

// remember records where a socket was steered to; t.mu is held.
func (t *table) remember(cookie uint64, w way) {
	if _, known := t.steered[cookie]; !known {
		if len(t.order) < remembered {
			t.order = append(t.order, cookie)
		} else {
			delete(t.steered, t.order[t.next])
			t.order[t.next] = cookie
			t.next = (t.next + 1) % remembered
		}
	}
	t.steered[cookie] = w
}

func (t *table) went(cookie uint64) (way, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w, ok := t.steered[cookie]
	return w, ok
}
