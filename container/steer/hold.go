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
	// answering is how long hold waits for the answer of a peer's host on behalf of a
	// nonblocking caller. A host that is up answers much sooner.
	answering = 100 * time.Millisecond
	// dying is how long a process that was killed may still accept connections after
	// others were closed: the kernel closes its sockets one by one.
	dying = 5 * time.Millisecond
)

// hold connects the caller's socket to the current address of a virtual one. It retries for a
// while if no process listens there: a lost peer often returns within moments, and the caller
// would retry only later.
func (s *Supervisor) hold(fd int, n *notification, to netip.AddrPort) error {
	var found destination
	end := time.Now().Add(held)
	for wait := backoff.New(again, againMax); ; {
		err := s.try(fd, n, to, &found)
		if err == errMoved {
			end = time.Now().Add(held)
			continue
		}
		if !away(err) || s.table.isOwn(to.Addr()) || time.Now().After(end) || !wait.Wait(s.ctx) {
			return err
		}
		// The socket of a caller that no longer waits must not be connected.
		if stillThere(fd, n) != nil {
			return err
		}
	}
}

// destination is where a route was found to lead.
type destination struct {
	route  Route
	target netip.AddrPort
}

// away reports whether a connect failed since no process listens there, or one
// that is about to end.
func away(err error) bool { return err == unix.ECONNREFUSED || err == unix.ECONNRESET }

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
