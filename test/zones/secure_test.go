package zones

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/internal/hadoop/delegation"
	"holdfast/internal/hadoop/kerberos"
	"holdfast/internal/hadoop/kms"
	"holdfast/internal/hadoop/login"
	"holdfast/internal/hadoop/token"
	"holdfast/test/testcluster"
	"holdfast/test/testcluster/kdc"
)

// TestZonesSecure: with Kerberos, and then with nothing but delegation tokens, as in
// containers.
func TestZonesSecure(t *testing.T) {
	const life = 10 * time.Minute
	c, cf := start(t, testcluster.Options{
		HDFSOnly: true, DataNodes: 1, KMS: &testcluster.KMS{Keys: []string{"key1"}},
		Security: &testcluster.Security{RPC: "privacy", TokenLife: life},
		Conf:     map[string]string{"dfs.blocksize": "1048576"},
	})
	t.Setenv(kerberos.EnvConfig, c.KDC().Config())
	t.Setenv(kerberos.EnvCache, filepath.Join(t.TempDir(), "none"))
	t.Setenv("CONTAINER_ID", "container_1_1_01_1")
	keytab, err := os.ReadFile(c.KDC().Keytab(kdc.Alice))
	if err != nil {
		t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	uris := []string{c.HDFS() + "/zone/out", c.HDFS() + "/user/alice"}
	refresher := &delegation.Refresher{Conf: cf, Principal: "alice", Keytab: keytab, Source: "the test", URIs: uris, Log: logrus.NewEntry(log)}
	if err := refresher.Login(); err != nil {
		t.Fatal(err)
	}
	zone(t, c, "/zone", "key1", kdc.Alice)

	content := noise(2<<20 + 99)
	t.Run("Kerberos", func(t *testing.T) {
		client := dial(t, c, cf)
		write(t, client, "/zone/ours", content)
		wantRead(t, client, "/zone/ours", content)
		wantJava(t, c, map[string][]byte{"/zone/ours": content})
		keys, err := kms.New(c.KeyProvider(), cf)
		if err != nil {
			t.Fatal(err)
		}
		if err := keys.Check(t.Context()); err != nil {
			t.Error(err)
		}
	})

	var all *token.Credentials
	t.Run("tokens", func(t *testing.T) {
		var until time.Time
		if all, until, err = refresher.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		k, ok := all.Find(token.KindKMS, c.KeyProvider())
		if !ok || len(all.Tokens) != 2 {
			t.Fatalf("got %v, want one for %s", all.Tokens, c.KeyProvider())
		}
		d, err := k.Delegation()
		if err != nil || d.Owner != "alice" || d.Renewer != "alice" || d.Max.Sub(d.Issued) != life {
			t.Errorf("it says %+v, %v", d, err)
		}
		if left := time.Until(until); left < life/4 || left > life/2+time.Second {
			t.Errorf("they are good for %s", left)
		}
		none, err := delegation.HDFS(t.Context(), cf, "rm", uris[1:])
		if err != nil || len(none.Tokens) != 1 {
			t.Errorf("outside of any zone: %v, %v", none, err)
		}
	})
	if all == nil {
		return
	}

	file := filepath.Join(t.TempDir(), "tokens")
	if err := all.WriteFile(file); err != nil {
		t.Fatal(err)
	}
	t.Run("nothing but tokens", func(t *testing.T) {
		t.Setenv(token.EnvFile, file)
		login.As(nil)
		if _, err := login.User(); err == nil {
			t.Fatal("there is a ticket")
		}
		client := dial(t, c, cf)
		wantRead(t, client, "/zone/ours", content)
		write(t, client, "/zone/by-token", content)
		more := noise(70_000)
		add(t, client, "/zone/by-token", more)
		wantJava(t, c, map[string][]byte{"/zone/by-token": append(bytes.Clone(content), more...)})
		again, err := delegation.HDFS(t.Context(), cf, "rm", uris)
		if err != nil || len(again.Tokens) != 2 {
			t.Errorf("tokens that are there are not taken: %v, %v", again, err)
		}
	})
	t.Run("Hadoop takes them", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := c.HadoopCommand(ctx, "fs", "-tail", "/zone/ours")
		cmd.Env = append(cmd.Env, token.EnvFile+"="+file, "KRB5CCNAME="+filepath.Join(t.TempDir(), "none"))
		var out, said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &said
		if err := cmd.Run(); err != nil || !bytes.Equal(out.Bytes(), content[len(content)-1024:]) {
			t.Errorf("Java reads other bytes with these tokens: %v\n%s", err, said.Bytes())
		}
	})
	forged := all.Clone()
	for alias, k := range forged.Tokens {
		if k.Kind == token.KindKMS {
			k.Password = []byte(strings.Repeat("x", len(k.Password)))
			forged.Tokens[alias] = k
		}
	}
	t.Run("Hadoop renews them", func(t *testing.T) { // as the ResourceManager does
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		tickets, err := c.KDC().Tickets(ctx, kdc.Alice)
		if err != nil {
			t.Fatal(err)
		}
		for _, tokens := range []*token.Credentials{all, forged} { // the latter shows that it is asked at all
			theirs := filepath.Join(t.TempDir(), "tokens")
			if err := tokens.WriteFile(theirs); err != nil {
				t.Fatal(err)
			}
			cmd := c.HadoopCommand(ctx, "dtutil", "renew", "-alias", c.KeyProvider(), theirs)
			cmd.Env = append(cmd.Env, "KRB5CCNAME="+tickets)
			if out, err := cmd.CombinedOutput(); (err != nil) != (tokens == forged) {
				t.Errorf("%v\n%s", err, out)
			}
		}
	})
	t.Run("no token for the keys", func(t *testing.T) {
		t.Setenv(token.EnvFile, filepath.Join(t.TempDir(), "tokens"))
		few := all.Clone()
		few.RemoveKind(token.KindKMS)
		if err := few.WriteFile(os.Getenv(token.EnvFile)); err != nil {
			t.Fatal(err)
		}
		login.As(nil)
		_, err := read(t.Context(), dial(t, c, cf), "/zone/ours")
		if err == nil {
			t.Error("a file is read without its key")
		}
		wantWords(t, err, "/zone/ours", "key1", c.KeyProvider(), token.KindKMS)
	})
	t.Run("a token that is not good", func(t *testing.T) {
		t.Setenv(token.EnvFile, filepath.Join(t.TempDir(), "tokens"))
		if err := forged.WriteFile(os.Getenv(token.EnvFile)); err != nil {
			t.Fatal(err)
		}
		_, err := read(t.Context(), dial(t, c, cf), "/zone/ours")
		if err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a token that is not good: %v", err)
		}
		for _, k := range all.Tokens {
			if strings.Contains(err.Error(), k.URLString()) || strings.Contains(err.Error(), k.URLString()[:30]) {
				t.Errorf("the error has a token: %v", err)
			}
		}
	})
}
