package clustertest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/hdfs"
	"holdfast/internal/hadoop/hdfs/transfer"
	"holdfast/internal/hadoop/token"
	"holdfast/test/testcluster"
	"holdfast/test/testcluster/kdc"
)

const (
	dataNodes = 3
	all       = "authentication,integrity,privacy"
	home      = "/user/" + kdc.Alice
)

// cluster has daemons that take every protection, so that clients choose. Its
// mode is changed by reconfigure.
var cluster *testcluster.Cluster

func TestMain(m *testing.M) {
	os.Exit(testcluster.Run(m, testcluster.Options{
		HDFSOnly: true, DataNodes: dataNodes,
		Security: &testcluster.Security{RPC: all, Data: all, AES: true},
		Conf:     map[string]string{"dfs.replication": "2"},
	}, func(c *testcluster.Cluster) {
		cluster = c
		file := filepath.Join(c.Dir(), "alice.tokens")
		if out, err := asAlice(context.Background(), "fetchdt", "--renewer", "rm", file); err != nil {
			fmt.Fprintf(os.Stderr, "fetching a delegation token: %v\n%s", err, out)
			os.Exit(1)
		}
		os.Setenv(token.EnvFile, file)
	}))
}

// asAlice runs one of Hadoop's own clients.
func asAlice(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	tickets, err := cluster.KDC().Tickets(ctx, kdc.Alice)
	if err != nil {
		return "", err
	}
	cmd := cluster.HadoopCommand(ctx, args...)
	cmd.Env = append(cmd.Env, "KRB5CCNAME="+tickets)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// client is one with other settings than the cluster's; it notes the
// protections of its connections to DataNodes.
type client struct {
	*hdfs.Client
	modes *modes
}

func dial(t testing.TB, set map[string]string) client {
	t.Helper()
	c, err := conf.Load(cluster.ConfDir())
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range set {
		c.Set(k, v)
	}
	m := &modes{t: t, seen: map[string]int{}}
	h, err := hdfs.New("", c, hdfs.Options{Log: m})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return client{h, m}
}

// modes is told of connections, as --verbose shows them.
type modes struct {
	t    testing.TB
	mu   sync.Mutex
	seen map[string]int
	said []string // all messages
}

func (m *modes) Debugf(format string, args ...any) {
	m.Warnf(format, args...)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, arg := range args {
		if mode, ok := arg.(transfer.Mode); ok {
			m.seen[mode.String()]++
		}
	}
}

func (m *modes) Infof(format string, args ...any) { m.Warnf(format, args...) }

func (m *modes) Warnf(format string, args ...any) {
	fmt.Fprintf(m.t.Output(), format+"\n", args...)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.said = append(m.said, fmt.Sprintf(format, args...))
}

// heard reports whether a message contains s.
func (m *modes) heard(s string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.said, func(message string) bool { return strings.Contains(message, s) })
}

// only fails unless there were connections, and all of one mode.
func (m *modes) only(t testing.TB, want string) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.seen) != 1 || m.seen[want] == 0 {
		t.Errorf("connections were protected by %v, want only %s", m.seen, want)
	}
}

// content is reproducible text, in which marker comes often.
func content(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 0))
	var b bytes.Buffer
	for b.Len() < n {
		fmt.Fprintf(&b, "%s %d\n", marker, r.Uint64())
	}
	return b.Bytes()[:n]
}

const marker = "holdfast was here"

// write writes a file in odd pieces.
func (c client) write(t testing.TB, name string, b []byte) {
	t.Helper()
	f, err := c.Create(t.Context(), name, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	for rest := b; len(rest) > 0; {
		n := min(len(rest), 70001)
		if _, err := f.Write(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func (c client) read(t testing.TB, name string) []byte {
	t.Helper()
	r, err := c.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func same(t testing.TB, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		i := 0
		for i < min(len(got), len(want)) && got[i] == want[i] {
			i++
		}
		t.Errorf("%s: %d bytes, want %d; the first difference is at %d", what, len(got), len(want), i)
	}
}

const aes = "AES/CTR/NoPadding"

// settings are the daemons' properties that a mode is made of.
func settings(suites, encrypt, algorithm string) map[string]string {
	return map[string]string{
		"dfs.encrypt.data.transfer.cipher.suites": suites,
		"dfs.encrypt.data.transfer":               encrypt,
		"dfs.encrypt.data.transfer.algorithm":     algorithm,
	}
}

// become restarts the daemons with other settings, unless they have them.
func become(t testing.TB, daemons map[string]string) {
	t.Helper()
	if maps.Equal(now, daemons) {
		return
	}
	now = daemons
	if err := cluster.Reconfigure(t.Context(), daemons); err != nil {
		t.Fatal(err)
	}
}

var now = settings(aes, "false", "") // as TestMain starts the cluster
