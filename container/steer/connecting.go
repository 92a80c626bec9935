package steer

import (
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// connecting is a connect that is under way on behalf of a caller.
type connecting struct {
	way    way
	cookie uint64 // of the socket

	mu    sync.Mutex
	sock  int // until ended
	ended bool
	isCut bool
}

// errMoved: the peer was cut off before the connect had succeeded. The socket can be connected
// to where the peer is now.
var errMoved = errors.New("the peer is not there any longer")

// connect is connect(2), except that for a nonblocking socket it waits a moment, to return a
// failure that comes at once. back: it is not the first connect to the peer.
func (c *connecting) connect(sa unix.Sockaddr, back bool) error {
	for {
		err := unix.Connect(c.sock, sa)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EINPROGRESS && failed(c.sock, back):
			return c.failure(sa)
		case err != nil && err != unix.EINPROGRESS && c.wasCut():
			return errMoved
		}
		return err
	}
}

// failure returns why the connect of a nonblocking socket has failed.
func (c *connecting) failure(sa unix.Sockaddr) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isCut { // another connect would be a new one, to the lost peer
		return errMoved
	}
	// The kernel returns the error from the next call, after which the socket can be
	// connected again.
	if err := unix.Connect(c.sock, sa); err != nil {
		return err
	}
	return unix.EINPROGRESS
}

func (c *connecting) wasCut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isCut
}

// cut ends the connect, or the connection that it has made, and reports whether there was one
// to end.
func (c *connecting) cut() bool {
	for {
		c.mu.Lock()
		if !c.ended && !c.isCut && !unconnected(c.sock) {
			c.isCut = unix.Shutdown(c.sock, unix.SHUT_RDWR) == nil
		}
		ended, is := c.ended, c.isCut
		c.mu.Unlock()
		if ended || is {
			return is
		}
		time.Sleep(time.Millisecond) // the kernel is about to begin, or to report a failure
	}
}

// unconnected reports whether a TCP socket neither has a connection nor makes one. To shut such
// a one would shut the connection that it is to have next.
func unconnected(sock int) bool {
	const tcpClose = 7 // TCP_CLOSE, include/net/tcp_states.h
	info, err := unix.GetsockoptTCPInfo(sock, unix.IPPROTO_TCP, unix.TCP_INFO)
	return err == nil && info.State == tcpClose
}
