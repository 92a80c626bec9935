package mount_test

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"holdfast/hdfsckpt"

	"golang.org/x/sys/unix"
)

// faulty is a store in which things go wrong when a test says so.
type faulty struct {
	hdfsckpt.Store
	room    atomic.Int64             // bytes that may still be written; < 0: no limit
	onClose atomic.Pointer[error]    // what closing a written file fails with
	stalled atomic.Pointer[chan int] // reading waits until it is closed
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

func (s *faulty) Stat(ctx context.Context, name string) (hdfsckpt.Info, error) {
	s.wait()
	return s.Store.Stat(ctx, name)
}

func (s *faulty) Create(ctx context.Context, name string, perm fs.FileMode) (hdfsckpt.Writer, error) {
	w, err := s.Store.Create(ctx, name, perm)
	if err != nil {
		return nil, err
	}
	return &faultyWriter{w, s}, nil
}

type faultyWriter struct {
	hdfsckpt.Writer
	s *faulty
}

func (w *faultyWriter) Write(p []byte) (int, error) {
	if err := w.s.take(len(p)); err != nil {
		return 0, err
	}
	return w.Writer.Write(p)
}

func (w *faultyWriter) Close() error {
	if err := w.s.onClose.Load(); err != nil {
		w.Writer.Abort()
		return *err
	}
	return w.Writer.Close()
}

func (s *faulty) Append(ctx context.Context, name string, perm fs.FileMode) (hdfsckpt.Appender, error) {
	a, err := s.Store.Append(ctx, name, perm)
	if err != nil {
		return nil, err
	}
	return &faultyAppender{a, s}, nil
}

type faultyAppender struct {
	hdfsckpt.Appender
	s *faulty
}

func (a *faultyAppender) Flush() error {
	if err := a.s.take(1); err != nil {
		return err
	}
	return a.Appender.Flush()
}

func (s *faulty) Open(ctx context.Context, name string) (hdfsckpt.Reader, error) {
	r, err := s.Store.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return &faultyReader{r, s}, nil
}

type faultyReader struct {
	hdfsckpt.Reader
	s *faulty
}

func (r *faultyReader) ReadAt(p []byte, off int64) (int, error) {
	r.s.wait()
	return r.Reader.ReadAt(p, off)
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

func TestKillEndsAReadOfAStalledStore(t *testing.T) {
	s, _ := newFaulty(t)
	m := mountStore(t, s)
	newProcess(t).put(m.path("a"), "content")
	reader, looker := newProcess(t), newProcess(t)
	fd := reader.open(m.path("a"), unix.O_RDONLY)
	stall := make(chan int)
	s.stalled.Store(&stall)
	defer close(stall)
	reader.send(call{Op: "pread", Fd: fd, Size: 10})
	looker.send(call{Op: "stat", Path: m.path("a")})
	for _, p := range []*process{reader, looker} {
		gone := make(chan struct{})
		go func() { p.kill(); close(gone) }()
		select {
		case <-gone:
		case <-time.After(60 * time.Second):
			t.Fatal("a killed process that waits for the store does not end")
		}
	}
	// And unmounting does not wait for the store either.
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- m.Close(ctx) }()
	select {
	case <-closed:
	case <-time.After(60 * time.Second):
		t.Fatal("close hangs")
	}
}

func TestSignalDoesNotDisturbARead(t *testing.T) {
	s, _ := newFaulty(t)
	m := mountStore(t, s)
	newProcess(t).put(m.path("a"), "content")
	p := newProcess(t)
	fd := p.open(m.path("a"), unix.O_RDONLY)
	stall := make(chan int)
	s.stalled.Store(&stall)
	c := call{Op: "pread", Fd: fd, Size: 7}
	p.send(c)
	for range 20 {
		// Go's runtime handles it and goes on; the kernel interrupts the read.
		p.cmd.Process.Signal(syscall.SIGURG)
		time.Sleep(5 * time.Millisecond) // spreads the signals; nothing depends on it
	}
	s.stalled.Store(nil)
	close(stall)
	if a := p.receive(c); a.Errno != 0 || string(a.Data) != "content" {
		t.Errorf("got %q, %v", a.Data, a.Errno)
	}
}
