package server

import (
	"fmt"
	"net"
	"strconv"
)

// Listener is the port on which agents and clients reach an application master. It
// exists before the master does: agents that look for a new master connect while that
// still reads what its predecessor left, and wait in the listener's queue.
type Listener struct {
	net.Listener
	host string
}

// Listen opens a port. host is the name or address under which agents and clients reach
// this machine; where it is a loopback address, only this machine can connect.
func Listen(host string) (*Listener, error) {
	at := ":0"
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		at = net.JoinHostPort(host, "0")
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		return nil, fmt.Errorf("listening for the job's agents on %s: %w", at, err)
	}
	return &Listener{l, host}, nil
}

// Host is the name or address under which agents and clients reach this machine.
func (l *Listener) Host() string { return l.host }

// Port is the port of the master's gRPC service.
func (l *Listener) Port() int { return l.Addr().(*net.TCPAddr).Port }

// Address is host:port of the master's gRPC service.
func (l *Listener) Address() string { return net.JoinHostPort(l.host, strconv.Itoa(l.Port())) }
