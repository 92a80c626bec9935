package testcluster

import (
	"errors"
	"fmt"
	"net"
	"strconv"
)

// Blocks lie below the ephemeral range, which begins at 32768, so that no
// outgoing connection takes one of their ports; and below 10000, so that no task
// of a job does while the daemon that is to listen there is down or on standby.
const (
	firstBlock = 5000
	lastBlock  = 9900
	blockSize  = 100
)

const loopback = "127.0.0.1"

// The places of ports in a block. DataNodes and NodeManagers have three each; a
// second ResourceManager comes after them.
const (
	portNNRPC = iota
	portNNWeb
	portRM
	portRMScheduler
	portRMTracker
	portRMAdmin
	portRMWeb
	portKDC
	portNN1RPC
	portNN1Web
	portDNs = 10
)

func portDN(i int) int              { return portDNs + 3*i }
func (c *Cluster) portNM(i int) int { return portDN(c.opts.DataNodes) + 3*i }
func portsNeeded(opts Options) int {
	n := portDN(opts.DataNodes) + 3*opts.NodeManagers
	if opts.pair() {
		n += portRMWeb - portRM + 1
	}
	if opts.KMS != nil {
		n++
	}
	return n
}
func nodeHost(i int) string { return "127.0.0." + strconv.Itoa(2+i) }

// portBlock is a block of ports that no other cluster on this machine uses.
// What holds it is an abstract Unix socket: the kernel drops that with the
// last process that has it open, and network namespaces have their own, as
// they have their own ports.
type portBlock struct {
	base int
	hold *net.UnixListener
}

func claimPorts(n int) (*portBlock, error) {
	if n > blockSize {
		return nil, fmt.Errorf("a cluster of this size needs %d ports, a block has %d: start fewer DataNodes and NodeManagers", n, blockSize)
	}
	for base := firstBlock; base <= lastBlock; base += blockSize {
		name := &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("@holdfast-testcluster-%d", base)}
		hold, err := net.ListenUnix("unix", name)
		if err != nil {
			continue
		}
		if b := (&portBlock{base, hold}); b.free(n) {
			return b, nil
		}
		hold.Close()
	}
	return nil, fmt.Errorf("found no block of %d free ports between %d and %d: are other clusters still running?", n, firstBlock, lastBlock+blockSize)
}

// free reports whether nobody listens on any port of the block, on any address.
func (b *portBlock) free(n int) bool {
	for i := range n {
		l, err := net.Listen("tcp4", ":"+strconv.Itoa(b.base+i))
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}

func (b *portBlock) addr(host string, place int) string {
	return net.JoinHostPort(host, strconv.Itoa(b.base+place))
}

func (b *portBlock) Close() error {
	if err := b.hold.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("giving back the ports: %w", err)
	}
	return nil
}
