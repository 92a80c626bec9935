// Package tcp makes TCP connections that break in time when the host at their other end falls silent:
// a node that has lost its power or its network neither acknowledges what is sent nor ends the
// connection, and who only listens would wait for ever.
package tcp

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Dialer returns a dialer whose attempts may take limit. A connection breaks if what was sent is not
// acknowledged for silence, or nothing comes from the other host for that long although it is probed:
// that the program there is busy or stopped does not break it. silence is at least four seconds.
func Dialer(limit, silence time.Duration) *net.Dialer {
	return &net.Dialer{
		Timeout: limit,
		// The kernel counts the seconds from the last packet that has come.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silence / 2, Interval: silence / 4, Count: 2},
		Control: func(_, _ string, c syscall.RawConn) error {
			return c.Control(func(fd uintptr) {
				// Where the kernel does not have it, the callers' own time limits remain.
				_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silence/time.Millisecond))
			})
		},
	}
}
