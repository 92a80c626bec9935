package rpc

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// unacknowledged is for how long sent bytes may stay unacknowledged, in ms.
const unacknowledged = 30_000

// userTimeout sets TCP_USER_TIMEOUT. It is a help only: where the kernel does
// not take it, a call's own deadline ends the wait.
func userTimeout(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, unacknowledged)
	})
}
