package peers

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"holdfast/container/failure"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/proc"
	"holdfast/proto"
)

// Port is a port that is reserved on this host until it is released, by a socket that is
// bound to all addresses and does not listen: connections are refused.
type Port struct {
	Number int

	fd int
}

// servicePorts are, between proto.LowestPort and the ephemeral ports, the defaults of
// services that run on the nodes of Hadoop clusters: HiveServer2, the job history
// server, the timeline server, the shuffle service, HBase, Spark's history server.
// A service that is down could not be restarted if a task had taken its port.
var servicePorts = []int{10000, 10002, 10020, 10033, 10200, 13562, 16000, 16010, 16020, 16030, 18080, 19888, 19890}

// HoldPort reserves the wanted port, or another one if that is taken or wanted is 0: one
// that is not the port of a service, as far as these are known or named in Hadoop's
// configuration (nil without Hadoop).
func HoldPort(wanted int, hadoop *conf.Conf) (*Port, error) {
	var named map[int]bool
	if hadoop != nil {
		named = hadoop.Ports()
	}
	services := func(number int) bool { return named[number] || slices.Contains(servicePorts, number) }
	if wanted != 0 && !services(wanted) {
		if p, err := bindPort(wanted); err == nil {
			return p, nil
		}
	}
	limit := firstEphemeral()
	last := errors.New("all are those of services")
	count := limit - proto.LowestPort
	for i, first := 0, rand.IntN(count); i < count; i++ {
		number := proto.LowestPort + (first+i)%count
		if services(number) {
			continue
		}
		p, err := bindPort(number)
		if err == nil {
			return p, nil
		}
		last = err
		if !errors.Is(err, unix.EADDRINUSE) {
			break
		}
	}
	return nil, failure.Node(fmt.Errorf("finding a free port between %d and %d on this host: %w", proto.LowestPort, limit-1, last))
}

func bindPort(number int) (*Port, error) {
	// Without SO_REUSEADDR the bind fails if the port is in use at all.
	if p, err := bindSocket(number, false); err == nil || !errors.Is(err, unix.EADDRINUSE) {
		return p, err
	}
	// The port may only have closed connections of an earlier task (TIME_WAIT), which do
	// not prevent a server from listening, as another listener would.
	look, err := bindSocket(number, true)
	if err != nil {
		return nil, err
	}
	defer look.Release()
	if err := unix.Listen(look.fd, 1); err != nil {
		return nil, fmt.Errorf("listening on port %d: %w", number, err)
	}
	look.Release()
	return bindSocket(number, true)
}

func bindSocket(number int, reuse bool) (*Port, error) {
	var addr unix.Sockaddr = &unix.SockaddrInet6{Port: number}
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
	} else { // a host without IPv6
		addr = &unix.SockaddrInet4{Port: number}
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("making a socket for port %d: %w", number, err)
	}
	if reuse {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	if err == nil {
		err = unix.Bind(fd, addr)
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("binding port %d: %w", number, err)
	}
	return &Port{Number: number, fd: fd}, nil
}

// Release frees the port, right before the task binds it.
func (p *Port) Release() {
	if p != nil && p.fd >= 0 {
		unix.Close(p.fd)
		p.fd = -1
	}
}

// firstEphemeral returns the first port that the kernel uses for outgoing connections. A
// task's port is below, so that no connection takes it.
func firstEphemeral() int {
	if f := strings.Fields(proc.Sysctl("net/ipv4/ip_local_port_range")); len(f) == 2 {
		if n, err := strconv.Atoi(f[0]); err == nil && n > proto.LowestPort+1000 {
			return n
		}
	}
	return 32768
}
