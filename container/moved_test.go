package container_test

import (
	"bufio"
	"net"
	"testing"

	"holdfast/container"
	"holdfast/proto"
)

// callsPeer connects to ps-0, and answers each line until the connection ends.
const callsPeer = `
import socket, sys
c = socket.create_connection(("ps-0", 4000))
try:
    for line in c.makefile():
        c.sendall(b"still here\n")
except ConnectionError:
    pass
print("cut", flush=True)
`

// A peer that came back elsewhere while this agent had no application master is known by
// its address alone: that the connections to the former one are to be cut was told before.
func TestConnectionsToAFormerAddressAreCut(t *testing.T) {
	for name, forwards := range map[string]bool{"steered": false, "forwarded": true} {
		t.Run(name, func(t *testing.T) {
			m := newMaster(t)
			m.startAgent("c1", func(c *container.Config) { c.NoSteering = forwards })
			c := m.agent()
			c.send(assignment(nil))
			c.prepared()
			// learn has the agent learn all addresses, as one does that has connected again.
			learn := func(at proto.TaskAddress) {
				t.Helper()
				c.send(assignment(func(a *proto.Assign) {
					a.Routes = proto.NewRoutes(nil, []proto.TaskAddress{at, {Port: 4001}, {Port: 4002}}, nil)
				}))
				c.prepared()
			}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			first := proto.TaskAddress{Port: 4000, Host: "127.0.0.1", RealPort: l.Addr().(*net.TCPAddr).Port}
			learn(first)
			c.send(&proto.Start{Command: []string{"python3", "-c", callsPeer}})
			c.started()
			peer, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer peer.Close()
			answers := bufio.NewScanner(peer)
			for _, at := range []proto.TaskAddress{first, {Port: 4000}, first} { // a new master does not know at first
				learn(at)
				if _, err := peer.Write([]byte("hello\n")); err != nil {
					t.Fatal(err)
				}
				if !answers.Scan() {
					t.Fatalf("the connection was cut, and the peer has not moved: %v", answers.Err())
				}
			}
			learn(proto.TaskAddress{Port: 4000})
			learn(proto.TaskAddress{Port: 4000, Host: "127.0.0.1", RealPort: first.RealPort + 1})
			if e := c.exited(); e.Code != 0 || len(e.Tail) != 1 || e.Tail[0] != "cut" {
				t.Errorf("exited: %v", e)
			}
		})
	}
}
