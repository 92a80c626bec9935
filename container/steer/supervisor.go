package steer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"holdfast/internal/proc"
)

// notification is struct seccomp_notif, linux/seccomp.h.
type notification struct {
	id          uint64
	pid, flags  uint32
	number      int32
	arch        uint32
	instruction uint64
	args        [6]uint64
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	val   int64
	err   int32
	flags uint32
}

const (
	ioctlValid    = 0x40082102 // SECCOMP_IOCTL_NOTIF_ID_VALID, linux/seccomp.h
	flagGoOn      = 1          // SECCOMP_USER_NOTIF_FLAG_CONTINUE
	resolveBudget = 5 * time.Second
)

// Supervisor answers the notifications of one filter.
type Supervisor struct {
	listener *os.File
	table    *table
	log      *logrus.Entry
	wake     [2]int // a pipe; closing its end wakes the receiver
	done     chan struct{}
	closing  sync.Once
	ctx      context.Context
	cancel   context.CancelFunc
}

// New starts a supervisor of the filter whose descriptor is listener, which it owns from then
// on. Until Host is called it lets all connects pass.
func New(listener *os.File, log *logrus.Entry) (*Supervisor, error) {
	s := &Supervisor{listener: listener, table: newTable(), log: log, done: make(chan struct{})}
	if err := unix.Pipe2(s.wake[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("making a pipe for steering: %w", err)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	go s.receive()
	return s, nil
}

// Host sets the task: own is its virtual address, at the address or name by which peers reach
// this host, and virtual are all virtual addresses.
func (s *Supervisor) Host(own netip.Addr, at string, virtual []netip.Addr) {
	s.table.host(own, at, virtual)
}

// Replace replaces all routes and returns those that were in force, for Cut.
func (s *Supervisor) Replace(routes []Route) Routes { return s.table.replace(routes) }

// Close stops answering. Processes that still have the filter fail to connect afterwards
// (ENOSYS), so they should have ended. It may be called again.
func (s *Supervisor) Close() {
	s.cancel()
	s.closing.Do(func() { unix.Close(s.wake[1]) })
	<-s.done
}

func (s *Supervisor) receive() {
	defer close(s.done)
	defer s.listener.Close()
	defer unix.Close(s.wake[0])
	fd := int(s.listener.Fd())
	for {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(s.wake[0])}}
		if _, err := unix.Poll(poll, -1); err != nil && err != unix.EINTR {
			s.log.WithError(err).Error("waiting for the task's connects")
			return
		}
		if poll[1].Revents != 0 {
			return
		}
		if poll[0].Revents&unix.POLLIN == 0 {
			if poll[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0 {
				return // no process has the filter any more
			}
			continue
		}
		n := &notification{}
		switch err := ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(n)); err {
		case nil:
			go s.answer(fd, n)
		case unix.EINTR, unix.ENOENT, unix.EAGAIN: // the caller was interrupted or killed
		default:
			s.log.WithError(err).Error("receiving the task's connects")
			return
		}
	}
}

// answer answers one notification.
func (s *Supervisor) answer(fd int, n *notification) {
	r := &response{id: n.id}
	err := s.handle(fd, n)
	var e syscall.Errno
	switch {
	case errors.Is(err, errNotOurs):
		r.flags = flagGoOn
	case errors.As(err, &e):
		r.err = -int32(e)
	case err != nil:
		r.err = -int32(unix.EHOSTUNREACH)
	}
	_ = ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(r)) // ENOENT: the caller was interrupted or killed
}

var errNotOurs = errors.New("not a virtual address")

func (s *Supervisor) handle(fd int, n *notification) error {
	size := int(n.args[2])
	if size < 2 || size > unix.SizeofSockaddrAny+16 {
		return errNotOurs // left to the kernel
	}
	b := make([]byte, min(size, unix.SizeofSockaddrInet6))
	if err := readMemory(int(n.pid), uintptr(n.args[1]), b); err != nil {
		return errNotOurs // a bad pointer: the kernel returns the error
	}
	to, ok := parseSockaddr(b)
	if !ok {
		return errNotOurs
	}
	// The memory was the caller's only if the caller still waits.
	if stillThere(fd, n) != nil {
		return errNotOurs
	}
	if n.number == unix.SYS_BIND {
		if !s.table.isOwn(to.Addr()) {
			return s.letBind(fd, n, to.Port())
		}
		return s.bind(fd, n, to.Port())
	}
	if _, _, steer, _ := s.table.lookup(to); !steer {
		return errNotOurs
	}
	return s.hold(fd, n, to)
}

// try connects the caller's socket once to the current address of a virtual one. known is the
// result of the previous lookup, so that a name is not resolved again.
func (s *Supervisor) try(fd int, n *notification, to netip.AddrPort, known *destination) error {
	route, number, _, ok := s.table.lookup(to)
	if !ok {
		return unix.ECONNREFUSED
	}
	way := way{virtual: to.Addr().Unmap(), number: number}
	if known.route != route {
		target, err := s.resolve(route)
		if err != nil && s.table.wasCut(way) {
			return errMoved
		}
		if err != nil {
			s.log.WithError(err).WithField("peer", to.String()).Warn("the host of a peer has no address")
			return unix.EHOSTUNREACH
		}
		*known = destination{route, target}
	}
	target := known.target
	sock, v6, err := socket(fd, n, !target.Addr().Unmap().Is4())
	if err != nil {
		return err
	}
	defer unix.Close(sock)
	c, back := s.table.begin(sock, way)
	if c == nil {
		return errMoved
	}
	defer s.table.end(c)
	return c.connect(sockaddr(v6, target), back)
}

// socket returns a duplicate of the notification's socket, and whether it is an IPv6 socket. It
// exchanges an IPv4 socket if IPv6 is needed.
func socket(listener int, n *notification, must bool) (sock int, v6 bool, err error) {
	sock, err = duplicate(int(n.pid), int(n.args[0]))
	if err != nil {
		return -1, false, err
	}
	// The caller's id may have been reused, and this be a socket of another process.
	if err := stillThere(listener, n); err != nil {
		unix.Close(sock)
		return -1, false, err
	}
	domain, err := unix.GetsockoptInt(sock, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err == nil && (domain == unix.AF_INET6 || !must) {
		return sock, domain == unix.AF_INET6, nil
	}
	defer unix.Close(sock)
	if err != nil {
		return -1, false, err
	}
	sock, err = exchange(listener, n, sock)
	return sock, true, err
}

// stillThere returns nil if the caller waits for its answer, so that the process with its id
// is the one that called (seccomp_unotify(2)).
func stillThere(listener int, n *notification) error {
	return ioctl(listener, ioctlValid, unsafe.Pointer(&n.id))
}

// bind binds a socket to all addresses that the task binds to its virtual one.
func (s *Supervisor) bind(listener int, n *notification, port uint16) error {
	sock, v6, err := socket(listener, n, s.table.reachedByV6())
	if err != nil {
		return err
	}
	defer unix.Close(sock)
	s.reuse(sock, port)
	return unix.Bind(sock, sockaddr(v6, netip.AddrPortFrom(anywhere(v6), port)))
}

// letBind lets the kernel bind a socket as the task asks.
func (s *Supervisor) letBind(listener int, n *notification, port uint16) error {
	if s.table.isOwnPort(port) {
		if sock, err := duplicate(int(n.pid), int(n.args[0])); err == nil {
			if stillThere(listener, n) == nil { // else it may be a socket of another process
				s.reuse(sock, port)
			}
			unix.Close(sock)
		}
	}
	return errNotOurs
}

// reuse has a TCP socket bind the task's port though connections of an attempt before have
// not expired (TIME_WAIT): not every framework sets SO_REUSEADDR on what it listens with.
// The connections that it will accept get the option from it.
func (s *Supervisor) reuse(sock int, port uint16) {
	if kind, err := unix.GetsockoptInt(sock, unix.SOL_SOCKET, unix.SO_TYPE); err == nil && kind == unix.SOCK_STREAM && s.table.isOwnPort(port) {
		_ = unix.SetsockoptInt(sock, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) // else the port may be in use for a minute
	}
}

func anywhere(v6 bool) netip.Addr {
	if v6 {
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
}

func (s *Supervisor) resolve(r Route) (netip.AddrPort, error) {
	if a, err := netip.ParseAddr(r.Host); err == nil {
		return netip.AddrPortFrom(a, r.Port), nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, resolveBudget)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", r.Host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("resolving %s: %w", r.Host, err)
	}
	best := found[0]
	for _, a := range found {
		if a.Unmap().Is4() {
			best = a.Unmap()
			break
		}
	}
	return netip.AddrPortFrom(best, r.Port), nil
}

// duplicate duplicates a descriptor of the process of thread tid.
func duplicate(tid, fd int) (int, error) {
	p, err := unix.PidfdOpen(threadGroup(tid), 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(p)
	return unix.PidfdGetfd(p, fd, 0)
}

// threadGroup returns the process of a thread, which pidfd_open(2) needs.
func threadGroup(tid int) int {
	status, _ := proc.ReadStatus(tid)
	return cmp.Or(status.ThreadGroup(), tid)
}

// readMemory fills b from another process's memory.
func readMemory(pid int, at uintptr, b []byte) error {
	local := []unix.Iovec{{Base: &b[0]}}
	local[0].SetLen(len(b))
	n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: at, Len: len(b)}}, 0)
	if err == nil && n < len(b) {
		err = unix.EFAULT
	}
	return err
}

func ioctl(fd int, request uintptr, p unsafe.Pointer) error {
	if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), request, uintptr(p)); e != 0 {
		return e
	}
	return nil
}
