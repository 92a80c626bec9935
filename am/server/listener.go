package server

import (
	"fmt"
	"net"
	"strconv"
)

// Listener is a port on which others reach an application master. That of its gRPC service
// is open before the master exists: agents that look for a new master connect while that
// still reads what its predecessor left, and wait in the listener's queue.
type Listener struct {
	net.Listener
	host string
}

// Listen opens a port. host is the name or address under which others reach this machine;
// where it is a loopback address, only this machine can connect.
func Listen(host string) (*Listener, error) {
	at := ":0"
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		at = net.JoinHostPort(host, "0")
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", at, err)
	}
	return &Listener{l, host}, nil
}

// Host returns the name or address under which others reach this machine.
func (l *Listener) Host() string { return l.host }

// Port returns the number of the port.
func (l *Listener) Port() int { return l.Addr().(*net.TCPAddr).Port }

// Address returns host:port.
func (l *Listener) Address() string { return net.JoinHostPort(l.host, strconv.Itoa(l.Port())) }
