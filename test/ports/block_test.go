package ports_test

import (
	"io"
	"net"
	"testing"

	"holdfast/test/ports"
)

// TestPortsOfWhichConnectionsWereClosedLately: they are not given away, since not every program
// can listen on one.
func TestPortsOfWhichConnectionsWereClosedLately(t *testing.T) {
	block, err := ports.Claim(1)
	if err != nil {
		t.Fatal(err)
	}
	address := block.Addr("127.0.0.1", 0)
	listener, err := net.Listen("tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	client, err := net.Dial("tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	server.Close() // first: its side waits then (TIME_WAIT)
	if _, err := client.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is not closed")
	}
	client.Close()
	listener.Close()
	block.Close()
	again, err := ports.Claim(1)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.Base == block.Base {
		t.Errorf("port %d is given to the next, and a connection of it was just closed", again.Base)
	}
}

// TestPortsOfOtherKinds: a block is free of any that listens there, also by IPv6 or UDP only.
func TestPortsOfOtherKinds(t *testing.T) {
	for _, network := range []string{"tcp6", "udp4"} {
		block, err := ports.Claim(1)
		if err != nil {
			t.Fatal(err)
		}
		block.Close()
		var listener io.Closer
		if network == "udp4" {
			listener, err = net.ListenPacket(network, block.Addr("127.0.0.1", 0))
		} else {
			listener, err = net.Listen(network, block.Addr("::1", 0))
		}
		if err != nil {
			t.Fatal(err)
		}
		again, err := ports.Claim(1)
		listener.Close()
		if err != nil {
			t.Fatal(err)
		}
		if again.Base == block.Base {
			t.Errorf("port %d is given away, and another program listens there by %s", again.Base, network)
		}
		again.Close()
	}
}
