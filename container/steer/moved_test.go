package steer_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"holdfast/container/proctree"
	"holdfast/container/steer"
)

// cut replaces the routes, and cuts what the client has to the peer.
func (c *steered) cut(routes ...steer.Route) {
	before := c.supervisor.Replace(routes)
	c.supervisor.Cut(before, []netip.Addr{peer}, append(proctree.Descendants(c.cmd.Process.Pid), c.cmd.Process.Pid))
}

// TestAConnectThatWaitsForALostPeer: it goes on to where the peer is now. A program that does
// not wait for its connects may instead be told that it has failed.
func TestAConnectThatWaitsForALostPeer(t *testing.T) {
	back := greet(t, "127.0.0.4", "back")
	for _, way := range []string{"connect", "start"} {
		c := start(t)
		silent := deaf(t, "127.0.0.3")
		c.supervisor.Replace([]steer.Route{route(4000, silent)})
		c.tell("&A %s a 4 %s:4000", way, peer)
		waitForConnecting(t, silent, 1)
		c.cut(route(4000, back))
		said := c.hear()
		if way == "connect" && said != "A ok" || way == "start" && said != "A operation now in progress" && said != "A ok" {
			t.Errorf("%s: %q", way, said)
		}
		if c.do("finish a") == "ok" {
			c.expect("back", "read a")
		} else if way == "connect" {
			t.Error("it has failed")
		}
	}
}

// TestAPeerThatIsLostWhileItsNameIsResolved: what the name is found to be is not connected to.
func TestAPeerThatIsLostWhileItsNameIsResolved(t *testing.T) {
	lost, back := deaf(t, "127.0.0.3"), greet(t, "127.0.0.4", "back")
	asked, answer := slowNames(t, lost.Addr())
	c := start(t)
	c.supervisor.Replace([]steer.Route{{Virtual: netip.AddrPortFrom(peer, 4000), Host: "lost.test", Port: lost.Port()}})
	c.tell("&A connect a 4 %s:4000", peer)
	select {
	case <-asked:
	case <-time.After(patience):
		t.Fatal("the peer's name is not resolved")
	}
	c.supervisor.Replace([]steer.Route{route(4000, lost)}) // or Cut would resolve the name, too
	c.cut(route(4000, back))
	answer()
	if said := c.hear(); said != "A ok" {
		t.Errorf("the connect: %q", said)
	}
	c.expect("back", "read a")
}

// slowNames has all names resolve to an address: the first time that one is asked for, which
// closes asked, not before answer is called.
func slowNames(t *testing.T, to netip.Addr) (asked chan struct{}, answer func()) {
	asked, answered := make(chan struct{}), make(chan struct{})
	answer = sync.OnceFunc(func() { close(answered) })
	var servers sync.WaitGroup
	var queries atomic.Int32
	resolver := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		servers.Go(func() {
			defer ours.Close()
			if queries.Add(1) == 1 {
				close(asked)
				<-answered
			}
			_ = answerQuery(ours, to) // the resolver may have had enough
		})
		return theirs, nil
	}}
	t.Cleanup(func() {
		answer()
		net.DefaultResolver = resolver
		servers.Wait()
	})
	return asked, answer
}

// answerQuery answers one query, in the framing of TCP (RFC 1035, 4.2.2).
func answerQuery(c net.Conn, to netip.Addr) error {
	var size [2]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return err
	}
	b := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(c, b); err != nil {
		return err
	}
	var m dnsmessage.Message
	if err := m.Unpack(b); err != nil {
		return err
	}
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 60},
			Body:   &dnsmessage.AResource{A: to.As4()},
		}}
	}
	b, err := m.Pack()
	if err == nil {
		_, err = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...))
	}
	return err
}

// TestASocketThatWasRefusedByALostPeer can be connected once the peer is back.
func TestASocketThatWasRefusedByALostPeer(t *testing.T) {
	c := start(t)
	nobody := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.5"), freePort(t))
	c.supervisor.Replace([]steer.Route{route(4000, nobody)})
	c.expect("connection refused", "connect a 4 %s:4000", peer)
	c.cut(route(4000, greet(t, "127.0.0.4", "back")))
	c.expect("ok", "again a %s:4000", peer)
	c.expect("back", "read a")
	c.expect("ok", "write a")
}
