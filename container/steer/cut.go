package steer

import (
	"net/netip"
	"strings"

	"golang.org/x/sys/unix"

	"holdfast/internal/proc"
)

// Cut shuts down the connections of processes to lost peers, given by virtual address, so
// that a silent loss is noticed at once rather than by TCP's timeouts of minutes. before is
// what Replace returned: it selects connections that were steered to the peer by those or
// earlier routes, or whose other end is where these lead. It returns their number. A connect
// that is under way there goes on to where the peer is now, or fails, if its caller does not
// wait for it.
func (s *Supervisor) Cut(before Routes, lost []netip.Addr, processes []int) int {
	shut := map[uint64]bool{} // a socket may be held by many processes
	for _, c := range s.table.cutBefore(before, lost) {
		if c.cut() {
			shut[c.cookie] = true
		}
	}
	virtual := map[netip.Addr]bool{}
	for _, a := range lost {
		virtual[a] = true
	}
	real := map[netip.AddrPort]bool{}
	for _, r := range before.routes {
		if !virtual[r.Virtual.Addr()] {
			continue
		}
		if a, err := s.resolve(r); err == nil {
			real[a] = true
		}
	}
	for _, p := range processes {
		eachSocket(p, func(sock int) {
			cookie, err := unix.GetsockoptUint64(sock, unix.SOL_SOCKET, unix.SO_COOKIE)
			if err != nil || shut[cookie] {
				return
			}
			hit := false
			if w, ok := s.table.went(cookie); ok {
				hit = virtual[w.virtual] && w.number <= before.number
			} else if sa, err := unix.Getpeername(sock); err == nil {
				if peer, ok := fromSockaddr(sa); ok {
					hit = real[peer]
				}
			}
			if hit && !unconnected(sock) && unix.Shutdown(sock, unix.SHUT_RDWR) == nil {
				shut[cookie] = true
			}
		})
	}
	return len(shut)
}

// eachSocket calls f with a duplicate of each socket of a process.
func eachSocket(pid int, f func(sock int)) {
	p, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // it has ended
	}
	defer unix.Close(p)
	open, _ := proc.Descriptors(pid)
	for _, fd := range open {
		name, err := proc.DescriptorPath(pid, fd)
		if err != nil || !strings.HasPrefix(name, "socket:") {
			continue
		}
		sock, err := unix.PidfdGetfd(p, fd, 0)
		if err != nil {
			continue
		}
		f(sock)
		unix.Close(sock)
	}
}
