package topologytest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/store/storetest"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/hdfs"
	"holdfast/test/testcluster"
)

func start(t *testing.T) *testcluster.Cluster {
	t.Helper()
	c := testcluster.ForTest(t, testcluster.Options{HDFSOnly: true, DataNodes: 2})
	return c
}

func client(t *testing.T, confDir string) *hdfs.Client {
	t.Helper()
	return connect(t, load(t, confDir))
}

func load(t *testing.T, confDir string) *conf.Conf {
	t.Helper()
	c, err := conf.Load(confDir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func connect(t *testing.T, c *conf.Conf) *hdfs.Client {
	t.Helper()
	log := logrus.New()
	log.SetOutput(t.Output())
	h, err := hdfs.New("", c, hdfs.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func write(t *testing.T, h *hdfs.Client, name string, content []byte) {
	t.Helper()
	f, err := h.Create(t.Context(), name, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestTwoNamespaces: behind a Router, the inode of a file in one namespace is the
// number of another file in the other. Each reader gets its own file's bytes, also
// after it had to ask for the DataNodes again.
func TestTwoNamespaces(t *testing.T) {
	near, far := start(t), start(t)
	confDir, err := near.StartRouter(t.Context(), far, "/far")
	if err != nil {
		t.Fatal(err)
	}
	direct := client(t, far.ConfDir())
	if err := direct.MkdirAll(t.Context(), "/far", 0o777); err != nil {
		t.Fatal(err)
	}
	h := client(t, confDir)
	for limit := time.Now().Add(time.Minute); ; {
		// A Router learns of each NameNode by that one's own heartbeats.
		if err = h.MkdirAll(t.Context(), "/there", 0o777); err == nil {
			err = h.MkdirAll(t.Context(), "/far/there", 0o777)
		}
		if err == nil {
			if _, err = direct.Stat(t.Context(), "/far/there"); err == nil {
				break
			}
		}
		if time.Now().After(limit) {
			t.Fatalf("a namespace is not there: %v; the Router's log: %s", err, near.Daemon("router").Log())
		}
		time.Sleep(100 * time.Millisecond)
	}
	// As many files in both that their inodes' numbers overlap.
	const files = 40
	size := func(i int) int { return 1000 + i }
	content := func(where string, i int) []byte {
		return bytes.Repeat([]byte(fmt.Sprint(where, i, ".")), 1<<18)[:size(i)]
	}
	inodes := map[uint64]bool{}
	shared := 0
	for i := range files {
		for _, where := range []string{"/near", "/far/there/far"} {
			name := fmt.Sprint(where, i)
			write(t, h, name, content(where, i))
			st, err := h.Stat(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if inodes[st.Inode] {
				shared++
			}
			inodes[st.Inode] = true
		}
	}
	if shared == 0 {
		t.Fatal("no inode's number is in both namespaces: the test tests nothing")
	}
	for i := range files {
		for _, where := range []string{"/near", "/far/there/far"} {
			name, want := fmt.Sprint(where, i), content(where, i)
			r, err := h.Open(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %d bytes of %d, %v: %.40q", name, len(got), len(want), err, got)
			}
			r.Close()
		}
	}
	t.Run("a store", func(t *testing.T) { storeBehindARouter(t, confDir) })
	t.Run("a change is made at one Router", func(t *testing.T) { madeOnce(t, confDir, load(t, near.ConfDir())) })
	t.Run("DataNodes asked for again", func(t *testing.T) { askedAgain(t, h, far, content) })
}

// storeBehindARouter has a checkpoint directory in the far namespace.
func storeBehindARouter(t *testing.T, confDir string) {
	c := load(t, confDir)
	var roots atomic.Int64
	storetest.Run(t, func(t *testing.T) store.Store {
		s, err := store.Open(t.Context(), fmt.Sprintf("%s/far/stores/%d", c.Get("fs.defaultFS"), roots.Add(1)), c)
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

// madeOnce renames by way of a server that hangs and another one: a NameNode says what it is, and
// renames; a Router may be active beside the first, and is not asked.
func madeOnce(t *testing.T, confDir string, nameNode *conf.Conf) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0") // connections wait to be accepted
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	rename := func(c *conf.Conf, from, to string) error {
		addresses, err := c.NameNodes("")
		if err != nil {
			t.Fatal(err)
		}
		c.Set("dfs.nameservices", "pair")
		c.Set("dfs.ha.namenodes.pair", "hung,other")
		c.Set("dfs.namenode.rpc-address.pair.hung", l.Addr().String())
		c.Set("dfs.namenode.rpc-address.pair.other", addresses[0])
		c.Set("fs.defaultFS", "hdfs://pair")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		return connect(t, c).Rename(ctx, from, to)
	}
	if err := connect(t, load(t, confDir)).MkdirAll(t.Context(), "/once/a", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := rename(nameNode, "/once/a", "/once/b"); err != nil {
		t.Errorf("beside a NameNode: %v", err)
	}
	if err := rename(load(t, confDir), "/once/b", "/once/c"); err == nil {
		t.Error("a Router renames what another server may be at")
	}
}

// askedAgain reads a file of the far namespace whose DataNodes have all been lost
// since it was opened, and are back under other ports; and one that was replaced.
func askedAgain(t *testing.T, h *hdfs.Client, far *testcluster.Cluster, content func(string, int) []byte) {
	const where = "/far/there/far"
	kept, err := h.Open(t.Context(), where+"3")
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	replaced, err := h.Open(t.Context(), where+"4")
	if err != nil {
		t.Fatal(err)
	}
	defer replaced.Close()
	write(t, h, where+"-new", []byte("other bytes, that nobody asked for"))
	if err := h.Rename(t.Context(), where+"-new", where+"4"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dn0", "dn1"} {
		if err := far.Daemon(name).Kill(); err != nil {
			t.Fatal(err)
		}
	}
	back := make(chan error, 1)
	go func() {
		var err error
		for _, name := range []string{"dn0", "dn1"} {
			if restartErr := far.Daemon(name).Restart(t.Context()); err == nil {
				err = restartErr
			}
		}
		back <- err
	}()
	got := make([]byte, kept.Size())
	if _, err := kept.ReadAt(got, 0); err != nil || !bytes.Equal(got, content(where, 3)) {
		t.Errorf("the file that stayed: %v: %.40q", err, got)
	}
	got = make([]byte, replaced.Size())
	if n, err := replaced.ReadAt(got, 0); hdfs.Errno(err) != syscall.ESTALE && !bytes.Equal(got[:n], content(where, 4)) {
		t.Errorf("the file that was replaced: %v: %.40q", err, got[:n])
	}
	if err := <-back; err != nil {
		t.Error(err)
	}
}
