package rpc_test

import (
	"context"
	"net"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/wire/common"
)

var resend = rpc.Retry{Resend: true}

// TestOneHangs: the one that took over from it is found soon, and remembered; the
// call keeps its id, by which a retry cache knows it.
func TestOneHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		ids := map[string]int32{}
		note := func(address string, serve func(*server, request)) func(*server) {
			return func(s *server) {
				s.each(func(r request) {
					if r.body.GetEffectiveUser() == "first" && r.header.GetCallId() >= 0 {
						mu.Lock()
						ids[address] = r.header.GetCallId()
						mu.Unlock()
					}
					serve(s, r)
				})
			}
		}
		f := newFarm(t, map[string]func(*server){
			"hung:1":   note("hung:1", func(*server, request) {}),
			"active:1": note("active:1", (*server).reply),
		})
		c, end := f.client(rpc.Options{Addresses: []string{"hung:1", "refused:1", "active:1"}, Retry: resend, Anywhere: rpc.Anything})
		defer end()
		start := time.Now()
		var all sync.WaitGroup
		for _, text := range []string{"first", "at the same time", "so is this"} {
			all.Go(func() {
				if err := call(c, text); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("found after %s", took)
		}
		if id, ok := ids["active:1"]; !ok || id != ids["hung:1"] {
			t.Errorf("the ids of a call at each server: %v", ids)
		}
		start = time.Now()
		if err := call(c, "later"); err != nil || time.Since(start) != 0 {
			t.Errorf("a later call: %v, after %s", err, time.Since(start))
		}
		count := map[string]int{}
		for _, address := range f.dialled() {
			count[address]++
		}
		if count["active:1"] != 1 || count["hung:1"] != 1 {
			t.Errorf("connections: %v", count)
		}
	})
}

// TestSilentHost: so is one whose host does not even take the connection.
func TestSilentHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(t, map[string]func(*server){"active:1": (*server).echo})
		c := rpc.New(rpc.Options{Addresses: []string{"silent:1", "active:1"}, Protocol: protocol, User: "u", Retry: resend, Anywhere: rpc.Anything,
			Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				if address == "silent:1" {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return f.dial(ctx, network, address)
			}})
		start := time.Now()
		if err := call(c, "x"); err != nil || time.Since(start) > 3*time.Second {
			t.Errorf("%v, after %s", err, time.Since(start))
		}
		c.Close()
		f.wg.Wait()
	})
}

// TestOneIsSlow: nobody else serves, so it is waited for, and stays the active one.
func TestOneIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(s *server) {
			s.each(func(r request) {
				time.Sleep(7 * time.Second)
				s.reply(r)
			})
		}
		denied := func(s *server) {
			r, err := s.next()
			if err != nil {
				return
			}
			s.throw(r, "org.apache.hadoop.security.token.SecretManager$InvalidToken", "token can't be found in cache", true)
		}
		for name, other := range map[string]func(*server){"standby": standby, "hangs too": hang, "does not know the token": denied} {
			f := newFarm(t, map[string]func(*server){"slow:1": slow, "other:1": other})
			c, end := f.client(rpc.Options{Addresses: []string{"slow:1", "other:1"}, Retry: resend, Anywhere: rpc.Anything})
			for range 2 {
				start := time.Now()
				if err := call(c, "x"); err != nil || time.Since(start) != 7*time.Second {
					t.Errorf("beside one that %s: %v, after %s", name, err, time.Since(start))
				}
			}
			end()
		}
	})
}

// TestTakenOverLate: the other one stands by when it is asked at first.
func TestTakenOverLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		active := time.Now().Add(5 * time.Second)
		f := newFarm(t, map[string]func(*server){"hung:1": hang, "other:1": func(s *server) {
			s.each(func(r request) {
				if time.Now().Before(active) {
					s.throw(r, "org.apache.hadoop.ipc.StandbyException", "not yet", false)
				} else {
					s.reply(r)
				}
			})
		}})
		c, end := f.client(rpc.Options{Addresses: []string{"hung:1", "other:1"}, Retry: resend, Anywhere: rpc.Anything})
		defer end()
		if err := call(c, "x"); err != nil || time.Since(active) > 2*time.Second {
			t.Errorf("%v, %s after the other one took over", err, time.Since(active))
		}
	})
}

// asked is a server that has the protocol one, or not, and serves the other calls.
func asked(one bool, serve func(*server, request)) func(*server) {
	return func(s *server) {
		s.each(func(r request) {
			switch {
			case r.header.GetCallId() < 0: // a ping
			case r.method.GetMethodName() == "getProtocolSignature":
				resp := &common.GetProtocolSignatureResponseProto{}
				if one && r.body.GetEffectiveUser() == "One" { // the field of the request's protocol
					resp.ProtocolSignature = append(resp.ProtocolSignature, &common.ProtocolSignatureProto{Version: proto.Uint64(1)})
				}
				s.Write(join(success(r), resp))
			default:
				serve(s, r)
			}
		})
	}
}

// TestACallIsMadeAtOneRouter: Routers are all active, so what must not be carried out twice is not
// asked of a second one while the first is at it. Here the NameNode behind them takes 3 s, as in a
// collection of garbage, and a rename that it carries out again fails.
func TestACallIsMadeAtOneRouter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var nameNode sync.Mutex
		renamed := 0
		pause := time.Now().Add(3 * time.Second)
		router := func(own time.Duration) func(*server) { // how long its answers take
			return asked(false, func(s *server, r request) {
				time.Sleep(time.Until(pause))
				nameNode.Lock()
				renamed++
				first := renamed == 1
				nameNode.Unlock()
				time.Sleep(own)
				if first {
					s.reply(r)
				} else {
					s.throw(r, "java.io.FileNotFoundException", "rename source /a is not found.", false)
				}
			})
		}
		f := newFarm(t, map[string]func(*server){"router1:1": router(2 * time.Millisecond), "router2:1": router(time.Millisecond)})
		c, end := f.client(rpc.Options{Addresses: []string{"router1:1", "router2:1"}, Retry: resend, OneActive: "One"})
		defer end()
		err := call(c, "rename /a to /b")
		time.Sleep(time.Second)
		if err != nil || renamed != 1 {
			t.Errorf("it was carried out %d times, and the caller is told %v", renamed, err)
		}
	})
}

// TestNoCallIsMadeAfterItsAnswer: nor by a Router that has stood still with it in its hands.
func TestNoCallIsMadeAfterItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int32
		router := func(wait time.Duration) func(*server) {
			return asked(false, func(s *server, r request) {
				time.Sleep(wait)
				made.Add(1)
				s.reply(r)
			})
		}
		f := newFarm(t, map[string]func(*server){"router1:1": router(10 * time.Second), "router2:1": router(0)})
		c, end := f.client(rpc.Options{Addresses: []string{"router1:1", "router2:1"}, Retry: resend, OneActive: "One"})
		defer end()
		if err := call(c, "move /p into the area"); err != nil {
			t.Error(err)
		}
		then := made.Load()
		time.Sleep(9 * time.Second)
		if late := made.Load() - then; late != 0 {
			t.Errorf("it was carried out %d times after its answer", late)
		}
	})
}

// TestOneOfAPairHangs: what must not be carried out twice is asked of the one that took over, too,
// once that says what it is; and of nobody who does not say it.
func TestOneOfAPairHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(t, map[string]func(*server){"hung:1": hang, "active:1": asked(true, (*server).reply)})
		o := rpc.Options{Addresses: []string{"hung:1", "active:1"}, Retry: resend, OneActive: "One"}
		c, end := f.client(o)
		start := time.Now()
		if err := call(c, "a change"); err != nil || time.Since(start) > 3*time.Second {
			t.Errorf("%v, after %s", err, time.Since(start))
		}
		end()
		o.OneActive, o.Timeout = "", 10*time.Second
		c, end = f.client(o)
		start = time.Now()
		if err := call(c, "a change"); err != nil || time.Since(start) < o.Timeout {
			t.Errorf("where nothing is known of the servers: %v, after %s", err, time.Since(start))
		}
		end()
	})
}

// TestHungAndOnlyOnce: a call that must not be carried out twice fails, and the next
// one goes to the other server.
func TestHungAndOnlyOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(t, map[string]func(*server){"hung:1": hang, "active:1": (*server).echo})
		c, end := f.client(rpc.Options{Addresses: []string{"hung:1", "active:1"}, Timeout: 10 * time.Second})
		defer end()
		if err := call(c, "x"); !rpc.Unreachable(err) || !strings.Contains(err.Error(), "hung:1") {
			t.Errorf("%v", err)
		}
		if err := call(c, "y"); err != nil {
			t.Errorf("the next call: %v", err)
		}
		if d := f.dialled(); !reflect.DeepEqual(d, []string{"hung:1", "active:1"}) {
			t.Errorf("dialled %q", d)
		}
	})
}
