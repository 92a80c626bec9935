// Package ports claims blocks of ports of this machine, so that several test clusters and
// other tests can run at once.
package ports

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Blocks lie below the ephemeral range, which begins at 32768, so that no
// outgoing connection takes one of their ports; and below 10000, so that no task
// of a job does while the daemon that is to listen there is down or on standby.
const (
	firstBlock = 5000
	lastBlock  = 9900
	blockSize  = 100
)

// Block is a block of ports that no other cluster on this machine uses.
// What holds it is an abstract Unix socket: the kernel drops that with the
// last process that has it open, and network namespaces have their own, as
// they have their own ports.
type Block struct {
	Base int               // the first port
	Hold *net.UnixListener // what holds the block; who has it open, too, holds it on
}

// Claim claims a block of which n ports are free.
func Claim(n int) (*Block, error) {
	if n > blockSize {
		return nil, fmt.Errorf("a cluster of this size needs %d ports, a block has %d: start fewer DataNodes and NodeManagers", n, blockSize)
	}
	for base := firstBlock; base <= lastBlock; base += blockSize {
		name := &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("@holdfast-testcluster-%d", base)}
		hold, err := net.ListenUnix("unix", name)
		if err != nil {
			continue
		}
		if b := (&Block{base, hold}); b.free(n) {
			return b, nil
		}
		hold.Close()
	}
	return nil, fmt.Errorf("found no block of %d free ports between %d and %d: are other clusters still running?", n, firstBlock, lastBlock+blockSize)
}

// free reports whether any program can listen on the ports of the block, on any address of
// IPv4 and on ::1, by TCP and UDP: also one that does not set SO_REUSEADDR, and so is refused a
// port of which connections were closed within the last minute.
func (b *Block) free(n int) bool {
	plain := net.ListenConfig{Control: func(_, _ string, conn syscall.RawConn) (err error) {
		callErr := conn.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 0) // Go has set it
		})
		return errors.Join(callErr, err)
	}}
	ctx := context.Background()
	for i := range n {
		all := ":" + strconv.Itoa(b.Base+i)
		l, err := plain.Listen(ctx, "tcp4", all)
		if err != nil {
			return false
		}
		l.Close()
		datagrams, err := plain.ListenPacket(ctx, "udp4", all)
		if err != nil {
			return false
		}
		datagrams.Close()
		if l, err = plain.Listen(ctx, "tcp6", b.Addr("::1", i)); err == nil {
			l.Close()
		} else if errors.Is(err, unix.EADDRINUSE) { // else the machine has no IPv6
			return false
		}
	}
	return true
}

// Addr returns the address host:port of a place in the block.
func (b *Block) Addr(host string, place int) string {
	return net.JoinHostPort(host, strconv.Itoa(b.Base+place))
}

// Close gives the block back. Later calls do nothing.
func (b *Block) Close() error {
	if err := b.Hold.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("giving back the ports: %w", err)
	}
	return nil
}
