package steer

import (
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/backoff"
)

const (
	// held is how long a connect that a peer refuses is tried again before the
	// error is returned to the caller. TensorFlow's gRPC tries once in a second, counted from
	// the beginning of a try (grpc_channel.cc, GetChannelArguments:
	// grpc.testing.fixed_reconnect_backoff_ms), so one of its tries is under way at
	// any time. Signals wait for as long.
	held = time.Second
	// again is the pause after the first try; it doubles up to againMax, since all
	// of a large job's tasks may try to reach one host.
	again, againMax = 10 * time.Millisecond, 80 * time.Millisecond
	// answering is how long the answer of a peer's host is waited for on behalf of
	// a caller that does not wait itself. One that is there answers much sooner.
	answering = 100 * time.Millisecond
	// dying is how long a process that is killed may still take in connections,
	// after it has lost others: the kernel closes its sockets one by one.
	dying = 5 * time.Millisecond
)

// hold connects the caller's socket to where a virtual address leads, and does
// not give up at once if nobody listens there: a peer that was lost is often
// back within moments, and the caller would only come back later.
func (s *Supervisor) hold(fd int, n *notification, to netip.AddrPort) error {
	var found place
	end := time.Now().Add(held)
	for wait := backoff.New(again, againMax); ; {
		err := s.try(fd, n, to, &found)
		if !away(err) || s.table.isOwn(to.Addr()) || time.Now().After(end) || !wait.Wait(s.ctx) {
			return err
		}
		// A caller that has gone on must not be connected behind its back.
		if stillThere(fd, n) != nil {
			return err
		}
	}
}

// place is where a route was found to lead.
type place struct {
	route  Route
	target netip.AddrPort
}

// away reports whether a connect failed since no process listens there, or one
// that is about to end.
func away(err error) bool { return err == unix.ECONNREFUSED || err == unix.ECONNRESET }

// connect is connect(2). Where that does not wait, a failure that comes at once
// is its result already; back says that it is not the first connect to the peer.
func connect(sock int, sa unix.Sockaddr, back bool) error {
	for {
		switch err := unix.Connect(sock, sa); {
		case err == unix.EINTR:
		case err == unix.EINPROGRESS && failed(sock, back):
			// The kernel gives the reason to the next call, and is ready for another
			// connect after that.
			if err := unix.Connect(sock, sa); err != nil {
				return err
			}
			return unix.EINPROGRESS
		default:
			return err
		}
	}
}

// failed waits a while for the end of a connect, and reports whether it failed.
func failed(sock int, back bool) bool {
	seen := poll(sock, unix.POLLOUT, answering)
	if back && seen == unix.POLLOUT {
		seen = poll(sock, 0, dying)
	}
	return seen&unix.POLLERR != 0
}

// poll waits for events of a socket, and for errors, and returns what there is.
func poll(sock int, events int16, wait time.Duration) int16 {
	p := []unix.PollFd{{Fd: int32(sock), Events: events}}
	for {
		if _, err := unix.Poll(p, int(wait.Milliseconds())); err != unix.EINTR {
			return p[0].Revents
		}
	}
}
