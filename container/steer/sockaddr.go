package steer

import (
	"encoding/binary"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// parseSockaddr reads an AF_INET or AF_INET6 sockaddr as the task gave it to
// the kernel: family in the machine's byte order, port in the network's.
func parseSockaddr(b []byte) (netip.AddrPort, bool) {
	if len(b) < 2 {
		return netip.AddrPort{}, false
	}
	switch binary.NativeEndian.Uint16(b) {
	case unix.AF_INET: // family, port, address: 16 bytes with padding
		if len(b) < unix.SizeofSockaddrInet4 {
			return netip.AddrPort{}, false
		}
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), binary.BigEndian.Uint16(b[2:])), true
	case unix.AF_INET6: // family, port, flow, address, scope
		if len(b) < unix.SizeofSockaddrInet6-4 { // Linux takes it without the scope
			return netip.AddrPort{}, false
		}
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[8:24])), binary.BigEndian.Uint16(b[2:])), true
	}
	return netip.AddrPort{}, false
}

// sockaddr returns the address for an IPv6 or an IPv4 socket; for the latter it must be an
// IPv4 address.
func sockaddr(v6 bool, to netip.AddrPort) unix.Sockaddr {
	a := to.Addr().Unmap()
	if !v6 {
		return &unix.SockaddrInet4{Port: int(to.Port()), Addr: a.As4()}
	}
	sa := &unix.SockaddrInet6{Port: int(to.Port()), Addr: a.As16()}
	if i, err := net.InterfaceByName(a.Zone()); err == nil {
		sa.ZoneId = uint32(i.Index)
	}
	return sa
}

// fromSockaddr is the inverse of sockaddr.
func fromSockaddr(sa unix.Sockaddr) (netip.AddrPort, bool) {
	switch s := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(s.Addr), uint16(s.Port)), true
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(s.Addr).Unmap(), uint16(s.Port)), true
	}
	return netip.AddrPort{}, false
}
