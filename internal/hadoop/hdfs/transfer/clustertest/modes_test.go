package clustertest

import (
	"context"
	"net"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"holdfast/internal/hadoop/token"
)

// TestCiphers is TestProtections with DataNodes of other settings.
func TestCiphers(t *testing.T) {
	for _, m := range []mode{
		{"encryption with AES", settings(aes, "true", "3des"), map[string]string{"authentication": "encryption (AES/CTR/NoPadding)"}},
		{"SASL without AES", settings("", "false", ""), map[string]string{"privacy": "privacy (3des)"}},
	} {
		t.Run(m.name, m.check)
	}
	if !*full {
		return
	}
	for _, m := range []mode{
		{"encryption with RC4", settings("", "true", "rc4"), map[string]string{"": "encryption (rc4)"}},
		{"encryption with 3DES", settings("", "true", "3des"), map[string]string{"privacy": "encryption (3des)"}},
	} {
		t.Run(m.name, m.check)
	}
}

// TestHandshakeSecret: for clients of an auxiliary port, the NameNode has
// DataNodes demand the protection with which they came to it, though the
// DataNodes and the client would do with less.
func TestHandshakeSecret(t *testing.T) {
	if !*full {
		t.Log("only with -matrix")
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, newer := range []string{"false", "true"} {
		s := settings(aes, "false", "")
		s["dfs.namenode.send.qop.enabled"] = "true"
		s["dfs.namenode.rpc-address.auxiliary-ports"] = port
		s["dfs.block.access.token.protobuf.enable"] = newer
		become(t, s)
		tokenFor(t, "127.0.0.1:"+port)
		name := home + "/secret-" + newer
		c := dial(t, map[string]string{
			"fs.defaultFS":          "hdfs://127.0.0.1:" + port,
			"hadoop.rpc.protection": "privacy", "dfs.data.transfer.protection": "authentication,privacy",
		})
		want := content(5, 100_000)
		c.write(t, name, want)
		same(t, name, c.read(t, name), want)
		c.modes.only(t, "privacy (AES/CTR/NoPadding)")
	}
}

// TestTokensExpire reads and writes on while block tokens and data encryption
// keys live for a minute.
func TestTokensExpire(t *testing.T) {
	if !*full {
		t.Log("only with -matrix")
		return
	}
	s := settings(aes, "true", "3des")
	s["dfs.block.access.token.lifetime"], s["dfs.block.access.key.update.interval"] = "1", "1"
	become(t, s)
	const block, blocks = 1 << 20, 32
	c := dial(t, map[string]string{"dfs.blocksize": strconv.Itoa(block)})
	want := content(8, blocks*block)
	c.write(t, home+"/expire-read", want)
	r, err := c.Open(t.Context(), home+"/expire-read")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f, err := c.Create(t.Context(), home+"/expire-write", 0o644)
	if err != nil {
		t.Fatal(err)
	}
	var written []byte
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	const asking = "asking for new block access tokens"
	for n := 0; !c.modes.heard(asking); n++ { // each a block that is no longer in memory
		got, from := make([]byte, block), n*7%blocks*block
		if _, err := r.ReadAt(got, int64(from)); err != nil {
			t.Fatal(err)
		}
		same(t, "a block", got, want[from:from+block])
		if _, err := f.Write(got); err != nil {
			t.Fatal(err)
		}
		written = append(written, got...)
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("no token was refused within %d s", n)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	same(t, "what was written meanwhile", c.read(t, home+"/expire-write"), written)
	c.modes.only(t, "encryption ("+aes+")")
}

// tokenFor makes the token that TestMain has fetched one for another address of
// the NameNode, for this test.
func tokenFor(t *testing.T, service string) {
	t.Helper()
	credentials, err := token.FromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	k, ok := credentials.Find(token.KindHDFS, "")
	if !ok {
		t.Fatal("there is no token")
	}
	k.Service = service
	credentials.Tokens[service] = k
	file := filepath.Join(t.TempDir(), "tokens")
	if err := credentials.WriteFile(file); err != nil {
		t.Fatal(err)
	}
	t.Setenv(token.EnvFile, file)
}
