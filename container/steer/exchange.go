package steer

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"holdfast/internal/proc"
)

// addfd is struct seccomp_notif_addfd, linux/seccomp.h.
type addfd struct {
	id                            uint64
	flags, source, fd, descriptor uint32
}

const ioctlAddFD = 0x40182103 // SECCOMP_IOCTL_NOTIF_ADDFD, linux/seccomp.h, Linux 5.9

// carried are the options that are copied to the new socket.
var carried = []struct{ level, name int }{
	{unix.SOL_SOCKET, unix.SO_KEEPALIVE},
	{unix.SOL_SOCKET, unix.SO_REUSEADDR},
	{unix.SOL_SOCKET, unix.SO_REUSEPORT},
	{unix.SOL_SOCKET, unix.SO_PRIORITY},
	{unix.IPPROTO_TCP, unix.TCP_NODELAY},
	{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT},
	{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE},
	{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL},
	{unix.IPPROTO_TCP, unix.TCP_KEEPCNT},
	{unix.IPPROTO_TCP, unix.TCP_SYNCNT},
	{unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT},
}

// exchange replaces an IPv4 socket, which cannot reach a peer without an IPv4 address, nor be
// reached by it, by an IPv6 one. It returns a duplicate of the new socket.
func exchange(listener int, n *notification, old int) (int, error) {
	kind, err := unix.GetsockoptInt(old, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return -1, err
	}
	if kind != unix.SOCK_STREAM {
		return -1, unix.EAFNOSUPPORT
	}
	sock, err := unix.Socket(unix.AF_INET6, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := settle(listener, n, old, sock); err != nil {
		unix.Close(sock)
		return -1, err
	}
	return sock, nil
}

func settle(listener int, n *notification, old, sock int) error {
	for _, o := range carried {
		if v, err := unix.GetsockoptInt(old, o.level, o.name); err == nil && v != 0 {
			_ = unix.SetsockoptInt(sock, o.level, o.name, v) // it works without
		}
	}
	for _, name := range []int{unix.SO_RCVTIMEO, unix.SO_SNDTIMEO} {
		if v, err := unix.GetsockoptTimeval(old, unix.SOL_SOCKET, name); err == nil {
			_ = unix.SetsockoptTimeval(sock, unix.SOL_SOCKET, name, v)
		}
	}
	flags, err := unix.FcntlInt(uintptr(old), unix.F_GETFL, 0)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(sock), unix.F_SETFL, flags)
	}
	if err == nil {
		err = unix.SetsockoptInt(sock, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
	}
	if err != nil {
		return fmt.Errorf("making an IPv6 socket like the task's: %w", err)
	}
	number := uint32(n.args[0])
	a := addfd{id: n.id, flags: unix.SECCOMP_ADDFD_FLAG_SETFD, source: uint32(sock), fd: number}
	if closesOnExec(int(n.pid), int(number)) {
		a.descriptor = unix.O_CLOEXEC
	}
	err = ioctl(listener, ioctlAddFD, unsafe.Pointer(&a))
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTTY) {
		return unix.EAFNOSUPPORT // Linux before 5.9
	}
	return err
}

// closesOnExec reports whether a descriptor of the process of thread tid is closed
// when it execs.
func closesOnExec(tid, fd int) bool {
	info, _ := proc.ReadDescriptor(tid, fd)
	flags, _ := info.Number("flags", 8)
	return flags&unix.O_CLOEXEC != 0
}
