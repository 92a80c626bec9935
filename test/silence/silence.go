// Package silence has the host at the other end of connections fall silent for tests, as one that has
// lost its power.
package silence

import (
	"errors"
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Host is a listener whose connections can fall silent.
type Host struct {
	net.Listener

	mu    sync.Mutex
	conns []syscall.Conn
}

// Listener returns a TCP listener's connections as those of a Host.
func Listener(l net.Listener) *Host { return &Host{Listener: l} }

// Accept implements net.Listener.
func (h *Host) Accept() (net.Conn, error) {
	c, err := h.Listener.Accept()
	if err == nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.conns = append(h.conns, c.(syscall.Conn))
	}
	return c, err
}

// Fall has the kernel drop all that comes for the connections that were accepted until now, before
// it is acknowledged. New connections are not affected.
func (h *Host) Fall() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	drop := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}} // 0 bytes of each packet are kept
	var problems error
	for _, c := range h.conns {
		raw, err := c.SyscallConn()
		if err == nil {
			var set error
			err = raw.Control(func(fd uintptr) {
				set = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &drop[0]})
			})
			err = errors.Join(err, set)
		}
		problems = errors.Join(problems, err)
	}
	return problems
}
