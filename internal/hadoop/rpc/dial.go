package rpc

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// unacknowledged is for how long sent bytes may stay unacknowledged, in ms.
const unacknowledged = 30_000

// userTimeout sets TCP_USER_TIMEOUT. If the kernel does not support it, the calls' own
// deadlines apply.
func userTimeout(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, unacknowledged)
	})
}
