package container_test

import (
	"bufio"
	"fmt"
	"net"
	"slices"
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

// asksPeer prints what a peer says to each of many connections.
const asksPeer = `
import socket
for i in range(20):
    with socket.create_connection(("ps-0", 4000)) as c:
        print(c.makefile().read(), flush=True)
`

// TestJobsOnOneNodeDoNotMeet: where connections are forwarded, the tasks of two jobs may have
// the same addresses and ports for their peers.
func TestJobsOnOneNodeDoNotMeet(t *testing.T) {
	var agents []*connected
	for _, job := range []string{"job-1", "job-2"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Write([]byte(job)) // whoever asks looks at it
				c.Close()
			}
		}()
		m := newMaster(t)
		m.startAgent("c1", func(c *container.Config) { c.NoSteering = true })
		c := m.agent()
		c.send(assignment(func(a *proto.Assign) {
			a.Job = job
			at := proto.TaskAddress{Port: 4000, Host: "127.0.0.1", RealPort: l.Addr().(*net.TCPAddr).Port}
			a.Routes = proto.NewRoutes(nil, []proto.TaskAddress{at, {Port: 4001}, {Port: 4002}}, nil)
		}))
		if p := c.prepared(); p.Steering != "forwarding" {
			t.Fatalf("prepared: %v", p)
		}
		agents = append(agents, c)
	}
	for i, c := range agents {
		c.send(&proto.Start{Command: []string{"python3", "-c", asksPeer}})
		own := fmt.Sprintf("job-%d", i+1)
		if e := c.exited(); e.Code != 0 || len(e.Tail) != 20 || slices.ContainsFunc(e.Tail, func(said string) bool { return said != own }) {
			t.Errorf("a task of %s has heard %q, %v", own, e.Tail, e)
		}
	}
}
