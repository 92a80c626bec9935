package rpc_test

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/wire/common"
	"holdfast/test/bound"
)

// TestKnownBytes compares what goes over the wire with what Hadoop's own
// messages are: header, connection context, a call.
func TestKnownBytes(t *testing.T) {
	near, far := net.Pipe()
	c := rpc.New(rpc.Options{Protocol: "P", User: "alice", Addresses: []string{"a:1"},
		Dial: func(context.Context, string, string) (net.Conn, error) { return near, nil }})
	done := make(chan error, 1)
	go func() {
		resp := &common.UserInformationProto{}
		err := c.Call(context.Background(), "m", user("x"), resp)
		if err == nil && resp.GetEffectiveUser() != "y" {
			err = fmt.Errorf("answer %v", resp)
		}
		done <- err
	}()
	b := make([]byte, 7)
	if _, err := io.ReadFull(far, b); err != nil || hex.EncodeToString(b) != "68727063090000" {
		t.Fatalf("connection header %x, %v", b, err)
	}
	packet := func() []byte {
		var l [4]byte
		if _, err := io.ReadFull(far, l[:]); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, binary.BigEndian.Uint32(l[:]))
		if _, err := io.ReadFull(far, b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	// rpcKind 2, rpcOp 0, callId −3, clientId of 16 bytes, retryCount −1.
	b = packet()
	id := hex.EncodeToString(b[9:25])
	want := "1a" + "0802" + "1000" + "1805" + "2210" + id + "2801" +
		"0c" + "1207" + "0a05" + hex.EncodeToString([]byte("alice")) + "1a01" + "50"
	if hex.EncodeToString(b) != want {
		t.Errorf("context\n%x, want\n%s", b, want)
	}
	// callId 0, retryCount 0; method m of P, version 1; the request.
	b = packet()
	want = "1a" + "0802" + "1000" + "1800" + "2210" + id + "2800" +
		"08" + "0a016d" + "120150" + "1801" + "03" + "0a0178"
	if hex.EncodeToString(b) != want {
		t.Errorf("call\n%x, want\n%s", b, want)
	}
	// callId 0, SUCCESS; the response.
	answer, _ := hex.DecodeString("00000009" + "04" + "0800" + "1000" + "03" + "0a0179")
	far.Write(answer)
	if err := <-done; err != nil {
		t.Error(err)
	}
	c.Close()
	if _, err := far.Read(b); err == nil {
		t.Error("the connection is open after Close")
	}
}

// TestInFlight has 50 calls answered in reverse order on one connection.
func TestInFlight(t *testing.T) {
	const n = 50
	f := newFarm(t, map[string]func(*server){"a:1": func(s *server) {
		var list []request
		for range n {
			r, err := s.next()
			if err != nil {
				t.Error(err)
				return
			}
			list = append(list, r)
		}
		for i := range list {
			s.reply(list[n-1-i])
		}
		s.echo()
	}})
	c, end := f.client(rpc.Options{Addresses: []string{"a:1"}})
	defer end()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if err := call(c, fmt.Sprint("call ", i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if d := f.dialled(); len(d) != 1 {
		t.Errorf("%d connections", len(d))
	}
}

func TestFailover(t *testing.T) {
	f := newFarm(t, map[string]func(*server){"standby:1": standby, "active:1": (*server).echo})
	c, end := f.client(rpc.Options{Addresses: []string{"refused:1", "standby:1", "active:1"}})
	defer end()
	for range 2 {
		if err := call(c, "x"); err != nil {
			t.Fatal(err)
		}
	}
	if d := f.dialled(); !reflect.DeepEqual(d, []string{"refused:1", "standby:1", "active:1"}) {
		t.Errorf("dialled %q: the active one is not remembered", d)
	}

	synctest.Test(t, func(t *testing.T) {
		f := newFarm(t, map[string]func(*server){"standby:1": standby})
		c, end := f.client(rpc.Options{Addresses: []string{"standby:1", "refused:1"}})
		defer end()
		start := time.Now()
		err := call(c, "x")
		if err == nil || !strings.Contains(err.Error(), "standby:1, refused:1") {
			t.Errorf("with no active server: %v", err)
		}
		if d := time.Since(start); d < 10*time.Second || d > 20*time.Second {
			t.Errorf("tried for %v, the limit is 20 s", d)
		}
	})
}

// TestComesBack: a server refuses for a while, then is there.
func TestComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(t, map[string]func(*server){})
		up := time.Now().Add(8 * time.Second)
		f.serve["a:1"] = (*server).echo
		o := rpc.Options{Addresses: []string{"a:1"}, Protocol: protocol, User: "u"}
		o.Dial = func(ctx context.Context, n, a string) (net.Conn, error) {
			if time.Now().Before(up) {
				return nil, errRefused
			}
			return f.dial(ctx, n, a)
		}
		c := rpc.New(o)
		if err := call(c, "x"); err != nil {
			t.Error(err)
		}
		c.Close()
		f.wg.Wait()

		o.Retry.Limit = -1
		up = time.Now().Add(time.Hour)
		c = rpc.New(o)
		start := time.Now()
		if err := call(c, "x"); !rpc.Unreachable(err) || !errors.Is(err, errRefused) || time.Since(start) != 0 {
			t.Errorf("once only: %v after %v", err, time.Since(start))
		}
		c.Close()
	})
}

// TestWebServer: one that is taken for Hadoop RPC is no better for waiting, but
// the other one of a pair may be the right one.
func TestWebServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := func(s *server) { s.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) }
		f := newFarm(t, map[string]func(*server){"web:1": web, "web:2": web, "a:1": (*server).echo})
		for address, ok := range map[string]bool{"web:2": false, "a:1": true} {
			c, end := f.client(rpc.Options{Addresses: []string{"web:1", address}, Retry: rpc.Retry{Resend: true}})
			start := time.Now()
			err := call(c, "x")
			if took := time.Since(start); (err == nil) != ok || !ok && !strings.Contains(err.Error(), "answers in HTTP") || took > time.Second {
				t.Errorf("beside %s, after %s: %v", address, took, err)
			}
			end()
		}
	})
}

// TestLostAfterSending: only a call that may be sent twice is sent twice, and
// under its old id.
func TestLostAfterSending(t *testing.T) {
	for _, resend := range []bool{false, true} {
		var mu sync.Mutex
		var got []request
		f := newFarm(t, map[string]func(*server){"a:1": func(s *server) {
			r, err := s.next()
			if err != nil {
				return
			}
			mu.Lock()
			got = append(got, r)
			first := len(got) == 1
			mu.Unlock()
			if first {
				return // and the connection is closed
			}
			s.reply(r)
			s.echo()
		}})
		c, end := f.client(rpc.Options{Addresses: []string{"a:1"}, Retry: rpc.Retry{Resend: resend}})
		err := call(c, "x")
		if !resend {
			if !rpc.Unreachable(err) || len(got) != 1 {
				t.Errorf("without Resend: %v, sent %d times", err, len(got))
			}
		} else if err != nil || len(got) != 2 {
			t.Errorf("with Resend: %v, sent %d times", err, len(got))
		} else if a, b := got[0].header, got[1].header; a.GetCallId() != b.GetCallId() || string(a.GetClientId()) != string(b.GetClientId()) ||
			a.GetRetryCount() != 0 || b.GetRetryCount() != 1 {
			t.Errorf("sent as %v, then as %v", a, b)
		}
		if err := call(c, "after"); err != nil {
			t.Errorf("the next call: %v", err)
		}
		end()
	}
}

func TestExceptions(t *testing.T) {
	n := 0
	f := newFarm(t, map[string]func(*server){"a:1": func(s *server) {
		for {
			r, err := s.next()
			if err != nil {
				return
			}
			switch r.body.GetEffectiveUser() {
			case "error":
				s.throw(r, "java.io.FileNotFoundException", "File does not exist: /x\n\tat org.apache...", false)
			case "fatal":
				s.throw(r, "org.apache.hadoop.security.AccessControlException", "no", true)
				return
			case "retriable":
				if n++; n < 3 {
					s.throw(r, "org.apache.hadoop.ipc.RetriableException", "starting", false)
				} else {
					s.reply(r)
				}
			default:
				s.reply(r)
			}
		}
	}})
	c, end := f.client(rpc.Options{Addresses: []string{"a:1"}, Retry: rpc.Retry{Pause: time.Millisecond}})
	defer end()
	err := call(c, "error")
	if !rpc.IsRemote(err, "java.io.FileNotFoundException") || rpc.IsStandby(err) || rpc.Unreachable(err) ||
		!strings.HasSuffix(err.Error(), "FileNotFoundException: File does not exist: /x") {
		t.Errorf("an exception: %v", err)
	}
	if err := call(c, "x"); err != nil || len(f.dialled()) != 1 {
		t.Errorf("after an exception: %v, %d connections", err, len(f.dialled()))
	}
	if err := call(c, "retriable"); err != nil {
		t.Error(err)
	}
	if err := call(c, "fatal"); !rpc.IsDenied(err) {
		t.Errorf("a fatal exception: %v", err)
	}
	if err := call(c, "x"); err != nil || len(f.dialled()) != 2 {
		t.Errorf("after a fatal exception: %v, %d connections", err, len(f.dialled()))
	}
}

// TestContext gives up a call and uses the connection for the next.
func TestContext(t *testing.T) {
	release := make(chan struct{})
	f := newFarm(t, map[string]func(*server){"a:1": func(s *server) {
		late, err := s.next()
		if err != nil {
			return
		}
		<-release
		s.reply(late) // nobody waits for it
		s.echo()
	}})
	c, end := f.client(rpc.Options{Addresses: []string{"a:1"}})
	defer end()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- callContext(ctx, c, "late") }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("a call given up: %v", err)
	}
	// Whether the first was sent is a race: if not, the next one is "late".
	go func() { release <- struct{}{} }()
	if err := call(c, "x"); err != nil {
		t.Error(err)
	}
	if len(f.dialled()) != 1 {
		t.Errorf("%d connections", len(f.dialled()))
	}
}

// TestSilence: pings while an answer is awaited, then the attempt's time-out.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pings, calls atomic.Int32
		f := newFarm(t, map[string]func(*server){"a:1": func(s *server) {
			for {
				r, err := s.next()
				if err != nil {
					return
				}
				if r.header.GetCallId() == -4 {
					pings.Add(1)
				} else {
					calls.Add(1)
				}
			}
		}})
		c, end := f.client(rpc.Options{Addresses: []string{"a:1"}, Timeout: 65 * time.Second})
		defer end()
		start := time.Now()
		if err := call(c, "x"); !rpc.Unreachable(err) || !strings.Contains(err.Error(), "no answer") {
			t.Errorf("a server that does not answer: %v", err)
		}
		if d := time.Since(start); d != 65*time.Second || pings.Load() != 6 || calls.Load() != 1 {
			t.Errorf("after %v: %d pings, %d calls", d, pings.Load(), calls.Load())
		}
	})
}

func TestIdleClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Int32
		f := newFarm(t, map[string]func(*server){"a:1": func(s *server) {
			s.echo()
			ended.Add(1)
		}})
		c, end := f.client(rpc.Options{Addresses: []string{"a:1"}, Idle: 10 * time.Second})
		defer end()
		for range 5 { // in use
			if err := call(c, "x"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
		}
		if ended.Load() != 0 || len(f.dialled()) != 1 {
			t.Errorf("in use: %d ended of %d", ended.Load(), len(f.dialled()))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if ended.Load() != 1 {
			t.Error("the idle connection was not closed")
		}
		if err := call(c, "x"); err != nil {
			t.Error(err)
		}
		c.Reconnect()
		synctest.Wait()
		if ended.Load() != 2 {
			t.Error("Reconnect left the idle connection open")
		}
		if err := call(c, "x"); err != nil {
			t.Error(err)
		}
	})
}

func TestClose(t *testing.T) {
	sent := make(chan struct{})
	f := newFarm(t, map[string]func(*server){"a:1": func(s *server) {
		s.next()
		close(sent)
		s.next()
	}})
	c, end := f.client(rpc.Options{Addresses: []string{"a:1"}})
	done := make(chan error, 1)
	go func() { done <- call(c, "x") }()
	<-sent
	end()
	if err := <-done; !errors.Is(err, rpc.ErrClosed) {
		t.Errorf("a call in flight: %v", err)
	}
	if err := call(c, "x"); !errors.Is(err, rpc.ErrClosed) {
		t.Errorf("a call afterwards: %v", err)
	}
}

func FuzzServer(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x09\x04\x08\x00\x10\x00\x03\x0a\x01y"))
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Add([]byte("HTTP/1.1 404 Not Found\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer bound.Memory(t, len(b), 1000)()
		for _, login := range []rpc.Login{nil, xorLogin{}} {
			near, far := net.Pipe()
			c := rpc.New(rpc.Options{Protocol: "P", User: "u", Login: login, Addresses: []string{"a:1"}, Retry: rpc.Retry{Limit: -1},
				Dial: func(context.Context, string, string) (net.Conn, error) { return near, nil }})
			go io.Copy(io.Discard, far)
			go func() {
				far.Write(b)
				far.Close()
			}()
			_ = c.Call(context.Background(), "m", user("x"), &common.UserInformationProto{})
			c.Close()
		}
	})
}

// TestLimitOfACall: a call that must not be given up lightly is tried for longer than
// the others.
func TestLimitOfACall(t *testing.T) {
	f := newFarm(t, map[string]func(*server){"a:1": func(s *server) { s.echo() }})
	defer f.wg.Wait()
	for limit, want := range map[time.Duration]bool{0: false, time.Minute: true} {
		tries := 0
		c := rpc.New(rpc.Options{
			Protocol: protocol, Addresses: []string{"a:1"}, User: "alice", Retry: rpc.Retry{Limit: time.Millisecond, Pause: 2 * time.Millisecond},
			Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				if tries++; tries < 4 {
					return nil, errRefused
				}
				return f.dial(ctx, network, address)
			},
		})
		ctx := context.Background()
		if limit > 0 {
			ctx = rpc.WithLimit(ctx, limit)
		}
		if err := callContext(ctx, c, "x"); (err == nil) != want {
			t.Errorf("limit %s: %v after %d tries", limit, err, tries)
		}
		c.Close()
	}
}
