package erasuretest

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
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

var cluster *testcluster.Cluster

func TestMain(m *testing.M) {
	os.Exit(testcluster.Run(m, testcluster.Options{
		HDFSOnly: true, DataNodes: 5,
		// Each block of a group has an access token of its own.
		Conf: map[string]string{"dfs.block.access.token.enable": "true"},
	}, func(c *testcluster.Cluster) { cluster = c }))
}

func hadoop(t testing.TB, args ...string) string {
	t.Helper()
	out, err := cluster.Hadoop(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func client(t testing.TB) *hdfs.Client {
	t.Helper()
	c, err := conf.Load(cluster.ConfDir())
	if err != nil {
		t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(t.Output())
	h, err := hdfs.New(cluster.HDFS(), c, hdfs.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func content(seed byte, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

// coded makes a directory with a policy, and has Hadoop's own client write files of
// these sizes into it, in groups of 4 MiB a unit.
func coded(t testing.TB, policy string, sizes []int) (dir string, files map[string][]byte) {
	t.Helper()
	dir = fmt.Sprintf("/%s-%s", t.Name(), policy)
	local := t.TempDir()
	hadoop(t, "fs", "-mkdir", dir)
	hadoop(t, "org.apache.hadoop.hdfs.tools.ECAdmin", "-enablePolicy", "-policy", policy)
	hadoop(t, "org.apache.hadoop.hdfs.tools.ECAdmin", "-setPolicy", "-path", dir, "-policy", policy)
	files = map[string][]byte{}
	args := []string{"fs", "-Ddfs.blocksize=4194304", "-put"}
	for i, n := range sizes {
		name := fmt.Sprint("of-", n)
		files[dir+"/"+name] = content(byte(i), n)
		if err := os.WriteFile(filepath.Join(local, name), files[dir+"/"+name], 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, filepath.Join(local, name))
	}
	hadoop(t, append(args, dir)...)
	return dir, files
}

// readAll reads every file, from its beginning to its end and at some places.
func readAll(t testing.TB, h *hdfs.Client, files map[string][]byte) {
	t.Helper()
	for name, want := range files {
		r, err := h.Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes of %d, the same %v, %v", name, len(got), len(want), bytes.Equal(got, want), err)
		}
		places := rand.New(rand.NewPCG(1, 2))
		for range 10 {
			at := places.Int64N(int64(len(want)))
			b := make([]byte, min(int64(places.IntN(700_000)+1), int64(len(want))-at))
			if n, err := r.ReadAt(b, at); n != len(b) || !bytes.Equal(b, want[at:at+int64(n)]) {
				t.Errorf("%s at %d: %d bytes of %d, %v", name, at, n, len(b), err)
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestReadErasureCoded reads what Hadoop has written: healthy, with a byte turned on
// a disk, and with as many DataNodes killed as the parity makes up for.
func TestReadErasureCoded(t *testing.T) {
	const mib = 1 << 20
	sizes := []int{1, 1000, mib, mib + 1, 2*mib - 1, 3*mib + 5, 7 * mib, 12 * mib, 29*mib + 12345}
	xor, xorFiles := coded(t, "XOR-2-1-1024k", sizes)
	_, rsFiles := coded(t, "RS-3-2-1024k", sizes)
	h := client(t)
	t.Run("healthy", func(t *testing.T) {
		readAll(t, h, xorFiles)
		readAll(t, h, rsFiles)
	})
	t.Run("a byte turned", func(t *testing.T) {
		turned := xor + "/of-7340032"
		turnByte(t, turned)
		readAll(t, client(t), map[string][]byte{turned: xorFiles[turned]})
		delete(xorFiles, turned) // two units of it are lost once a DataNode is, unless HDFS has repaired it by then
	})
	for i, files := range []map[string][]byte{xorFiles, rsFiles} {
		victim := cluster.Daemon(fmt.Sprint("dn", i))
		if err := victim.Kill(); err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprint(i+1, " killed"), func(t *testing.T) { readAll(t, client(t), files) })
	}
	for i := range 2 {
		if err := cluster.Daemon(fmt.Sprint("dn", i)).Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// turnByte changes a byte of the first data unit of a file, on its DataNode's disk.
func turnByte(t testing.TB, name string) {
	t.Helper()
	out := hadoop(t, "fsck", name, "-files", "-blocks", "-locations")
	_, rest, ok := strings.Cut(out, "Live_repl=")
	if !ok {
		t.Fatal(out)
	}
	_, rest, _ = strings.Cut(rest, "[")
	unit, _, _ := strings.Cut(rest, ":")
	found := false
	err := filepath.WalkDir(cluster.Dir(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != unit {
			return nil
		}
		found = true
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		b := make([]byte, 1)
		if _, err := f.ReadAt(b, 70_000); err != nil {
			return err
		}
		b[0] ^= 4
		_, err = f.WriteAt(b, 70_000)
		return err
	})
	if err != nil || !found {
		t.Fatalf("the unit %s of %s: found %v, %v; %s", unit, name, found, err, out)
	}
}

// TestWriteReplicated: in an erasure-coded directory files are written replicated,
// and can be added to; those that others have coded there are refused.
func TestWriteReplicated(t *testing.T) {
	dir, files := coded(t, "RS-3-2-1024k", []int{2_000_000})
	h := client(t)
	want := content(9, 5<<20+77)
	began := time.Now()
	f, err := h.Create(t.Context(), dir+"/own", 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(want[:5<<20]); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if f, err = h.Append(t.Context(), dir+"/own"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(want[5<<20:]); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
	if got := hadoop(t, "fs", "-cat", dir+"/own"); got != string(want) {
		t.Errorf("Hadoop reads %d bytes of %d", len(got), len(want))
	}
	if out := hadoop(t, "fsck", dir+"/own", "-files"); !strings.Contains(out, "replicated: replication=2") {
		t.Errorf("it is not replicated: %s", out)
	}
	for name, want := range files {
		f, err := h.Append(t.Context(), name)
		if hdfs.Errno(err) != syscall.ENOTSUP || !strings.Contains(err.Error(), "erasure-coded") {
			t.Fatalf("adding to %s: %v, %v", name, f, err)
		}
		readAll(t, h, map[string][]byte{name: want})
		hadoop(t, "fs", "-rm", name)
		if out := hadoop(t, "fsck", dir, "-openforwrite", "-files"); strings.Contains(out, "OPENFORWRITE") {
			t.Errorf("its lease stays: %s", out)
		}
	}
}

// TestStore: a checkpoint directory may be one of which files are erasure-coded.
func TestStore(t *testing.T) {
	dir, _ := coded(t, "RS-3-2-1024k", []int{1})
	c, err := conf.Load(cluster.ConfDir())
	if err != nil {
		t.Fatal(err)
	}
	var roots atomic.Int64
	storetest.Run(t, func(t *testing.T) store.Store {
		s, err := store.Open(t.Context(), fmt.Sprintf("%s%s/stores/%d", cluster.HDFS(), dir, roots.Add(1)), c)
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
	if out := hadoop(t, "fsck", dir+"/stores", "-files", "-openforwrite"); strings.Contains(out, "erasure-coded:") || !strings.Contains(out, "replicated: replication=") {
		t.Errorf("what was saved there is not replicated: %s", out)
	}
}
