package store_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/store/storetest"
	"holdfast/internal/hadoop/conf"
	"holdfast/test/testcluster"
)

var (
	shared = testcluster.Shared{Options: testcluster.Options{HDFSOnly: true}}
	roots  atomic.Int64
)

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

func clusterConf(t *testing.T) *conf.Conf {
	t.Helper()
	c, err := conf.Load(shared.Get(t).ConfDir())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// openHDFS opens an empty store on HDFS.
func openHDFS(t *testing.T) store.Store {
	t.Helper()
	s, err := store.Open(context.Background(), fmt.Sprintf("%s/stores/%d", shared.Get(t).HDFS(), roots.Add(1)), clusterConf(t))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestStoresShareMemory: what the open files of all stores that a process opens hold is counted
// together, and so bounded together.
func TestStoresShareMemory(t *testing.T) {
	o := store.NewOpener(clusterConf(t))
	memory := store.SharedOf(o)
	held := memory.Held()
	for i := range 2 {
		s, err := o.Open(t.Context(), fmt.Sprintf("%s/stores/%d", shared.Get(t).HDFS(), roots.Add(1)))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		const size = 3 << 20
		if err := store.WriteFile(t.Context(), s, "a", make([]byte, size), 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := s.Open(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, err := r.ReadAt(make([]byte, size), 0); err != nil {
			t.Fatal(err)
		}
		now := memory.Held()
		if now <= held {
			t.Errorf("a file of %d bytes that is read from store %d takes nothing of the %d bytes that all hold", size, i, held)
		}
		held = now
	}
}

func TestHDFS(t *testing.T) { storetest.Run(t, openHDFS) }

// replica finds the file of a DataNode that holds the content.
func replica(t *testing.T, node int, content []byte) string {
	t.Helper()
	found := ""
	err := filepath.WalkDir(filepath.Join(shared.Get(t).Dir(), fmt.Sprintf("dn%d", node), "data"), func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasPrefix(d.Name(), "blk_") || strings.HasSuffix(d.Name(), ".meta") {
			return err
		}
		b, err := os.ReadFile(p)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the DataNode has deleted it since its directory was read
		}
		if err == nil && bytes.Equal(b, content) {
			found = p
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}

// TestCorruptReplica reads on from a good replica, and the NameNode is told.
func TestCorruptReplica(t *testing.T) {
	ctx, s, content := context.Background(), openHDFS(t), random(3<<20)
	defer s.Close()
	if err := store.WriteFile(ctx, s, "a", content, 0o644); err != nil {
		t.Fatal(err)
	}
	var replicas []string
	for node := range 3 {
		if f := replica(t, node, content); f != "" {
			replicas = append(replicas, f)
		}
	}
	if len(replicas) != 2 {
		t.Fatalf("replicas: %v", replicas)
	}
	bad := bytes.Clone(content)
	bad[2_000_000] ^= 1
	if err := os.WriteFile(replicas[0], bad, 0o644); err != nil {
		t.Fatal(err)
	}
	// Which replica is asked first is the NameNode's choice. Once it knows, it
	// has the replica replaced.
	deadline := time.Now().Add(2 * time.Minute)
	for {
		got, err := store.ReadFile(ctx, s, "a")
		if err != nil || !bytes.Equal(got, content) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
		if b, err := os.ReadFile(replicas[0]); err != nil || !bytes.Equal(b, bad) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the NameNode was not told of the wrong byte")
		}
		time.Sleep(50 * time.Millisecond)
	}
	// All replicas wrong: an error, never wrong bytes.
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	for node := range 3 {
		if f := replica(t, node, content); f != "" {
			if err := os.WriteFile(f, bad, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got, err := store.ReadFile(ctx, s, "a"); err == nil && !bytes.Equal(got, content) {
		t.Error("wrong bytes were read")
	} else if err != nil && !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
}

// TestLostDataNode kills and pauses DataNodes while a file is read and another
// one is written.
func TestLostDataNode(t *testing.T) {
	ctx, s, content := context.Background(), openHDFS(t), random(24<<20)
	defer s.Close()
	if err := store.WriteFile(ctx, s, "a", content, 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w, err := s.Create(ctx, "b", 0o644)
	if err != nil {
		t.Fatal(err)
	}
	const steps = 24
	part := len(content) / steps
	for i := range steps {
		switch i {
		case 5:
			must(t, shared.Get(t).Daemon("dn0").Kill())
		case 12:
			must(t, shared.Get(t).Daemon("dn0").Restart(ctx))
			must(t, shared.Get(t).Daemon("dn1").Kill())
		}
		b := make([]byte, part)
		if n, err := r.ReadAt(b, int64(i*part)); n != part || err != nil && err != io.EOF || !bytes.Equal(b, content[i*part:i*part+part]) {
			t.Fatalf("reading at step %d: %d bytes, %v", i, n, err)
		}
		if _, err := w.Write(b); err != nil {
			t.Fatalf("writing at step %d: %v", i, err)
		}
	}
	must(t, w.Close())
	must(t, shared.Get(t).Daemon("dn1").Restart(ctx))
	if got, err := store.ReadFile(ctx, s, "b"); err != nil || !bytes.Equal(got, content) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
}

// TestAbandonedFile is read although nobody has closed it, and its DataNodes were
// restarted after its writer was lost: what was flushed is there.
func TestAbandonedFile(t *testing.T) {
	ctx, lost, content := context.Background(), openHDFS(t), random(100_000)
	w, err := lost.Append(ctx, "a", 0o644)
	must(t, err)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	must(t, w.Flush())
	must(t, lost.Close()) // so it cannot write on, nor renew its lease
	for _, change := range []func(d *testcluster.Daemon) error{
		(*testcluster.Daemon).Kill,
		func(d *testcluster.Daemon) error { return d.Restart(ctx) },
	} {
		for node := range 3 {
			must(t, change(shared.Get(t).Daemon(fmt.Sprintf("dn%d", node))))
		}
	}
	s, err := store.Open(ctx, lost.URI(), clusterConf(t))
	must(t, err)
	defer s.Close()
	start := time.Now()
	if got, err := store.ReadFile(ctx, s, "a"); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	t.Logf("read after %s", time.Since(start))
}

// TestStalledNameNode: calls end with an error that names it, and go on once it
// answers again.
func TestStalledNameNode(t *testing.T) {
	ctx, s := context.Background(), openHDFS(t)
	defer s.Close()
	nn := shared.Get(t).Daemon("nn")
	must(t, nn.Pause())
	start := time.Now()
	_, err := s.Stat(ctx, ".")
	took := time.Since(start)
	must(t, nn.Resume())
	address := strings.TrimPrefix(shared.Get(t).HDFS(), "hdfs://")
	if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), address) || took > 2*time.Minute {
		t.Errorf("after %s: %v", took, err)
	}
	if _, err := s.Stat(ctx, "."); err != nil {
		t.Errorf("once it answers again: %v", err)
	}
}

// TestRestartedNameNode is waited for: also while it is in safe mode.
func TestRestartedNameNode(t *testing.T) {
	ctx, s := context.Background(), openHDFS(t)
	defer s.Close()
	must(t, store.WriteFile(ctx, s, "a", []byte("x"), 0o644))
	must(t, shared.Get(t).Daemon("nn").Kill())
	done := make(chan error, 1)
	go func() { done <- store.WriteFile(ctx, s, "b", []byte("y"), 0o644) }()
	must(t, shared.Get(t).Daemon("nn").Restart(ctx))
	must(t, <-done)
	if b, err := store.ReadFile(ctx, s, "b"); err != nil || string(b) != "y" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestQuota(t *testing.T) {
	ctx, s := context.Background(), openHDFS(t)
	defer s.Close()
	dir := strings.TrimPrefix(s.URI(), shared.Get(t).HDFS())
	// A block's room is taken in full while it is written: 8 blocks.
	const block = 128 << 20
	if _, err := shared.Get(t).Hadoop(ctx, "org.apache.hadoop.hdfs.tools.DFSAdmin", "-setSpaceQuota", fmt.Sprint(2*block+1<<20), dir); err != nil {
		t.Fatal(err)
	}
	space, err := s.Space(ctx)
	if err != nil || space.Total != block+1<<19 || space.Free != space.Total {
		t.Errorf("%+v, %v", space, err)
	}
	must(t, store.WriteFile(ctx, s, "a", random(1<<20), 0o644))
	err = store.WriteFile(ctx, s, "b", random(1<<20), 0o644)
	if !errors.Is(err, syscall.EDQUOT) || !strings.Contains(err.Error(), "quota") {
		t.Errorf("over the quota: %v", err)
	}
	if infos, err := s.List(ctx, "."); err != nil || len(infos) != 1 {
		t.Errorf("%+v, %v", infos, err)
	}
}

func TestUnreachable(t *testing.T) {
	ctx := context.Background()
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := store.Open(short, "hdfs://127.0.0.1:9/x", clusterConf(t))
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:9") {
		t.Errorf("%v", err)
	}
	if _, err := store.OpenExisting(ctx, shared.Get(t).HDFS()+"/no/such", clusterConf(t)); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("%v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestAppendToWhatCannotGoOn: a file of another program, whose last block has
// checksums that DataNodes do not let us go on with, is added to in a new block.
func TestAppendToWhatCannotGoOn(t *testing.T) {
	s := openHDFS(t)
	defer s.Close()
	local := filepath.Join(t.TempDir(), "foreign")
	if err := os.WriteFile(local, []byte("theirs, "), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := shared.Get(t).Hadoop(t.Context(), "fs", "-D", "dfs.bytes-per-checksum=1024", "-put", local, s.URI()+"/foreign"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for range 2 { // the second goes on with our own block
		a, err := s.Append(t.Context(), "foreign", 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Write([]byte("ours, ")); err != nil {
			t.Fatal(err)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	got, err := store.ReadFile(t.Context(), s, "foreign")
	if err != nil || string(got) != "theirs, ours, ours, " {
		t.Errorf("%q, %v", got, err)
	}
	places, err := store.Locate(t.Context(), s, "foreign")
	if err != nil || len(places) != 2 {
		t.Errorf("its blocks: %v, %v", places, err)
	}
}

// TestTakenOver: whose file another writer has taken over gives nothing up but what is its
// own, however it ends, and is told that it is no longer its own: the other one's bytes are
// there. So it is while the other one writes, and when it has closed the file.
func TestTakenOver(t *testing.T) {
	ctx := context.Background()
	for _, made := range []struct {
		how  string
		open func(s store.Store) (io.Writer, func() error)
	}{
		{"appended to", func(s store.Store) (io.Writer, func() error) {
			must(t, store.WriteFile(ctx, s, "log", []byte("before\n"), 0o644))
			a, err := s.Append(ctx, "log", 0o644)
			must(t, err)
			return a, a.Close
		}},
		{"created", func(s store.Store) (io.Writer, func() error) {
			w, err := s.Stage(ctx, "log", 0o644)
			must(t, err)
			return w, w.Abort
		}},
	} {
		for _, closed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, closed %v", made.how, closed), func(t *testing.T) {
				first := openHDFS(t)
				defer first.Close()
				second, err := store.Open(ctx, first.URI(), clusterConf(t))
				must(t, err)
				defer second.Close()
				old, end := made.open(first)
				_, err = old.Write([]byte("the first one's\n"))
				must(t, err)
				a, err := second.Append(ctx, "log", 0o644)
				must(t, err)
				_, err = a.Write([]byte("the second one's\n"))
				must(t, err)
				if closed {
					must(t, a.Close())
				}
				if err := end(); made.how == "appended to" && !errors.Is(err, syscall.ESTALE) {
					t.Errorf("the first one was told %v", err)
				}
				if err := a.Close(); err != nil && !closed {
					t.Errorf("the second one closes: %v", err)
				}
				if b, err := store.ReadFile(ctx, second, "log"); err != nil || !strings.HasSuffix(string(b), "the second one's\n") {
					t.Errorf("there is %q, %v", b, err)
				}
			})
		}
	}
}
