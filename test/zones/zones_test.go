// Package zones tests encryption zones: real key servers, Hadoop's own client on
// the other side.
package zones

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/doctor"
	"holdfast/doctor/check"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/hdfs"
	"holdfast/test/testcluster"
)

func start(t *testing.T, o testcluster.Options) (*testcluster.Cluster, *conf.Conf) {
	t.Helper()
	c := testcluster.ForTest(t, o)
	cf, err := conf.Load(c.ConfDir())
	if err != nil {
		t.Fatal(err)
	}
	return c, cf
}

func dial(t *testing.T, c *testcluster.Cluster, cf *conf.Conf) *hdfs.Client {
	t.Helper()
	fs, err := hdfs.New(c.HDFS(), cf, hdfs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fs.Close() })
	return fs
}

// noise is content of which no two pieces are alike.
func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func zone(t *testing.T, c *testcluster.Cluster, path, key, owner string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := c.MakeZone(ctx, path, key, owner); err != nil {
		t.Fatal(err)
	}
}

// put has Java write files.
func put(t *testing.T, c *testcluster.Cluster, dir string, files map[string][]byte) {
	t.Helper()
	args := []string{"fs", "-D", "dfs.blocksize=1048576", "-put"}
	for name, content := range files {
		local := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(local, content, 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, local)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if _, err := c.Hadoop(ctx, append(args, dir)...); err != nil {
		t.Fatal(err)
	}
}

// wantJava has Java read files.
func wantJava(t *testing.T, c *testcluster.Cluster, files map[string][]byte) {
	t.Helper()
	dir := t.TempDir()
	args := []string{"fs", "-get"}
	for name := range files {
		args = append(args, name)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if _, err := c.Hadoop(ctx, append(args, dir)...); err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(dir, filepath.Base(name)))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("Java reads %s as %d bytes (%d were written) that are others, %v", name, len(got), len(want), err)
		}
	}
}

// read reads a file whole.
func read(ctx context.Context, c *hdfs.Client, name string) ([]byte, error) {
	r, err := c.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
}

func wantRead(t *testing.T, c *hdfs.Client, name string, want []byte) {
	t.Helper()
	got, err := read(t.Context(), c, name)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is read as %d bytes (%d were written) that are others, %v", name, len(got), len(want), err)
	}
}

// wantParts reads a file at many offsets at the same time.
func wantParts(t *testing.T, c *hdfs.Client, name string, want []byte) {
	t.Helper()
	r, err := c.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(2, uint64(g)))
			for range 20 {
				from := random.IntN(len(want))
				b := make([]byte, min(1+random.IntN(300_000), len(want)-from))
				if n, err := r.ReadAt(b, int64(from)); n != len(b) || !bytes.Equal(b, want[from:from+n]) {
					t.Errorf("%s: %d bytes at %d are others, %v", name, len(b), from, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// write writes a file in pieces of odd sizes, flushing some.
func write(t *testing.T, c *hdfs.Client, name string, content []byte) {
	t.Helper()
	f, err := c.Create(t.Context(), name, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	pour(t, f, content)
}

type file interface {
	io.WriteCloser
	Flush(context.Context) error
}

func pour(t *testing.T, f file, content []byte) {
	t.Helper()
	for i := 0; len(content) > 0; i++ {
		n := min(len(content), 100_003)
		if _, err := f.Write(content[:n]); err != nil {
			t.Fatal(err)
		}
		if content = content[n:]; i%3 == 0 {
			if err := f.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func add(t *testing.T, c *hdfs.Client, name string, content []byte) {
	t.Helper()
	f, err := c.Append(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	pour(t, f, content)
}

// TestZones: what Java writes is read and the other way round, on a cluster without
// security whose keys are on two servers.
func TestZones(t *testing.T) {
	c, cf := start(t, testcluster.Options{
		HDFSOnly: true, DataNodes: 2,
		KMS:  &testcluster.KMS{Servers: 2, Keys: []string{"key1"}},
		Conf: map[string]string{"dfs.blocksize": "1048576", "hadoop.kms.blacklist.DECRYPT_EEK": "mallory"},
	})
	zone(t, c, "/zone", "key1", "")
	fs := dial(t, c, cf)

	theirs, ours := noise(3<<20+4711), noise(2<<20+815)
	put(t, c, "/zone", map[string][]byte{"theirs": theirs, "empty": nil})
	t.Run("reading", func(t *testing.T) {
		wantRead(t, fs, "/zone/theirs", theirs)
		wantParts(t, fs, "/zone/theirs", theirs)
		wantRead(t, fs, "/zone/empty", nil)
	})
	t.Run("writing", func(t *testing.T) {
		write(t, fs, "/zone/ours", ours)
		wantRead(t, fs, "/zone/ours", ours)
		more := noise(1<<20 + 333)
		add(t, fs, "/zone/theirs", more)
		write(t, fs, "/zone/appended", nil)
		all := []byte{}
		for _, n := range []int{1, 15, 1000, 1 << 20} {
			add(t, fs, "/zone/appended", noise(n))
			all = append(all, noise(n)...)
		}
		wantRead(t, fs, "/zone/appended", all)
		wantJava(t, c, map[string][]byte{"/zone/ours": ours, "/zone/theirs": append(bytes.Clone(theirs), more...), "/zone/appended": all})
	})
	t.Run("across the edge", func(t *testing.T) {
		write(t, fs, "/outside", ours)
		if err := fs.Rename(t.Context(), "/outside", "/zone/inside"); !errors.Is(err, syscall.EXDEV) {
			t.Errorf("a file is moved into a zone: %v", err)
		}
		if err := fs.Rename(t.Context(), "/zone/ours", "/out"); !errors.Is(err, syscall.EXDEV) {
			t.Errorf("a file is moved out of a zone: %v", err)
		}
	})
	t.Run("a zone in a store", func(t *testing.T) {
		ckptStore, err := store.Open(t.Context(), c.HDFS()+"/store", cf)
		if err != nil {
			t.Fatal(err)
		}
		defer ckptStore.Close()
		zone(t, c, "/store/zone", "key1", "")
		writing := writers.Dir("me")
		for _, name := range []string{"zone/a", "zone/not/made/yet"} {
			if err := store.Movable(t.Context(), ckptStore, writing, name); !errors.Is(err, syscall.EXDEV) || !strings.Contains(err.Error(), "/store/zone") || !strings.Contains(err.Error(), "key1") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := store.Movable(t.Context(), ckptStore, writing, "a"); err != nil {
			t.Error(err)
		}
		whole, err := store.Open(t.Context(), c.HDFS()+"/zone/store", cf)
		if err != nil {
			t.Fatal(err)
		}
		defer whole.Close()
		if err := store.Movable(t.Context(), whole, writing, "sub/a"); err != nil {
			t.Error(err)
		}
	})
	t.Run("a key that is refused", func(t *testing.T) {
		t.Setenv("HADOOP_USER_NAME", "mallory") // to the key servers: the NameNode's connection is there
		f, err := fs.Create(t.Context(), "/zone/refused", 0o644)
		if err == nil {
			f.Abort()
		}
		if !errors.Is(err, syscall.EACCES) {
			t.Errorf("a file is made without its key: %v", err)
		}
		wantWords(t, err, "/zone/refused", "key1", c.KeyProvider(), "DECRYPT_EEK")
		if _, err := fs.Stat(t.Context(), "/zone/refused"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a file is left that nobody can write: %v", err)
		}
		if got, err := read(t.Context(), fs, "/zone/ours"); !errors.Is(err, syscall.EACCES) {
			t.Errorf("%d bytes are read without their key: %v", len(got), err)
		}
	})
	t.Run("doctor", func(t *testing.T) { wantFinding(t, cf, check.Good, c.KeyProvider()) })
	t.Run("a server that is away", func(t *testing.T) {
		for _, away := range []string{"kms0", "kms1"} {
			if err := c.Daemon(away).Kill(); err != nil {
				t.Fatal(err)
			}
			wantRead(t, fs, "/zone/ours", ours)
			wantRead(t, dial(t, c, cf), "/zone/ours", ours)
			if away == "kms0" {
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
				if err := c.Daemon(away).Restart(ctx); err != nil {
					t.Fatal(err)
				}
				cancel()
			}
		}
	})
	t.Run("no server", func(t *testing.T) {
		if err := c.Daemon("kms0").Kill(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		got, err := read(ctx, fs, "/zone/ours")
		if err == nil {
			t.Errorf("%d bytes are read without their key", len(got))
		}
		wantWords(t, err, "/zone/ours", "key1", c.KeyProvider(), "http://localhost:", "http://127.0.0.3:", "connection refused", "see that the KMS runs")
		ctx, cancel = context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		f, err := fs.Create(ctx, "/zone/unmade", 0o644)
		if err == nil {
			f.Abort()
			t.Error("a file is made without its key")
		}
		t.Log(err)
		wantFinding(t, cf, check.Note, c.KeyProvider(), "see that the KMS runs", "name checkpoint directories outside")
	})
}

// wantFinding is what doctor tells of the key servers.
func wantFinding(t *testing.T, c *conf.Conf, level check.Level, words ...string) {
	t.Helper()
	list := doctor.DiagnoseKeys(t.Context(), c, c.DefaultFS())
	if len(list) != 1 || list[0].Level != level {
		t.Fatalf("doctor tells %+v", list)
	}
	wantWords(t, errors.New(list[0].Text), words...)
}

func wantWords(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(fmt.Sprint(err), w) {
			t.Errorf("the error does not tell %q: %v", w, err)
		}
	}
}
