package steer

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// Block is a block of loopback addresses, 127.N.0.0/16, that one agent of this host forwards
// from: the tasks of another agent, which may be of another job, have the same virtual addresses
// and ports. A socket in Linux's abstract namespace, which like loopback belongs to the network
// namespace, keeps other agents from it, and ends with the process at the latest.
type Block struct {
	second byte // octet
	claim  net.Listener
}

// Second octets of blocks: from that of the virtual addresses on.
const firstBlock, lastBlock = 77, 254

// ClaimBlock claims the first block that no other agent has.
func ClaimBlock() (*Block, error) {
	for n := firstBlock; n <= lastBlock; n++ {
		l, err := net.Listen("unix", fmt.Sprintf("@holdfast-forwarding-127.%d", n))
		if err == nil {
			return &Block{byte(n), l}, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("claiming the loopback addresses 127.%d.0.0/16 to forward connections from: %w", n, err)
		}
	}
	return nil, fmt.Errorf("all loopback addresses from 127.%d.0.0 to 127.%d.255.255 are claimed by agents that forward connections from them", firstBlock, lastBlock)
}

// Address returns the address in the block that stands for a virtual one.
func (b *Block) Address(virtual netip.Addr) netip.Addr {
	a := virtual.As4()
	a[1] = b.second
	return netip.AddrFrom4(a)
}

// Release lets other agents claim the block.
func (b *Block) Release() { b.claim.Close() }
