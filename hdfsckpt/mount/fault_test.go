package mount_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/hdfs/write"
	"holdfast/internal/hadoop/rpc"

	"golang.org/x/sys/unix"
)

// faulty is a store in which things go wrong when a test says so.
type faulty struct {
	store.Store
	room    atomic.Int64             // bytes that may still be written; < 0: no limit
	onClose atomic.Pointer[error]    // what closing a written file fails with
	stalled atomic.Pointer[chan int] // every call waits until it is closed
	full    atomic.Bool              // no directory and no file can be made
	onName  atomic.Pointer[func()]   // called once, before a file gets another name
}

func newFaulty(t *testing.T) (*faulty, string) {
	dir := t.TempDir()
	s := &faulty{Store: localStore(t, dir)}
	s.room.Store(-1)
	return s, dir
}

func (s *faulty) take(n int) error {
	if s.room.Load() >= 0 && s.room.Add(int64(-n)) < 0 {
		s.room.Store(0)
		return fmt.Errorf("the quota of /user/alice (10 GB) is used up: %w", syscall.EDQUOT)
	}
	return nil
}

func (s *faulty) wait() {
	if c := s.stalled.Load(); c != nil {
		<-*c
	}
}

func (s *faulty) Stat(ctx context.Context, name string) (store.Info, error) {
	s.wait()
	return s.Store.Stat(ctx, name)
}

func (s *faulty) List(ctx context.Context, name string) ([]store.Info, error) {
	s.wait()
	return s.Store.List(ctx, name)
}

func (s *faulty) Mkdir(ctx context.Context, name string, perm fs.FileMode) error {
	s.wait()
	if s.full.Load() {
		return fmt.Errorf("the quota of /user/alice (20 names) is used up: %w", syscall.EDQUOT)
	}
	return s.Store.Mkdir(ctx, name, perm)
}

func (s *faulty) naming() {
	s.wait()
	if do := s.onName.Swap(nil); do != nil {
		(*do)()
	}
}

func (s *faulty) Rename(ctx context.Context, from, to string) error {
	s.naming()
	return s.Store.Rename(ctx, from, to)
}

func (s *faulty) RenameNew(ctx context.Context, from, to string) error {
	s.naming()
	return s.Store.RenameNew(ctx, from, to)
}

func (s *faulty) Remove(ctx context.Context, name string) error {
	s.wait()
	return s.Store.Remove(ctx, name)
}

func (s *faulty) Stage(ctx context.Context, name string, perm fs.FileMode) (store.Writer, error) {
	s.wait()
	if s.full.Load() {
		return nil, fmt.Errorf("the quota of /user/alice (20 names) is used up: %w", syscall.EDQUOT)
	}
	w, err := s.Store.Stage(ctx, name, perm)
	if err != nil {
		return nil, err
	}
	return &faultyWriter{w, s}, nil
}

type faultyWriter struct {
	store.Writer
	s *faulty
}

func (w *faultyWriter) Write(p []byte) (int, error) {
	w.s.wait()
	if err := w.s.take(len(p)); err != nil {
		return 0, err
	}
	return w.Writer.Write(p)
}

func (w *faultyWriter) Close() error {
	w.s.wait()
	if err := w.s.onClose.Load(); err != nil {
		w.Writer.Abort()
		return *err
	}
	return w.Writer.Close()
}

func (s *faulty) Append(ctx context.Context, name string, perm fs.FileMode) (store.Appender, error) {
	a, err := s.Store.Append(ctx, name, perm)
	if err != nil {
		return nil, err
	}
	return &faultyAppender{a, s}, nil
}

type faultyAppender struct {
	store.Appender
	s *faulty
}

func (a *faultyAppender) Flush() error {
	if err := a.s.take(1); err != nil {
		return err
	}
	return a.Appender.Flush()
}

func (a *faultyAppender) Sync() error {
	if err := a.s.take(1); err != nil {
		return err
	}
	return a.Appender.Sync()
}

func (s *faulty) Open(ctx context.Context, name string) (store.Reader, error) {
	s.wait()
	r, err := s.Store.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return &faultyReader{r, s}, nil
}

type faultyReader struct {
	store.Reader
	s *faulty
}

func (r *faultyReader) ReadAt(p []byte, off int64) (int, error) {
	r.s.wait()
	return r.Reader.ReadAt(p, off)
}

// TestNoRoomToRemove: a file is removed by way of the mount's own directory or not at all, so that
// a mount that was fenced off removes nothing. Where that cannot be made, who removes is told.
func TestNoRoomToRemove(t *testing.T) {
	s, dir := newFaulty(t)
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("content"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.full.Store(true)
	m, p := mountStore(t, s), newProcess(t)
	p.fails(call{Op: "unlink", Path: m.path("a")}, syscall.EDQUOT)
	if got := p.get(m.path("a")); got != "content" {
		t.Errorf("after that the file has %q", got)
	}
	if log := m.logged(); !strings.Contains(log, "quota of /user/alice") || !strings.Contains(log, "hdfs dfs -rm") {
		t.Errorf("the log does not say why, and what to do:\n%s", log)
	}
	s.full.Store(false)
	p.do(call{Op: "unlink", Path: m.path("a")})
	if p.exists(m.path("a")) {
		t.Error("it is still there")
	}
}

func TestFailureReachesTheWriter(t *testing.T) {
	s, dir := newFaulty(t)
	m, p := mountStore(t, s), newProcess(t)
	p.put(m.path("a"), "former content")

	// In the middle: the write fails, and so does all that follows.
	s.room.Store(2 << 20)
	fd := p.open(m.path("a"), forNew)
	p.fails(call{Op: "write", Fd: fd, Size: 4 << 20}, syscall.EDQUOT)
	p.fails(call{Op: "write", Fd: fd, Data: []byte("x")}, syscall.EDQUOT)
	p.fails(call{Op: "fsync", Fd: fd}, syscall.EDQUOT)
	p.fails(call{Op: "close", Fd: fd}, syscall.EDQUOT)
	if got := p.get(m.path("a")); got != "former content" {
		t.Errorf("after a failed write: %q", got)
	}
	if log := m.logged(); strings.Count(log, "quota of /user/alice (10 GB)") != 1 || strings.Count(log, "\n") != 1 {
		t.Errorf("the log should say once why:\n%s", log)
	}

	// While the spool is uploaded: only close can tell.
	s.room.Store(1 << 20)
	fd = p.open(m.path("b"), forNew)
	p.pwrite(fd, 3<<20, "far")
	p.fails(call{Op: "close", Fd: fd}, syscall.EDQUOT)

	// At the very end.
	s.room.Store(-1)
	failure := fmt.Errorf("no DataNode left: %w", syscall.EIO)
	s.onClose.Store(&failure)
	fd = p.open(m.path("c"), forNew)
	p.write(fd, "content")
	p.fails(call{Op: "close", Fd: fd}, syscall.EIO)
	s.onClose.Store(nil)

	// In the background: the next call tells.
	fd = p.open(m.path("events.tfevents.1"), forNew)
	s.room.Store(0)
	p.write(fd, "event")
	eventually(t, "a later write fails", func() bool {
		_, err := p.try(call{Op: "write", Fd: fd, Data: []byte("x")})
		return err == syscall.EDQUOT
	})
	p.fails(call{Op: "fsync", Fd: fd}, syscall.EDQUOT)
	p.fails(call{Op: "close", Fd: fd}, syscall.EDQUOT)
	s.room.Store(-1)

	for _, name := range []string{"b", "c"} {
		if p.exists(m.path(name)) {
			t.Errorf("%s is there after its close failed", name)
		}
	}
	p.put(m.path("c"), "now it works")
	if got := p.get(m.path("c")); got != "now it works" {
		t.Errorf("after room was made: %q", got)
	}
	noLeftovers(t, dir)
}

// TestAFailedTruncationLosesNothing: an open(O_TRUNC), or a truncation, that fails changes nothing
// for who is writing the file, wherever that has what was written.
func TestAFailedTruncationLosesNothing(t *testing.T) {
	for name, write := range map[string]func(p *process, fd int){
		"streamed":          func(p *process, fd int) { p.write(fd, "new") },
		"spooled":           func(p *process, fd int) { p.pwrite(fd, 1, "ew"); p.pwrite(fd, 0, "n") },
		"events.tfevents.1": func(p *process, fd int) { p.write(fd, "new") },
	} {
		for _, more := range []string{"", "er"} {
			t.Run(name+more, func(t *testing.T) {
				s, _ := newFaulty(t)
				m, p := mountStore(t, s), newProcess(t)
				p.put(m.path(name), "former text")
				fd := p.open(m.path(name), forNew)
				write(p, fd)
				s.full.Store(true)
				p.fails(call{Op: "open", Path: m.path(name), Flags: forNew}, syscall.EDQUOT)
				p.fails(call{Op: "truncate", Path: m.path(name)}, syscall.EDQUOT)
				s.full.Store(false)
				p.pwrite(fd, 3, more)
				p.close(fd)
				if got := p.get(m.path(name)); got != "new"+more {
					t.Errorf("writes and close(2) of %q succeed, and the file has %q", "new"+more, got)
				}
			})
		}
	}
}

// TestAReadTellsOfAFailedFlush: a read that finds less because a flush has failed does not say
// that the file ends there.
func TestAReadTellsOfAFailedFlush(t *testing.T) {
	s, _ := newFaulty(t)
	m, p := mountStore(t, s), newProcess(t)
	p.put(m.path("log"), "")
	fd := p.open(m.path("log"), unix.O_RDWR|unix.O_APPEND)
	s.room.Store(0)
	p.write(fd, "hello")
	p.fails(call{Op: "pread", Fd: fd, Size: 100}, syscall.EDQUOT)
}

// TestNoReplaceAmongTasks: what another task closes in the moment before a rename that must not
// replace is not replaced.
func TestNoReplaceAmongTasks(t *testing.T) {
	for _, to := range []string{"to", "model.safetensors"} { // what is a checkpoint is retained when it is replaced
		s, dir := newFaulty(t)
		m, p := mountStore(t, s), newProcess(t)
		p.put(m.path("from"), "its own")
		closes := func() {
			if err := os.WriteFile(filepath.Join(dir, to), []byte("the other's"), 0o644); err != nil {
				t.Error(err)
			}
		}
		s.onName.Store(&closes)
		p.fails(call{Op: "rename", Path: m.path("from"), To: m.path(to), Flags: unix.RENAME_NOREPLACE}, syscall.EEXIST)
		for name, want := range map[string]string{"from": "its own", to: "the other's"} {
			if got := p.get(m.path(name)); got != want {
				t.Errorf("%s has %q", name, got)
			}
		}
	}
}

func TestSpoolRefuses(t *testing.T) {
	dir := t.TempDir()
	m, p := mountStore(t, localStore(t, dir)), newProcess(t)
	fd := p.open(m.path("a"), forNewRW)
	// Beyond what a file may be long: the spool's file system refuses it.
	p.fails(call{Op: "pwrite", Fd: fd, Off: 1<<62 + 12345, Data: []byte("x")}, syscall.EFBIG, syscall.EINVAL)
	p.fails(call{Op: "close", Fd: fd}, syscall.EFBIG, syscall.EINVAL)
	if p.exists(m.path("a")) {
		t.Error("a file that could not be written is there")
	}
}

func TestFullDiskUnderTheSpool(t *testing.T) {
	spool := t.TempDir()
	if err := unix.Mount("spool", spool, "tmpfs", 0, "size=2m"); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(spool, unix.MNT_DETACH)
	dir := t.TempDir()
	m, p := mountStoreWith(t, localStore(t, dir), spool), newProcess(t)
	p.put(m.path("a"), "former content")
	fd := p.open(m.path("a"), forNewRW)
	p.pwrite(fd, 100, "not at the end")
	p.fails(call{Op: "pwrite", Fd: fd, Size: 4 << 20}, syscall.ENOSPC)
	p.fails(call{Op: "close", Fd: fd}, syscall.ENOSPC)
	if got := p.get(m.path("a")); got != "former content" {
		t.Errorf("after the disk was full: %q", got)
	}
	// What streams needs no disk.
	fd = p.open(m.path("a"), forNew)
	p.do(call{Op: "write", Fd: fd, Size: 4 << 20, Fill: 1})
	p.close(fd)
	if got := p.get(m.path("a")); got != string(pattern(4<<20, 1)) {
		t.Errorf("%d bytes that differ", len(got))
	}
	if !strings.Contains(m.logged(), spool) {
		t.Errorf("the log does not name the directory that is full:\n%s", m.logged())
	}
	noLeftovers(t, dir)
}

// stall makes every call of the store wait until resume.
func (s *faulty) stall(t *testing.T) (resume func()) {
	c := make(chan int)
	s.stalled.Store(&c)
	resume = sync.OnceFunc(func() { s.stalled.Store(nil); close(c) })
	t.Cleanup(resume)
	return resume
}

// ends checks that something ends at all.
func ends(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { do(); close(done) }()
	select {
	case <-done:
	case <-time.After(60 * time.Second):
		t.Fatalf("%s: no end after 60 s", what)
	}
}

// TestKillEndsACallOfAStalledStore: whatever a process waits for, kill -9 ends
// it, and leaves neither half a file nor anything that is remembered.
func TestKillEndsACallOfAStalledStore(t *testing.T) {
	s, dir := newFaulty(t)
	m, first := mountStore(t, s), newProcess(t)
	// Each in a directory of its own: the kernel lets only one at a time change
	// a directory.
	calls := map[string]func(p *process, dir string) call{
		"stat":     func(_ *process, dir string) call { return call{Op: "stat", Path: dir + "/a"} },
		"list":     func(_ *process, dir string) call { return call{Op: "list", Path: dir} },
		"open":     func(_ *process, dir string) call { return call{Op: "open", Path: dir + "/a"} },
		"create":   func(_ *process, dir string) call { return call{Op: "open", Path: dir + "/new", Flags: forNew} },
		"O_TRUNC":  func(_ *process, dir string) call { return call{Op: "open", Path: dir + "/a", Flags: forNew} },
		"mkdir":    func(_ *process, dir string) call { return call{Op: "mkdir", Path: dir + "/new"} },
		"rmdir":    func(_ *process, dir string) call { return call{Op: "rmdir", Path: dir + "/d"} },
		"rename":   func(_ *process, dir string) call { return call{Op: "rename", Path: dir + "/a", To: dir + "/b"} },
		"unlink":   func(_ *process, dir string) call { return call{Op: "unlink", Path: dir + "/a"} },
		"chmod":    func(_ *process, dir string) call { return call{Op: "chmod", Path: dir + "/a", Mode: 0o600} },
		"truncate": func(_ *process, dir string) call { return call{Op: "truncate", Path: dir + "/a", Off: 3} },
		"read": func(p *process, dir string) call {
			return call{Op: "pread", Fd: p.open(dir+"/a", unix.O_RDONLY), Size: 10}
		},
		"write": func(p *process, dir string) call {
			return call{Op: "write", Fd: p.open(dir+"/new", forNew), Size: 1 << 20}
		},
		"close": func(p *process, dir string) call {
			fd := p.open(dir+"/closed", forNew)
			p.write(fd, "whole")
			return call{Op: "close", Fd: fd}
		},
	}
	waiting := make(map[string]*process)
	pending := make(map[string]call)
	for name, prepare := range calls {
		sub := m.path(name)
		first.do(call{Op: "mkdir", Path: sub, Mode: 0o755})
		first.do(call{Op: "mkdir", Path: sub + "/d", Mode: 0o755})
		first.put(sub+"/a", "content")
		waiting[name] = newProcess(t)
		pending[name] = prepare(waiting[name], sub)
	}
	first.kill()
	resume := s.stall(t)
	for name, p := range waiting {
		p.send(pending[name])
	}
	for name, p := range waiting {
		// In the call: it does not answer, and FUSE has it.
		eventually(t, name+" waits for the store", func() bool { return inFuse(p) })
		ends(t, name+", killed", p.kill)
	}
	resume()
	eventually(t, "nothing is open", func() bool { _, handles, works := m.Remembered(); return handles+works == 0 })
	noLeftovers(t, dir)
	p := newProcess(t)
	for name := range calls {
		if name != "mkdir" && p.exists(m.path(name)+"/new") {
			t.Errorf("%s: a killed process's file was published", name)
		}
		if name == "rename" || name == "unlink" { // done or not
			continue
		}
		if got := p.get(m.path(name) + "/a"); got != "content" && name != "truncate" {
			t.Errorf("%s: a file that was there reads %q", name, got)
		}
	}
	for name := range calls {
		p.do(call{Op: "removeall", Path: m.path(name)})
	}
	eventually(t, "nothing is remembered", func() bool { nodes, _, _ := m.Remembered(); return nodes < 5 })
}

// TestInterruptEndsAProgram: Ctrl-C ends cat(1) though the store does not answer.
func TestInterruptEndsAProgram(t *testing.T) {
	s, _ := newFaulty(t)
	m := mountStore(t, s)
	newProcess(t).put(m.path("a"), "content")
	s.stall(t)
	cat := &process{t: t, cmd: exec.Command("cat", m.path("a"))}
	if err := cat.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cat.kill)
	eventually(t, "cat waits for the store", func() bool { return inFuse(cat) })
	cat.signal(syscall.SIGINT)
	ends(t, "cat, interrupted", func() { cat.cmd.Wait() })
}

// TestDeviceIsNotInherited: a process that had /dev/fuse from its parent would
// keep the mount of a parent that was killed hanging.
func TestDeviceIsNotInherited(t *testing.T) {
	mountLocal(t)
	p := newProcess(t)
	p.do(call{Op: "access", Path: "/"}) // it runs
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.cmd.Process.Pid))
	if err != nil || len(fds) == 0 {
		t.Fatalf("no descriptors: %v", err)
	}
	for _, fd := range fds {
		if to, _ := os.Readlink(fd); to == "/dev/fuse" {
			t.Errorf("a child has %s → %s", fd, to)
		}
	}
}

// inFuse reports whether a process waits for a FUSE request, or for a page that
// one brings (proc_pid_wchan(5)).
func inFuse(p *process) bool {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/wchan", p.cmd.Process.Pid))
	for _, f := range tasks {
		b, _ := os.ReadFile(f)
		for _, in := range []string{"request_wait", "fuse", "folio_wait", "filemap"} {
			if strings.Contains(string(b), in) {
				return true
			}
		}
	}
	return false
}

// TestUnmountWhileCallsWait: unmounting waits neither for open files nor for a
// store that does not answer, and who waited is told.
func TestUnmountWhileCallsWait(t *testing.T) {
	s, _ := newFaulty(t)
	m := mountStore(t, s)
	newProcess(t).put(m.path("a"), "content")
	reader, writer := newProcess(t), newProcess(t)
	r, w := reader.open(m.path("a"), unix.O_RDONLY), writer.open(m.path("b"), forNew)
	s.stall(t)
	reading, writing := call{Op: "pread", Fd: r, Size: 10}, call{Op: "write", Fd: w, Size: 1 << 20}
	reader.send(reading)
	writer.send(writing)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	ends(t, "unmounting", func() { m.Close(ctx) })
	for p, c := range map[*process]call{reader: reading, writer: writing} {
		if a := p.receive(c); a.Errno == 0 {
			t.Errorf("%s succeeds though the mount is gone", c.Op)
		}
	}
}

// TestAgentIsKilledWhileCallsWait: with the agent its mount is gone, and
// whoever waited for it or comes to it is told.
func TestAgentIsKilledWhileCallsWait(t *testing.T) {
	b, store := localBox(t)
	fd := b.task.open(b.dir+"/a", forNew)
	b.task.write(fd, "half")
	// A stopped agent answers nothing, until it is killed.
	b.agent.stop()
	writing := call{Op: "write", Fd: fd, Size: 1 << 20}
	b.task.send(writing)
	eventually(t, "the write waits for the agent", func() bool { return inFuse(b.task) })
	ends(t, "killing the agent", b.agent.kill)
	gone := []syscall.Errno{syscall.ENOTCONN, syscall.ECONNABORTED, syscall.EIO}
	if a := b.task.receive(writing); !slices.Contains(gone, a.Errno) {
		t.Errorf("the write: %v", a.Errno)
	}
	b.task.fails(call{Op: "close", Fd: fd}, gone...)
	b.task.fails(call{Op: "stat", Path: b.dir + "/a"}, gone...)
	if _, err := os.Stat(filepath.Join(store, "a")); err == nil {
		t.Error("half a file was published")
	}
}

func TestSignalDoesNotDisturbARead(t *testing.T) {
	s, _ := newFaulty(t)
	m := mountStore(t, s)
	newProcess(t).put(m.path("a"), "content")
	p := newProcess(t)
	fd := p.open(m.path("a"), unix.O_RDONLY)
	resume := s.stall(t)
	c := call{Op: "pread", Fd: fd, Size: 7}
	p.send(c)
	for range 20 {
		// Go's runtime handles it and goes on; the kernel interrupts the read.
		p.cmd.Process.Signal(syscall.SIGURG)
		time.Sleep(5 * time.Millisecond) // spreads the signals; nothing depends on it
	}
	resume()
	if a := p.receive(c); a.Errno != 0 || string(a.Data) != "content" {
		t.Errorf("got %q, %v", a.Data, a.Errno)
	}
}

// patience is a store that notes for how long each call for a name would wait for a NameNode.
type patience struct {
	store.Store
	mu    sync.Mutex
	limit map[string]time.Duration // by method
}

func (s *patience) note(ctx context.Context, method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit[method] = rpc.Limit(ctx, 0)
}

func (s *patience) Chmod(ctx context.Context, name string, perm fs.FileMode) error {
	s.note(ctx, "chmod")
	return s.Store.Chmod(ctx, name, perm)
}

func (s *patience) Chtimes(ctx context.Context, name string, atime, mtime time.Time) error {
	s.note(ctx, "chtimes")
	return s.Store.Chtimes(ctx, name, atime, mtime)
}

func (s *patience) RenameNew(ctx context.Context, from, to string) error {
	s.note(ctx, "rename")
	return s.Store.RenameNew(ctx, from, to)
}

func (s *patience) Stage(ctx context.Context, name string, perm fs.FileMode) (store.Writer, error) {
	s.note(ctx, "stage")
	return s.Store.Stage(ctx, name, perm)
}

// TestAWholeFileWaitsForItsName: each call without which a file that a program has closed
// would be lost waits for the NameNode as long as the rename does: also for its mode and
// times, and for a file that was spooled.
func TestAWholeFileWaitsForItsName(t *testing.T) {
	s := &patience{Store: localStore(t, t.TempDir()), limit: map[string]time.Duration{}}
	m, p := mountStore(t, s), newProcess(t)
	fd := p.open(m.path("model.ckpt-1.index"), forNewRW)
	p.pwrite(fd, 100, "not at the end")
	p.do(call{Op: "chmod", Path: m.path("model.ckpt-1.index"), Mode: 0o400})
	p.do(call{Op: "utimes", Path: m.path("model.ckpt-1.index"), Atime: time.Unix(1, 0), Mti: time.Unix(2, 0)})
	s.mu.Lock()
	clear(s.limit) // the file was made
	s.mu.Unlock()
	p.close(fd)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, method := range []string{"stage", "chmod", "chtimes", "rename"} {
		if s.limit[method] != write.CommitLimit {
			t.Errorf("%s waits for %s, not for %s", method, s.limit[method], write.CommitLimit)
		}
	}
}
