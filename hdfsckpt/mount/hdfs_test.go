package mount_test

import (
	"context"
	"flag"
	"fmt"
	"hash/crc32"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/conf"
	"holdfast/test/testcluster"

	"golang.org/x/sys/unix"
)

// maxBlocks is how many blocks the NameNode of these tests allows to a file.
const maxBlocks = 20

// hdfsCluster starts an HDFS, and returns it with what opens stores on it.
func hdfsCluster(t *testing.T) (*testcluster.Cluster, func(t *testing.T, c *conf.Conf, dir string) func() store.Store) {
	t.Helper()
	cluster := testcluster.ForTest(t, testcluster.Options{
		DataNodes: 2, HDFSOnly: true,
		// A DataNode sets a whole block's room aside for each file that is written.
		Conf: map[string]string{"dfs.blocksize": "16777216", "dfs.namenode.fs-limits.max-blocks-per-file": fmt.Sprint(maxBlocks)},
	})
	return cluster, func(t *testing.T, c *conf.Conf, dir string) func() store.Store {
		return func() store.Store {
			s, err := store.Open(t.Context(), cluster.HDFS()+"/user/"+dir, c)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		}
	}
}

// TestHDFS is the short version of this package's tests on a real HDFS.
func TestHDFS(t *testing.T) {
	cluster, onWith := hdfsCluster(t)
	c, err := conf.Load(cluster.ConfDir())
	if err != nil {
		t.Fatal(err)
	}
	on := func(t *testing.T, dir string) func() store.Store { return onWith(t, c, dir) }
	t.Run("TensorFlow's save", func(t *testing.T) { tensorFlowSave(t, on(t, "save")) })
	t.Run("event file", func(t *testing.T) { hdfsEventFile(t, on(t, "events")) })
	t.Run("any order", func(t *testing.T) { hdfsAnyOrder(t, on(t, "order")) })
	t.Run("killed writer", func(t *testing.T) { hdfsKilled(t, on(t, "killed")) })
	t.Run("names", func(t *testing.T) { hdfsNames(t, on(t, "names")) })
	t.Run("DataNode lost", func(t *testing.T) { hdfsDataNodeLost(t, cluster, on(t, "lost")) })
	t.Run("NameNode stalls", func(t *testing.T) { hdfsNameNodeStalls(t, cluster, on(t, "stalls")) })
	t.Run("POSIX", func(t *testing.T) { posix(t, hdfsBox(t, cluster, on(t, "posix")), "hdfs") })
	t.Run("random calls", func(t *testing.T) { randomly(t, *hdfsRandomRuns, hdfsBox(t, cluster, on(t, "random"))) })
	t.Run("random calls of two tasks", func(t *testing.T) {
		open := on(t, "random-two")
		randomly(t, *hdfsRandomRuns, hdfsBox(t, cluster, open), hdfsBox(t, cluster, open))
	})
	t.Run("tasks append to one file", func(t *testing.T) { tasksAppend(t, on(t, "append"), false) })
	t.Run("a new log outlives its writer", func(t *testing.T) { newLogOutlivesItsWriter(t, on(t, "log")) })
	t.Run("fsync", func(t *testing.T) { hdfsFsync(t, cluster, on(t, "fsync")) })
	t.Run("a log is opened for each line", func(t *testing.T) {
		small, err := conf.Load(cluster.ConfDir())
		if err != nil {
			t.Fatal(err)
		}
		small.Set("dfs.blocksize", "1048576")
		hdfsAppends(t, maxBlocks, on(t, "lines"), onWith(t, small, "full"))
	})
	t.Run("a zombie changes nothing", func(t *testing.T) {
		zombieChangesNothing(t, func(t *testing.T) (string, string, func() store.Store) {
			open := on(t, "zombie-"+strings.ReplaceAll(path.Base(t.Name()), "'", ""))
			return open().URI(), cluster.ConfDir(), open
		})
	})
	t.Run("files are of their directory", func(t *testing.T) { hdfsFilesAreOfTheirDirectory(t, cluster, on(t, "births")) })
	counted := func(nameNode string) store.Store {
		s, err := store.Open(t.Context(), nameNode+"/user/calls", c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	t.Run("calls of a save", func(t *testing.T) { hdfsCalls(t, counted, cluster.HDFS()) })
	t.Run("calls of TensorFlow's Saver", func(t *testing.T) { hdfsSaverCalls(t, counted, cluster.HDFS()) })
	t.Run("quota", func(t *testing.T) { hdfsQuota(t, cluster, on(t, "quota")) })
	t.Run("ACL", func(t *testing.T) { hdfsACL(t, cluster, on(t, "acl")) })
	t.Run("memory", func(t *testing.T) { hdfsMemory(t, cluster, on(t, "memory")) })
	t.Run("Python's libraries", func(t *testing.T) { hdfsPython(t, on(t, "python")) })
	t.Run("DataNodes stall", func(t *testing.T) {
		hurried, err := conf.Load(cluster.ConfDir())
		if err != nil {
			t.Fatal(err)
		}
		hurried.Set("dfs.client.socket-timeout", "3000")
		hdfsDataNodesStall(t, cluster, onWith(t, hurried, "data-stalls"))
	})
}

var hdfsRandomRuns = flag.Int("random.hdfs", 3, "how many sequences of the TestRandomCalls are made on HDFS as well")

// hdfsBox is a box over a new directory of HDFS.
func hdfsBox(t *testing.T, c *testcluster.Cluster, open func() store.Store) *box {
	t.Helper()
	s := open()
	// The box's user is nobody to HDFS.
	if err := s.Chmod(t.Context(), ".", 0o777); err != nil {
		t.Fatal(err)
	}
	letOthersIn(c.ConfDir())
	return newBox(t, s.URI(), c.ConfDir())
}

// hdfsFsync: what fsync has said yes to is on the disk of each DataNode, of a visible file at once and
// of one that is hidden when it is closed. Nothing else asks for the disks.
func hdfsFsync(t *testing.T, c *testcluster.Cluster, open func() store.Store) {
	const replicas = 2
	m, p := mountStore(t, open()), newProcess(t)
	before := c.Fsyncs(t)
	other := newProcess(t)
	events := p.open(m.path("events.tfevents.1"), forNew)
	p.write(events, "event")
	eventually(t, "the event is flushed", func() bool { return other.get(m.path("events.tfevents.1")) == "event" })
	p.close(events)
	p.put(m.path("plain"), "content")

	log := p.open(m.path("log"), forLog)
	p.write(log, "line")
	began := time.Now()
	p.do(call{Op: "fsync", Fd: log})
	t.Logf("fsync took %s", time.Since(began))
	p.do(call{Op: "fsync", Fd: log}) // has nothing to do
	p.close(log)
	for _, name := range []string{"streamed", "spooled"} {
		fd := p.open(m.path(name), forNewRW)
		if name == "spooled" {
			p.pwrite(fd, 10, "x")
		}
		p.pwrite(fd, 0, "content")
		p.do(call{Op: "fsync", Fd: fd})
		p.close(fd)
	}
	// A block's end asks twice: for its bytes, before the last packet, and with that for its name.
	const end = 2
	const want = replicas * (1 /* the log's fsync */ + end + 2*end /* the hidden ones */)
	limit := time.Now().Add(30 * time.Second)
	for c.Fsyncs(t)-before < want && time.Now().Before(limit) {
		time.Sleep(200 * time.Millisecond)
	}
	if got := c.Fsyncs(t) - before; got != want {
		t.Errorf("the DataNodes called fsync %d times, want %d", got, want)
	}
}

// hdfsQuota: what a directory may still hold is what df(1) shows, and what is
// too much fails its writer and leaves the former content.
// hdfsACL: who may do what is HDFS's to say, whose users are others than this machine's
// and may have been let in by an ACL entry only.
func hdfsACL(t *testing.T, c *testcluster.Cluster, open func() store.Store) {
	s := open()
	u, err := url.Parse(s.URI())
	if err != nil {
		t.Fatal(err)
	}
	m, p := mountStore(t, s), newProcess(t)
	for _, name := range []string{"shared", "private"} {
		p.put(m.path(name), "content")
	}
	for _, args := range [][]string{
		{"-chmod", "400", u.Path + "/shared"}, {"-chmod", "600", u.Path + "/private"}, {"-setfacl", "-m", "user:bob:rw-", u.Path + "/shared"},
	} {
		if out, err := c.Hadoop(t.Context(), append([]string{"fs"}, args...)...); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	t.Setenv("HADOOP_USER_NAME", "bob")
	m, p = mountStore(t, open()), newProcess(t)
	p.do(call{Op: "access", Path: m.path("shared"), Mode: unix.R_OK | unix.W_OK})
	p.fails(call{Op: "access", Path: m.path("shared"), Mode: unix.X_OK}, syscall.EACCES)
	p.fails(call{Op: "access", Path: m.path("private"), Mode: unix.R_OK}, syscall.EACCES)
	p.do(call{Op: "access", Path: m.path("private"), Mode: unix.F_OK})
	if got := p.get(m.path("shared")); got != "content" {
		t.Errorf("bob reads %q", got)
	}
	p.fails(call{Op: "open", Path: m.path("private"), Flags: unix.O_RDONLY}, syscall.EACCES)
	fd := p.open(m.path("shared"), unix.O_WRONLY|unix.O_APPEND)
	p.write(fd, ", and bob's")
	p.do(call{Op: "close", Fd: fd})
	if b, err := store.ReadFile(t.Context(), s, "shared"); err != nil || string(b) != "content, and bob's" {
		t.Errorf("after bob has added to it, it has %q, %v", b, err)
	}
}

func hdfsQuota(t *testing.T, c *testcluster.Cluster, open func() store.Store) {
	s := open()
	u, err := url.Parse(s.URI())
	if err != nil {
		t.Fatal(err)
	}
	const mb, replication = 1 << 20, 2
	// HDFS counts a whole block for what is being written.
	for _, args := range [][]string{{"-setSpaceQuota", fmt.Sprint(300 * mb * replication)}, {"-setQuota", "20"}} {
		if out, err := c.Hadoop(t.Context(), slices.Concat([]string{"org.apache.hadoop.hdfs.tools.DFSAdmin"}, args, []string{u.Path})...); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	m, p := mountStore(t, s), newProcess(t)
	p.put(m.path("a"), "former content")
	st := p.do(call{Op: "statfs", Path: m.dir}).Fs
	if total := int64(st.Blocks) * st.Bsize; total != 300*mb {
		t.Errorf("statfs: %d MB, and the quota is 300", total/mb)
	}
	if st.Files != 20 || st.Ffree >= 20 || st.Ffree < 15 {
		t.Errorf("statfs: %d files, %d free, and the quota is 20", st.Files, st.Ffree)
	}
	fd := p.open(m.path("a"), forNew)
	_, err = p.try(call{Op: "write", Fd: fd, Size: 500 * mb})
	_, closeErr := p.try(call{Op: "close", Fd: fd})
	if err != syscall.EDQUOT && closeErr != syscall.EDQUOT {
		t.Errorf("writing beyond the quota: %v, closing: %v, want EDQUOT", err, closeErr)
	}
	if got := p.get(m.path("a")); got != "former content" {
		t.Errorf("after that %d bytes are there", len(got))
	}
	if !strings.Contains(m.logged(), "uota") {
		t.Errorf("the log does not say why:\n%s", m.logged())
	}
	err = nil
	for i := 0; i < 30 && err == nil; i++ {
		_, err = p.try(call{Op: "mkdir", Path: m.path(fmt.Sprint(i)), Mode: 0o755})
	}
	if err != syscall.EDQUOT {
		t.Errorf("more directories than the quota allows: %v, want EDQUOT", err)
	}
}

// TestLongStalledNameNode: calls end as EIO within limits, the log says why, and all
// goes on when the NameNode does. What has been written waits longer, and is there then.
func TestLongStalledNameNode(t *testing.T) {
	c, on := hdfsCluster(t)
	cf, err := conf.Load(c.ConfDir())
	if err != nil {
		t.Fatal(err)
	}
	m, p := mountStore(t, on(t, cf, "stalls-long")()), newProcess(t)
	p.put(m.path("a"), "content")
	fd := p.open(m.path("b"), forNew)
	p.write(fd, "content")
	nn := c.Daemon("nn")
	if err := nn.Pause(); err != nil {
		t.Fatal(err)
	}
	defer nn.Resume()
	begin := time.Now()
	var wg sync.WaitGroup
	closing := call{Op: "close", Fd: fd}
	p.send(closing)
	for p, c := range map[*process]call{
		newProcess(t): {Op: "open", Path: m.path("c"), Flags: forNew, Mode: 0o644},
		newProcess(t): {Op: "statfs", Path: m.dir},
	} {
		p.send(c)
		wg.Go(func() {
			if a := p.receiveWithin(c, 4*time.Minute); a.Errno != syscall.EIO {
				t.Errorf("%s: %v", c.Op, a.Errno)
			}
			t.Logf("%s fails after %.0f s", c.Op, time.Since(begin).Seconds())
		})
	}
	wg.Wait()
	if !strings.Contains(m.logged(), "without an answer") {
		t.Errorf("the log does not say why:\n%s", m.logged())
	}
	t.Log(m.logged())
	if err := nn.Resume(); err != nil {
		t.Fatal(err)
	}
	if a := p.receiveWithin(closing, 4*time.Minute); a.Errno != 0 {
		t.Errorf("close, when the NameNode is back: %v", a.Errno)
	}
	if got := p.get(m.path("b")); got != "content" {
		t.Errorf("what was closed meanwhile has %q", got)
	}
	eventually(t, "all goes on", func() bool { _, err := p.try(call{Op: "stat", Path: m.path("a")}); return err == nil })
	p.put(m.path("b"), "again")
	if got := p.get(m.path("b")); got != "again" {
		t.Errorf("got %q", got)
	}
}

func hdfsEventFile(t *testing.T, open func() store.Store) {
	m1, m2, p1, p2 := mountStore(t, open()), mountStore(t, open()), newProcess(t), newProcess(t)
	const name = "events.out.tfevents.1"
	fd := p1.open(m1.path(name), forNew)
	want := ""
	for i := range 5 {
		event := fmt.Sprintf("event %d;", i)
		want += event
		p1.write(fd, event)
		eventually(t, "another mount reads "+event, func() bool {
			return p2.exists(m2.path(name)) && p2.get(m2.path(name)) == want
		})
		if got := p1.get(m1.path(name)); got != want {
			t.Errorf("its own mount reads %q", got)
		}
	}
	p1.kill()
	p3 := newProcess(t)
	fd = p3.open(m2.path(name), unix.O_WRONLY|unix.O_APPEND)
	p3.write(fd, "appended")
	p3.close(fd)
	if got := p2.get(m1.path(name)); got != want+"appended" {
		t.Errorf("after appending: %q", got)
	}
}

func hdfsAnyOrder(t *testing.T, open func() store.Store) {
	m1, m2, p1, p2 := mountStore(t, open()), mountStore(t, open()), newProcess(t), newProcess(t)
	fd := p1.open(m1.path("a.npz"), forNewRW)
	p1.do(call{Op: "write", Fd: fd, Size: 3 << 20, Fill: 5})
	p1.pwrite(fd, 10, "back")
	p1.do(call{Op: "pwrite", Fd: fd, Off: 3 << 20, Data: []byte("tail")})
	if p2.exists(m2.path("a.npz")) {
		t.Error("seen before close")
	}
	p1.close(fd)
	want := append(pattern(3<<20, 5), "tail"...)
	copy(want[10:], "back")
	m1.summed(t, "a.npz", want)
	fd = p1.open(m1.path("streamed"), forNew)
	p1.do(call{Op: "write", Fd: fd, Size: 3<<20 + 77, Fill: 6})
	p1.write(fd, "tail")
	p1.close(fd)
	m1.summed(t, "streamed", append(pattern(3<<20+77, 6), "tail"...))
	if got := p2.get(m2.path("a.npz")); got != string(want) {
		t.Errorf("%d bytes that differ, want %d", len(got), len(want))
	}
	fd = p2.open(m2.path("a.npz"), unix.O_RDONLY)
	if got := p2.do(call{Op: "mmap", Fd: fd, Size: int64(len(want))}).Data; string(got) != string(want) {
		t.Error("mapped content differs")
	}
	p1.do(call{Op: "truncate", Path: m1.path("a.npz"), Off: 100})
	if got := p2.get(m2.path("a.npz")); got != string(want[:100]) {
		t.Errorf("after truncate(2): %d bytes", len(got))
	}
}

// summed checks that a commit carried its content's checksum, by which the
// checkpoint is sealed, and which file it is of, whatever has the name by then.
func (m *mounted) summed(t *testing.T, name string, content []byte) {
	t.Helper()
	info, err := m.s.Stat(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.commits {
		if c.Name == name && (info.Inode == 0 || c.ID.Inode != info.Inode) {
			t.Errorf("%s was committed as the file %d, and is %d", name, c.ID.Inode, info.Inode)
		}
		if want := crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli)); c.Name == name && (!c.Summed || c.CRC32C != want) {
			t.Errorf("%s was committed with the checksum %08x (%v), want %08x", name, c.CRC32C, c.Summed, want)
		}
	}
}

func hdfsKilled(t *testing.T, open func() store.Store) {
	m1, m2, p1, p2 := mountStore(t, open()), mountStore(t, open()), newProcess(t), newProcess(t)
	p2.put(m2.path("a"), "whole")
	for _, name := range []string{"a", "b"} {
		fd := p1.open(m1.path(name), forNew)
		p1.do(call{Op: "write", Fd: fd, Size: 5 << 20})
	}
	p1.kill()
	eventually(t, "nothing is being written", func() bool { _, h, w := m1.Remembered(); return h+w == 0 })
	if got := p2.get(m2.path("a")); got != "whole" || p2.exists(m2.path("b")) {
		t.Errorf("half a file was published: %d bytes", len(got))
	}
}

func hdfsNames(t *testing.T, open func() store.Store) {
	m1, m2, p1, p2 := mountStore(t, open()), mountStore(t, open()), newProcess(t), newProcess(t)
	p1.do(call{Op: "mkdir", Path: m1.path("d"), Mode: 0o755})
	for _, name := range []string{"a", "naïve-模型", "b"} {
		p1.put(m1.path("d/"+name), name)
	}
	p1.do(call{Op: "rename", Path: m1.path("d/b"), To: m1.path("d/a")})
	r := p2.open(m2.path("d/a"), unix.O_RDONLY)
	if got := p2.pread(r, 0, 10); got != "b" {
		t.Errorf("after the rename: %q", got)
	}
	p2.do(call{Op: "unlink", Path: m2.path("d/a")})
	if p1.exists(m1.path("d/a")) {
		t.Error("removed, and still there")
	}
	p1.fails(call{Op: "rmdir", Path: m1.path("d")}, unix.ENOTEMPTY)
	if got := p1.list(m1.path("d")); !slices.Equal(got, []string{"naïve-模型"}) {
		t.Errorf("listed: %q", got)
	}
	p2.do(call{Op: "unlink", Path: m2.path("d/naïve-模型")})
	p1.do(call{Op: "rmdir", Path: m1.path("d")}) // though a removed file is open
	if got := p2.pread(r, 0, 10); got != "b" {
		t.Errorf("a file that was removed while open reads %q", got)
	}
	if s := p1.do(call{Op: "statfs", Path: m1.dir}).Fs; s.Blocks == 0 || s.Bavail == 0 {
		t.Errorf("statfs: %+v", s)
	}
}

// hdfsDataNodeLost ends a DataNode in the middle of a file: it costs time, and
// is no error.
func hdfsDataNodeLost(t *testing.T, c *testcluster.Cluster, open func() store.Store) {
	m1, m2, p1, p2 := mountStore(t, open()), mountStore(t, open()), newProcess(t), newProcess(t)
	fd := p1.open(m1.path("a"), forNew)
	p1.do(call{Op: "write", Fd: fd, Size: 8 << 20, Fill: 1})
	dn := c.Daemon("dn0")
	if err := dn.Kill(); err != nil {
		t.Fatal(err)
	}
	p1.do(call{Op: "write", Fd: fd, Size: 8 << 20, Fill: 1})
	p1.close(fd)
	r := p2.open(m2.path("a"), unix.O_RDONLY)
	for off := int64(0); off < 16<<20; off += 4 << 20 {
		if got := p2.pread(r, off, 4<<20); got != string(pattern(4<<20, 1)) {
			t.Errorf("at %d: %d bytes that differ", off, len(got))
		}
	}
	if err := dn.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// hdfsNameNodeStalls: calls wait for it, and who is killed does not, nor does an
// unmount.
func hdfsNameNodeStalls(t *testing.T, c *testcluster.Cluster, open func() store.Store) {
	m, other := mountStore(t, open()), mountStore(t, open())
	p, impatient, cut := newProcess(t), newProcess(t), newProcess(t)
	fd := p.open(m.path("a"), forNew)
	p.write(fd, "content")
	half := cut.open(other.path("d"), forNew)
	cut.write(half, "half")
	nn := c.Daemon("nn")
	if err := nn.Pause(); err != nil {
		t.Fatal(err)
	}
	closing := call{Op: "close", Fd: fd}
	p.send(closing)
	impatient.send(call{Op: "stat", Path: m.path("b")})
	eventually(t, "stat waits", func() bool { return inFuse(impatient) })
	ends(t, "stat, killed", impatient.kill)
	cutOff := call{Op: "close", Fd: half}
	cut.send(cutOff)
	eventually(t, "close waits", func() bool { return inFuse(cut) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	ends(t, "unmounting", func() { other.Close(ctx) })
	if a := cut.receive(cutOff); a.Errno == 0 {
		t.Error("a close succeeds though the mount is gone")
	}
	if err := nn.Resume(); err != nil {
		t.Fatal(err)
	}
	if a := p.receive(closing); a.Errno != 0 {
		t.Errorf("close: %v", a.Errno)
	}
	if p.exists(m.path("d")) {
		t.Error("what was being written at an unmount is there")
	}
	if got := p.get(m.path("a")); got != "content" {
		t.Errorf("got %q", got)
	}
}

// hdfsDataNodesStall: when no DataNode answers any more, a write fails within its
// limit and the log says why; who is killed does not wait for that, nor does an
// unmount.
func hdfsDataNodesStall(t *testing.T, c *testcluster.Cluster, open func() store.Store) {
	m, other := mountStore(t, open()), mountStore(t, open())
	patient, impatient, cut := newProcess(t), newProcess(t), newProcess(t)
	patient.put(m.path("a"), "former content")
	writing := func(p *process, m *mounted, name string) call {
		fd := p.open(m.path(name), forNew)
		p.do(call{Op: "write", Fd: fd, Size: 1 << 20})
		return call{Op: "write", Fd: fd, Size: 16 << 20}
	}
	a, b, d := writing(patient, m, "a"), writing(impatient, m, "b"), writing(cut, other, "d")
	resume := sync.OnceFunc(func() {
		for i := range 2 {
			if err := c.Daemon(fmt.Sprintf("dn%d", i)).Resume(); err != nil {
				t.Error(err)
			}
		}
	})
	for i := range 2 {
		if err := c.Daemon(fmt.Sprintf("dn%d", i)).Pause(); err != nil {
			t.Fatal(err)
		}
	}
	defer resume()
	begin := time.Now()
	for p, c := range map[*process]call{patient: a, impatient: b, cut: d} {
		p.send(c)
	}
	for p := range map[*process]bool{impatient: true, cut: true} {
		eventually(t, "a write waits", func() bool { return inFuse(p) })
	}
	ends(t, "a writer, killed", impatient.kill)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	ends(t, "unmounting", func() { other.Close(ctx) })
	if got := cut.receive(d); got.Errno == 0 {
		t.Error("a write succeeds though the mount is gone")
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("a kill and an unmount took %v", took)
	}
	if got := patient.receiveWithin(a, time.Minute); got.Errno != syscall.EIO {
		t.Errorf("the write: %v, want EIO", got.Errno)
	}
	t.Logf("the write failed after %.0f s", time.Since(begin).Seconds())
	patient.fails(call{Op: "close", Fd: a.Fd}, syscall.EIO)
	if !strings.Contains(m.logged(), "no DataNode has taken anything for 15s") {
		t.Errorf("the log does not say why:\n%s", m.logged())
	}
	resume()
	if got := patient.get(m.path("a")); got != "former content" {
		t.Errorf("after a write that failed: %d bytes", len(got))
	}
	patient.put(m.path("a"), "again")
	if got := patient.get(m.path("a")); got != "again" {
		t.Errorf("after the DataNodes are back: %q", got)
	}
}

// hdfsPython is TestPythonLibraries on HDFS.
func hdfsPython(t *testing.T, open func() store.Store) {
	writer, reader := mountStore(t, open()), mountStore(t, open())
	python(t, pythonWrites, writer.dir)
	python(t, pythonReads, reader.dir)
}
