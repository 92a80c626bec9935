package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/sasl"
	"holdfast/internal/hadoop/token"
	"holdfast/internal/hadoop/wire/common"
	"holdfast/test/testcluster"
)

const clientProtocol = "org.apache.hadoop.hdfs.protocol.ClientProtocol"

// nothing stands for requests without fields and answers that do not matter.
func nothing() proto.Message { return &common.CancelDelegationTokenResponseProto{} }

func stats(ctx context.Context, c rpc.Caller) error {
	return c.Call(ctx, "getFsStats", nothing(), nothing())
}

// TestNameNode talks to a real NameNode: with tokens at every protection and
// cipher, with bad tokens, while it stands still and while it is restarted.
func TestNameNode(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cluster := testcluster.ForTest(t, testcluster.Options{HDFSOnly: true, DataNodes: 1, Conf: map[string]string{
		// Tokens, and so SASL, without Kerberos.
		"dfs.namenode.delegation.token.always-use": "true",
		"hadoop.rpc.protection":                    "privacy,integrity,authentication",
	}})
	c, err := conf.Load(cluster.ConfDir())
	if err != nil {
		t.Fatal(err)
	}
	addresses, err := c.NameNodes("")
	if err != nil {
		t.Fatal(err)
	}
	client := func(o rpc.Options) *rpc.Client {
		o.Protocol, o.Addresses = clientProtocol, addresses
		r := rpc.New(o)
		t.Cleanup(func() { r.Close() })
		return r
	}
	simple := client(rpc.Options{})
	issued := &common.GetDelegationTokenResponseProto{}
	if err := simple.Call(ctx, "getDelegationToken", &common.GetDelegationTokenRequestProto{Renewer: proto.String(rpc.CurrentUser())}, issued); err != nil {
		t.Fatal(err)
	}
	k := token.FromProto(issued.GetToken())

	for _, want := range []sasl.Options{
		{QOP: []string{sasl.Auth}}, {QOP: []string{sasl.AuthInt}},
		{QOP: []string{sasl.AuthConf}, Ciphers: []string{"3des"}}, {QOP: []string{sasl.AuthConf}, Ciphers: []string{"rc4"}},
	} {
		t.Run(fmt.Sprint(want.QOP, want.Ciphers), func(t *testing.T) {
			login := &watchedLogin{t: k, o: want}
			c := client(rpc.Options{Login: login})
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
			renewed := &common.RenewDelegationTokenResponseProto{}
			if err := c.Call(ctx, "renewDelegationToken", &common.RenewDelegationTokenRequestProto{Token: issued.GetToken()}, renewed); err != nil {
				t.Error(err)
			}
			if time.UnixMilli(int64(renewed.GetNewExpiryTime())).Before(time.Now()) {
				t.Errorf("renewed until %d", renewed.GetNewExpiryTime())
			}
			if login.qop() != want.QOP[0] {
				t.Errorf("negotiated %q, want %q", login.qop(), want.QOP[0])
			}
		})
	}

	t.Run("weak ciphers", func(t *testing.T) { // which the NameNode offers
		for _, weak := range []string{"des", "rc4-56", "rc4-40"} {
			login := &watchedLogin{t: k, o: sasl.Options{QOP: []string{sasl.AuthConf}, Ciphers: []string{weak}}}
			if err := stats(ctx, client(rpc.Options{Login: login})); !rpc.IsDenied(err) || !strings.Contains(err.Error(), weak) {
				t.Errorf("%s: %v", weak, err)
			}
		}
	})

	t.Run("bad tokens", func(t *testing.T) {
		wrong := k
		wrong.Password = []byte("wrong")
		if err := stats(ctx, client(rpc.Options{Login: rpc.TokenLogin(wrong)})); !rpc.IsDenied(err) || rpc.Unreachable(err) {
			t.Errorf("a wrong password: %v", err)
		}
		if err := simple.Call(ctx, "cancelDelegationToken", &common.CancelDelegationTokenRequestProto{Token: issued.GetToken()}, nothing()); err != nil {
			t.Fatal(err)
		}
		if err := stats(ctx, client(rpc.Options{Login: rpc.TokenLogin(k)})); !rpc.IsInvalidToken(err) || !rpc.IsDenied(err) {
			t.Errorf("a cancelled token: %v", err)
		}
	})

	t.Run("exceptions", func(t *testing.T) {
		if err := simple.Call(ctx, "noSuchMethod", nothing(), nothing()); !rpc.IsRemote(err, "org.apache.hadoop.ipc.RpcNoSuchMethodException") {
			t.Errorf("an unknown method: %v", err)
		}
		if err := stats(ctx, simple); err != nil {
			t.Errorf("after it: %v", err)
		}
	})

	nn := cluster.Daemon("nn")
	t.Run("paused", func(t *testing.T) {
		c := client(rpc.Options{Timeout: 2 * time.Second, Retry: rpc.Retry{Resend: true, Limit: time.Minute}})
		if err := stats(ctx, c); err != nil {
			t.Fatal(err)
		}
		if err := nn.Pause(); err != nil {
			t.Fatal(err)
		}
		// A stop takes a moment to reach all threads: the first call may get through.
		var err error
		for deadline := time.Now().Add(time.Minute); err == nil && time.Now().Before(deadline); {
			short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
			err = stats(short, c)
			cancel()
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while it stands still: %v", err)
		}
		once := client(rpc.Options{Timeout: time.Second, Retry: rpc.Retry{Limit: -1}})
		if err := stats(ctx, once); !rpc.Unreachable(err) {
			t.Errorf("while it stands still, tried once: %v", err)
		}
		done := make(chan error, 1)
		go func() { done <- stats(ctx, c) }()
		if err := nn.Resume(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Errorf("after it goes on: %v", err)
		}
	})

	t.Run("restarted", func(t *testing.T) {
		c := client(rpc.Options{Retry: rpc.Retry{Resend: true, Limit: 2 * time.Minute}})
		if err := stats(ctx, c); err != nil {
			t.Fatal(err)
		}
		if err := nn.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := stats(ctx, client(rpc.Options{Retry: rpc.Retry{Limit: -1}})); !rpc.Unreachable(err) {
			t.Errorf("while it is away: %v", err)
		}
		done := make(chan error, 1)
		go func() { done <- stats(ctx, c) }()
		if err := nn.Restart(ctx); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Errorf("after it is back: %v", err)
		}
	})
}

// watchedLogin is TokenLogin with a choice of ciphers, and tells what was
// negotiated.
type watchedLogin struct {
	t token.Token
	o sasl.Options

	mu   sync.Mutex
	last *sasl.Digest
}

func (l *watchedLogin) Start(_ context.Context, _ string, offers []rpc.Auth) (rpc.Auth, rpc.Mechanism, error) {
	for _, a := range offers {
		if a.Method == "TOKEN" {
			o := l.o
			o.Username, o.Password = sasl.TokenUser(l.t.Identifier, l.t.Password)
			o.Protocol, o.Server = a.Protocol, a.ServerID
			l.mu.Lock()
			defer l.mu.Unlock()
			l.last = sasl.NewDigest(o)
			return a, watched{l.last}, nil
		}
	}
	return rpc.Auth{}, nil, errors.New("no tokens")
}

func (l *watchedLogin) qop() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last.QOP()
}

type watched struct{ *sasl.Digest }

func (w watched) Finish(b []byte) (rpc.Session, error) {
	s, err := w.Digest.Finish(b)
	if s == nil || err != nil {
		return nil, err
	}
	return s, nil
}
