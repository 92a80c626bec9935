package rpc_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/kerberos"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/sasl"
	"holdfast/internal/hadoop/token"
	"holdfast/internal/hadoop/wire/common"
	"holdfast/test/testcluster"
	"holdfast/test/testcluster/kdc"
)

// TestKerberos talks to a NameNode with Kerberos: with tickets and with a
// token, at every protection, and as those who are not let in.
func TestKerberos(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cluster := testcluster.ForTest(t, testcluster.Options{HDFSOnly: true, DataNodes: 1, Security: &testcluster.Security{
		RPC: "privacy,integrity,authentication",
	}})
	t.Setenv(kerberos.EnvConfig, cluster.KDC().Config())
	c, err := conf.Load(cluster.ConfDir())
	if err != nil {
		t.Fatal(err)
	}
	addresses, err := c.NameNodes("")
	if err != nil {
		t.Fatal(err)
	}
	var sent recorder
	client := func(l rpc.Login) *rpc.Client {
		r := rpc.New(rpc.Options{Protocol: clientProtocol, Addresses: addresses, Login: l, Dial: sent.dial})
		t.Cleanup(func() { r.Close() })
		return r
	}
	user := func(name string) *kerberos.User {
		u, err := kerberos.FromKeytab(name, cluster.KDC().Keytab(name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(u.Close)
		return u
	}
	nn := rpc.Principal{Key: "dfs.namenode.kerberos.principal", Name: c.Get("dfs.namenode.kerberos.principal")}
	alice := user(kdc.Alice)
	var k token.Token

	for _, qop := range []string{sasl.Auth, sasl.AuthInt, sasl.AuthConf} {
		t.Run("GSSAPI "+qop, func(t *testing.T) {
			login := &watchedKerberos{Login: rpc.KerberosLogin(alice, nn, qop)}
			sent.reset()
			c := client(login)
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for range 25 {
						if err := stats(ctx, c); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			// More than the 64 KB that each side says it takes at once.
			long := &common.GetDelegationTokenRequestProto{Renewer: proto.String(strings.Repeat("x", 200_000))}
			if err := c.Call(ctx, "getDelegationToken", long, &common.GetDelegationTokenResponseProto{}); err != nil {
				t.Errorf("a long request: %v", err)
			}
			issued := &common.GetDelegationTokenResponseProto{}
			if err := c.Call(ctx, "getDelegationToken", &common.GetDelegationTokenRequestProto{Renewer: proto.String("rm")}, issued); err != nil {
				t.Fatal(err)
			}
			k = token.FromProto(issued.GetToken())
			if login.qop() != qop {
				t.Errorf("negotiated %q", login.qop())
			}
			if clear := sent.contain("getFsStats"); clear != (qop != sasl.AuthConf) {
				t.Errorf("the request went out in clear: %v", clear)
			}
			if err := stats(ctx, client(rpc.TokenLogin(k, qop))); err != nil {
				t.Errorf("by token: %v", err)
			}
		})
	}

	t.Run("not let in", func(t *testing.T) {
		cancelled := &common.CancelDelegationTokenRequestProto{Token: k.Proto()}
		if err := client(rpc.KerberosLogin(alice, nn)).Call(ctx, "cancelDelegationToken", cancelled, nothing()); err != nil {
			t.Fatal(err)
		}
		other := nn
		other.Name = "nn/elsewhere.test@HOLDFAST.TEST"
		unset := rpc.Principal{Key: nn.Key}
		for name, try := range map[string]struct {
			login rpc.Login
			want  string
		}{
			"a stranger":            {rpc.KerberosLogin(user(kdc.Stranger), nn), "not authorized for protocol"},
			"a cancelled token":     {rpc.TokenLogin(k), "InvalidToken"},
			"another service":       {rpc.KerberosLogin(alice, other), "says that it is nn/localhost@HOLDFAST.TEST"},
			"no service":            {rpc.KerberosLogin(alice, unset), "set dfs.namenode.kerberos.principal"},
			"an unknown protection": {rpc.KerberosLogin(alice, nn, "auth-none"), "compare hadoop.rpc.protection"},
		} {
			err := stats(ctx, client(try.login))
			if err == nil || !strings.Contains(err.Error(), try.want) || !rpc.IsDenied(err) || rpc.Unreachable(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
		pattern := rpc.Principal{Key: nn.Key, Pattern: "nn/*@HOLDFAST.TEST"}
		if err := stats(ctx, client(rpc.KerberosLogin(alice, pattern))); err != nil {
			t.Errorf("by pattern: %v", err)
		}
	})
}

// watchedKerberos tells what was negotiated.
type watchedKerberos struct {
	rpc.Login
	mu   sync.Mutex
	last rpc.Mechanism
}

func (l *watchedKerberos) Start(ctx context.Context, address string, offers []rpc.Auth) (rpc.Auth, rpc.Mechanism, error) {
	a, m, err := l.Login.Start(ctx, address, offers)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = m
	return a, m, err
}

func (l *watchedKerberos) qop() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q, ok := l.last.(interface{ QOP() string }); ok {
		return q.QOP()
	}
	return fmt.Sprintf("%T", l.last)
}

// recorder keeps what is sent over its connections.
type recorder struct {
	mu   sync.Mutex
	sent bytes.Buffer
}

func (r *recorder) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &recordedConn{c, r}, nil
}

func (r *recorder) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent.Reset()
}

func (r *recorder) contain(s string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Contains(r.sent.Bytes(), []byte(s))
}

type recordedConn struct {
	net.Conn
	r *recorder
}

func (c *recordedConn) Write(b []byte) (int, error) {
	c.r.mu.Lock()
	c.r.sent.Write(b)
	c.r.mu.Unlock()
	return c.Conn.Write(b)
}

// TestAServiceWhoseKeyHasChanged: a NameNode with a new key refuses tickets under the old one, as
// long as they last. Who has one gets another, all of them by one request. What is refused for
// another reason costs no more than that either.
func TestAServiceWhoseKeyHasChanged(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cluster := testcluster.ForTest(t, testcluster.Options{HDFSOnly: true, DataNodes: 1, Security: &testcluster.Security{}})
	realm := cluster.KDC()
	t.Setenv(kerberos.EnvConfig, realm.Config())
	c, err := conf.Load(cluster.ConfDir())
	if err != nil {
		t.Fatal(err)
	}
	addresses, err := c.NameNodes("")
	if err != nil {
		t.Fatal(err)
	}
	nn := rpc.Principal{Key: "dfs.namenode.kerberos.principal", Name: c.Get("dfs.namenode.kerberos.principal")}
	logIn := func(u *kerberos.User) error { // over a connection of its own
		r := rpc.New(rpc.Options{Protocol: clientProtocol, Addresses: addresses, Login: rpc.KerberosLogin(u, nn)})
		defer r.Close()
		return stats(ctx, r)
	}
	user := func(name string) *kerberos.User {
		u, err := kerberos.FromKeytab(name, realm.Keytab(name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(u.Close)
		return u
	}
	withTicket := func(name string) *kerberos.User {
		u := user(name)
		if err := logIn(u); err != nil {
			t.Fatal(err)
		}
		return u
	}
	asked := func(name string) int { // how often a ticket was asked for
		return strings.Count(cluster.Daemon("kdc").Log(), name+"@"+kdc.Realm+" for "+kdc.Service("nn"))
	}

	alice, bob := withTicket(kdc.Alice), withTicket(kdc.Bob)
	cache, err := realm.Tickets(ctx, kdc.Alice)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(kerberos.EnvCache, cache)
	byCache, err := kerberos.FromCache()
	if err == nil {
		err = logIn(byCache)
	}
	if err == nil {
		err = realm.NewKey(ctx, "nn")
	}
	if err != nil {
		t.Fatal(err)
	}
	before := asked(kdc.Alice)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := logIn(alice); err != nil {
				t.Errorf("with a ticket under the old key: %v", err)
			}
		})
	}
	wg.Wait()
	if n := asked(kdc.Alice) - before; n != 1 {
		t.Errorf("%d tickets were asked for in the place of one", n)
	}
	if err := logIn(byCache); err != nil {
		t.Errorf("with a ticket under the old key, and kinit's: %v", err)
	}

	// The KDC has another key now than the NameNode, which refuses all tickets.
	if err := realm.Admin(ctx, "cpw -randkey "+kdc.Service("nn")); err != nil {
		t.Fatal(err)
	}
	stranger := user(kdc.Stranger)
	for u, most := range map[*kerberos.User]int{bob: 1, stranger: 2} {
		name, _, _ := strings.Cut(u.Principal(), "@")
		before := asked(name)
		for i := range 20 {
			err := logIn(u)
			if err == nil || !strings.Contains(err.Error(), "GSS initiate failed") || !rpc.IsDenied(err) || rpc.Unreachable(err) {
				t.Errorf("%s is not refused: %v", name, err)
			}
			if n := asked(name) - before; i == 0 && n != 1 || n > most {
				t.Errorf("%s has asked for %d tickets when %d were refused", name, n, i+1)
			}
		}
	}
}
