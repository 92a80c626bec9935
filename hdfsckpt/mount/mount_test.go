package mount_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/mount"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"
)

// mounted is a mount of a store for a test.
type mounted struct {
	*mount.FS
	t   *testing.T
	dir string

	mu      sync.Mutex
	commits []string
	log     strings.Builder
}

func (m *mounted) path(name string) string { return filepath.Join(m.dir, name) }

func (m *mounted) committed() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.commits)
}

func (m *mounted) logged() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.log.String()
}

func (m *mounted) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.log.Write(p)
}

func mountStore(t *testing.T, s hdfsckpt.Store) *mounted {
	t.Helper()
	m := &mounted{t: t, dir: t.TempDir()}
	log := logrus.New()
	log.SetOutput(m)
	fs, err := mount.New(s, mount.Options{
		UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), SpoolDir: t.TempDir(),
		Log: logrus.NewEntry(log), FlushEvery: 200 * time.Millisecond,
		OnCommit: func(name string) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.commits = append(m.commits, name)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	m.FS = fs
	if err := fs.Serve(m.dir); err != nil {
		t.Fatalf("%v\nThe tests of the mount need CAP_SYS_ADMIN and /dev/fuse: run them as root, or under unshare -Urm with /dev/fuse readable and writable.", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := fs.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		if t.Failed() {
			t.Log(m.logged())
		}
	})
	return m
}

func localStore(t *testing.T, dir string) hdfsckpt.Store {
	t.Helper()
	s, err := hdfsckpt.Open(context.Background(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func mountLocal(t *testing.T) (m *mounted, dir string) {
	t.Helper()
	dir = t.TempDir()
	return mountStore(t, localStore(t, dir)), dir
}

// two mounts of one store, as two containers have, with a process in each.
func twoMounts(t *testing.T) (m1, m2 *mounted, p1, p2 *process, dir string) {
	t.Helper()
	dir = t.TempDir()
	m1 = mountStore(t, localStore(t, dir))
	m2 = mountStore(t, localStore(t, dir))
	return m1, m2, newProcess(t), newProcess(t), dir
}

// eventually polls, with a deadline that a slow machine keeps.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after 60 s still not: %s", what)
		}
	}
}

// leftovers are the files in a store's directory that no list shows.
func leftovers(t *testing.T, dir string) (found []string) {
	t.Helper()
	filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && hdfsckpt.IsTemporary(d.Name()) {
			found = append(found, p)
		}
		return nil
	})
	return found
}

func noLeftovers(t *testing.T, dir string) {
	t.Helper()
	// The kernel sends RELEASE after close(2) has returned.
	eventually(t, fmt.Sprintf("no temporary files in %s", dir), func() bool { return len(leftovers(t, dir)) == 0 })
}

func TestFileIsHiddenUntilClosed(t *testing.T) {
	m1, m2, p1, p2, dir := twoMounts(t)
	fd := p1.open(m1.path("a"), forNew)
	p1.write(fd, "one")
	if p2.exists(m2.path("a")) {
		t.Error("another mount sees the file before it is closed")
	}
	if got := p2.list(m2.dir); len(got) != 0 {
		t.Errorf("another mount lists %q", got)
	}
	if n := p1.size(m1.path("a")); n != 3 {
		t.Errorf("its own mount sees %d bytes, want 3", n)
	}
	if got := p1.list(m1.dir); !slices.Equal(got, []string{"a"}) {
		t.Errorf("its own mount lists %q", got)
	}
	p1.close(fd)
	if got := p2.get(m2.path("a")); got != "one" {
		t.Errorf("after close another mount reads %q", got)
	}
	if got := m1.committed(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("commits reported: %q", got)
	}
	// The same again over an existing file: the former content until close.
	fd = p1.open(m1.path("a"), forNew)
	p1.write(fd, "two, longer")
	if got := p2.get(m2.path("a")); got != "one" {
		t.Errorf("while it is rewritten another mount reads %q", got)
	}
	p1.close(fd)
	if got := p2.get(m2.path("a")); got != "two, longer" {
		t.Errorf("after close another mount reads %q", got)
	}
	noLeftovers(t, dir)
}

func TestKilledWriterPublishesNothing(t *testing.T) {
	m1, m2, _, p2, dir := twoMounts(t)
	p2.put(m2.path("old"), "whole")
	for _, how := range []string{"killed", "exit 1"} {
		w := newProcess(t)
		for _, name := range []string{"new", "old", "spooled"} {
			fd := w.open(m1.path(name), forNewRW)
			w.do(call{Op: "write", Fd: fd, Size: 3 << 20, Fill: 7})
			if name == "spooled" {
				w.pwrite(fd, 10, "back")
			}
		}
		if how == "killed" {
			w.kill()
		} else {
			w.exit(1)
		}
		noLeftovers(t, dir)
		for _, name := range []string{"new", "spooled"} {
			if p2.exists(m2.path(name)) {
				t.Errorf("%s: half of %q was published", how, name)
			}
		}
		if got := p2.get(m2.path("old")); got != "whole" {
			t.Errorf("%s: the former content was replaced by %d bytes", how, len(got))
		}
	}
	p3 := newProcess(t)
	p3.put(m1.path("new"), "again")
	if got := p2.get(m2.path("new")); got != "again" {
		t.Errorf("after the kill another writer's file reads %q", got)
	}
}

func TestExitClosesFiles(t *testing.T) {
	m1, m2, p1, p2, _ := twoMounts(t)
	fd := p1.open(m1.path("a"), forNew)
	p1.write(fd, "content")
	p1.exit(0)
	eventually(t, "the file is there", func() bool { return p2.exists(m2.path("a")) })
	if got := p2.get(m2.path("a")); got != "content" {
		t.Errorf("got %q", got)
	}
}

func TestInheritedDescriptor(t *testing.T) {
	m1, m2, p1, p2, _ := twoMounts(t)
	fd := p1.open(m1.path("a"), forNew)
	p1.write(fd, "first half, ")
	p1.do(call{Op: "inherit", Fd: fd})
	if p2.exists(m2.path("a")) {
		t.Error("the end of a child that inherited the descriptor published half the file")
	}
	p1.write(fd, "second half")
	p1.close(fd)
	if got := p2.get(m2.path("a")); got != "first half, second half" {
		t.Errorf("got %q", got)
	}
}

func TestWritingOnAfterClosingADuplicate(t *testing.T) {
	m1, m2, p1, p2, dir := twoMounts(t)
	fd := p1.open(m1.path("a"), forNew)
	p1.write(fd, "one ")
	dup := int(p1.do(call{Op: "dup", Fd: fd}).N)
	p1.close(dup)
	p1.write(fd, "two")
	p1.close(fd)
	if got := p2.get(m2.path("a")); got != "one two" {
		t.Errorf("got %q", got)
	}
	noLeftovers(t, dir)
}

func TestShellRedirections(t *testing.T) {
	m1, m2, p1, p2, _ := twoMounts(t)
	_ = p1
	run := func(script string) {
		t.Helper()
		if out, err := shell(t, m1.dir, script); err != nil && !strings.Contains(script, "exit 3") {
			t.Fatalf("%s: %v: %s", script, err, out)
		}
	}
	run(`(echo one; /bin/echo two; echo three) > a`)
	run(`sh -c 'echo failing; exit 3' > b`)
	run(`: > empty`)
	run(`echo one > log; echo two >> log; /bin/echo three >> log`)
	run(`cp a copy && mv copy moved && cmp a moved`)
	for name, want := range map[string]string{
		"a": "one\ntwo\nthree\n", "b": "failing\n", "empty": "", "log": "one\ntwo\nthree\n", "moved": "one\ntwo\nthree\n",
	} {
		eventually(t, name+" is there", func() bool { return p2.exists(m2.path(name)) })
		if got := p2.get(m2.path(name)); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestEventFileIsReadWhileWritten(t *testing.T) {
	m1, m2, p1, p2, dir := twoMounts(t)
	const name = "events.out.tfevents.1700000000.host"
	fd := p1.open(m1.path(name), forNew)
	p1.write(fd, "header")
	eventually(t, "another mount sees the header", func() bool {
		return p2.exists(m2.path(name)) && p2.size(m2.path(name)) == 6
	})
	tail := p2.open(m2.path(name), unix.O_RDONLY)
	if got := p2.pread(tail, 0, 100); got != "header" {
		t.Errorf("got %q", got)
	}
	p1.write(fd, " event")
	eventually(t, "an open reader sees the event", func() bool { return p2.pread(tail, 6, 100) == " event" })
	if got := p1.get(m1.path(name)); got != "header event" {
		t.Errorf("its own mount reads %q", got)
	}
	// A kill loses nothing that was written.
	p1.write(fd, ", last")
	p1.kill()
	eventually(t, "the last event is there", func() bool { return p2.get(m2.path(name)) == "header event, last" })
	noLeftovers(t, dir)

	p3 := newProcess(t)
	fd = p3.open(m1.path(name), unix.O_WRONLY|unix.O_APPEND)
	p3.write(fd, "!")
	eventually(t, "what was appended is seen before close", func() bool {
		return p2.get(m2.path(name)) == "header event, last!"
	})
	p3.close(fd)
	fd = p3.open(m1.path(name), forNew)
	p3.write(fd, "anew")
	p3.close(fd)
	if got := p2.get(m2.path(name)); got != "anew" {
		t.Errorf("after O_TRUNC: %q", got)
	}
}

func TestWritesInAnyOrder(t *testing.T) {
	m1, m2, p1, p2, dir := twoMounts(t)
	const size = 3 << 20
	tests := []struct {
		name string
		do   func(fd int, want []byte) []byte
	}{
		{"backwards", func(fd int, b []byte) []byte {
			p1.do(call{Op: "write", Fd: fd, Size: size, Fill: 1})
			p1.pwrite(fd, 100, "header")
			p1.do(call{Op: "pwrite", Fd: fd, Off: size, Data: []byte("tail")})
			b = pattern(size, 1)
			copy(b[100:], "header")
			return append(b, "tail"...)
		}},
		{"sparse", func(fd int, b []byte) []byte {
			p1.pwrite(fd, 1<<20, "far")
			p1.pwrite(fd, 0, "near")
			b = make([]byte, 1<<20+3)
			copy(b, "near")
			copy(b[1<<20:], "far")
			return b
		}},
		{"shrunk and grown", func(fd int, b []byte) []byte {
			p1.do(call{Op: "write", Fd: fd, Size: size, Fill: 2})
			p1.do(call{Op: "ftruncate", Fd: fd, Off: 1000})
			p1.do(call{Op: "ftruncate", Fd: fd, Off: 2000})
			return append(pattern(1000, 2), make([]byte, 1000)...)
		}},
		{"emptied", func(fd int, b []byte) []byte {
			p1.do(call{Op: "write", Fd: fd, Size: size, Fill: 3})
			p1.do(call{Op: "ftruncate", Fd: fd, Off: 0})
			p1.pwrite(fd, 0, "new")
			return []byte("new")
		}},
		{"read back", func(fd int, b []byte) []byte {
			p1.do(call{Op: "write", Fd: fd, Size: size, Fill: 4})
			if got := p1.pread(fd, 5, size); got != string(pattern(size, 4)[5:]) {
				t.Errorf("read back %d bytes that differ", len(got))
			}
			p1.do(call{Op: "pwrite", Fd: fd, Off: size, Data: []byte("more")})
			return append(pattern(size, 4), "more"...)
		}},
		{"mapped", func(fd int, b []byte) []byte {
			p1.do(call{Op: "ftruncate", Fd: fd, Off: 8192})
			p1.do(call{Op: "mmapwrite", Fd: fd, Size: 8192, Off: 5000, Data: []byte("through a mapping")})
			b = make([]byte, 8192)
			copy(b[5000:], "through a mapping")
			return b
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fd := p1.open(m1.path(tt.name), forNewRW)
			want := tt.do(fd, nil)
			if n := p1.size(m1.path(tt.name)); n != int64(len(want)) {
				t.Errorf("while open: %d bytes, want %d", n, len(want))
			}
			if p2.exists(m2.path(tt.name)) {
				t.Error("seen before close")
			}
			p1.close(fd)
			if got := p2.get(m2.path(tt.name)); got != string(want) {
				t.Errorf("%d bytes that differ, want %d", len(got), len(want))
			}
			if got := p1.get(m1.path(tt.name)); got != string(want) {
				t.Errorf("own mount: %d bytes that differ, want %d", len(got), len(want))
			}
		})
	}
	noLeftovers(t, dir)
}

// pattern is what a process writes with Size and Fill.
func pattern(size int, fill byte) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = fill + byte(i%(1<<20)%251)
	}
	return b
}

func TestChangingAnExistingFile(t *testing.T) {
	m1, m2, p1, p2, _ := twoMounts(t)
	p1.put(m1.path("a"), "0123456789")
	fd := p1.open(m1.path("a"), unix.O_RDWR)
	p1.pwrite(fd, 3, "abc")
	if got := p2.get(m2.path("a")); got != "0123456789" {
		t.Errorf("before close: %q", got)
	}
	p1.close(fd)
	if got := p2.get(m2.path("a")); got != "012abc6789" {
		t.Errorf("after close: %q", got)
	}
	p1.do(call{Op: "truncate", Path: m1.path("a"), Off: 4})
	if got := p2.get(m2.path("a")); got != "012a" {
		t.Errorf("after truncate(2): %q", got)
	}
	p1.do(call{Op: "truncate", Path: m1.path("a"), Off: 0})
	if n := p2.size(m2.path("a")); n != 0 {
		t.Errorf("after truncate(2) to 0: %d bytes", n)
	}
	fd = p1.open(m1.path("a"), unix.O_WRONLY|unix.O_APPEND)
	p1.write(fd, "x")
	p1.write(fd, "y")
	p1.close(fd)
	if got := p2.get(m2.path("a")); got != "xy" {
		t.Errorf("after O_APPEND: %q", got)
	}
}

func TestRenameOverAndUnlinkWhileOpen(t *testing.T) {
	m1, m2, p1, p2, dir := twoMounts(t)
	p1.put(m1.path("a"), "old a")
	p1.put(m1.path("b"), "new b")
	r := p1.open(m1.path("a"), unix.O_RDONLY)
	far := p2.open(m2.path("a"), unix.O_RDONLY)
	p1.do(call{Op: "rename", Path: m1.path("b"), To: m1.path("a")})
	for _, got := range []string{p1.get(m1.path("a")), p2.get(m2.path("a"))} {
		if got != "new b" {
			t.Errorf("after the rename: %q", got)
		}
	}
	for _, got := range []string{p1.pread(r, 0, 10), p2.pread(far, 0, 10)} {
		if got != "old a" {
			t.Errorf("who had it open reads %q", got)
		}
	}
	if n := p1.do(call{Op: "fstat", Fd: r}).Stat.Nlink; n != 0 {
		t.Errorf("a replaced file has %d links", n)
	}
	p1.put(m1.path("read"), "by one")
	reading := p1.open(m1.path("read"), unix.O_RDWR)
	p1.do(call{Op: "unlink", Path: m1.path("read")})
	if p1.exists(m1.path("read")) || p2.exists(m2.path("read")) {
		t.Error("removed while it was read, and still there")
	}
	p1.pwrite(reading, 0, "BY")
	if got := p1.pread(reading, 0, 10); got != "BY one" {
		t.Errorf("removed while open: %q", got)
	}
	p1.close(reading)
	if p1.exists(m1.path("b")) || p2.exists(m2.path("b")) {
		t.Error("the former name is still there")
	}
	if got := m1.committed(); !slices.Contains(got, "a") {
		t.Errorf("commits reported: %q", got)
	}

	fd := p1.open(m1.path("gone"), forNewRW)
	p1.write(fd, "content")
	p1.do(call{Op: "unlink", Path: m1.path("gone")})
	if p1.exists(m1.path("gone")) {
		t.Error("removed while it was written, and still there")
	}
	if got := p1.pread(fd, 0, 10); got != "content" {
		t.Errorf("removed while open: reads %q", got)
	}
	p1.close(fd)
	if p2.exists(m2.path("gone")) || p1.exists(m1.path("gone")) {
		t.Error("a removed file came back at its close")
	}

	// Renamed while it is written: it appears under the new name only.
	fd = p1.open(m1.path("t"), forNew)
	p1.write(fd, "one ")
	p1.do(call{Op: "rename", Path: m1.path("t"), To: m1.path("a")})
	p1.write(fd, "two")
	if got := p2.get(m2.path("a")); got != "new b" {
		t.Errorf("before close: %q", got)
	}
	if got := p1.get(m1.path("a")); got != "one two" {
		t.Errorf("own mount before close: %q", got)
	}
	p1.close(fd)
	if got := p2.get(m2.path("a")); got != "one two" || p2.exists(m2.path("t")) {
		t.Errorf("after close: %q", got)
	}
	p1.fails(call{Op: "rename", Path: m1.path("nothing"), To: m1.path("a")}, syscall.ENOENT)
	p1.put(m1.path("c"), "")
	p1.fails(call{Op: "rename", Path: m1.path("c"), To: m1.path("a"), Flags: unix.RENAME_NOREPLACE}, syscall.EEXIST)
	p1.fails(call{Op: "rename", Path: m1.path("c"), To: m1.path("a"), Flags: unix.RENAME_EXCHANGE}, syscall.EINVAL)
	p1.close(r)
	p2.close(far)
	noLeftovers(t, dir)
}

func TestDirectories(t *testing.T) {
	m1, m2, p1, p2, _ := twoMounts(t)
	d := m1.path("d")
	p1.fails(call{Op: "mkdir", Path: m1.path("x/y"), Mode: 0o755}, syscall.ENOENT)
	p1.do(call{Op: "mkdir", Path: d, Mode: 0o755})
	p1.fails(call{Op: "mkdir", Path: d, Mode: 0o755}, syscall.EEXIST)
	const many = 3000
	for i := range many {
		fd := p1.open(fmt.Sprintf("%s/f%05d", d, i), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
		p1.close(fd)
	}
	if got := p2.list(m2.path("d")); len(got) != many || got[0] != "f00000" || got[many-1] != "f02999" {
		t.Errorf("%d names listed, want %d", len(got), many)
	}
	p1.fails(call{Op: "rmdir", Path: d}, syscall.ENOTEMPTY)
	p1.fails(call{Op: "open", Path: d + "/f00000", Flags: unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL}, syscall.EEXIST)
	p1.do(call{Op: "rename", Path: d, To: m1.path("e")})
	if got := p2.list(m2.path("e")); len(got) != many {
		t.Errorf("after the rename %d names", len(got))
	}
	if p2.exists(m2.path("d")) {
		t.Error("the former directory is still there")
	}
	for i := range many {
		p2.do(call{Op: "unlink", Path: fmt.Sprintf("%s/f%05d", m2.path("e"), i)})
	}
	// A file that is being written in it, through this mount only.
	fd := p1.open(m1.path("e/hidden"), forNew)
	p1.fails(call{Op: "rmdir", Path: m1.path("e")}, syscall.ENOTEMPTY)
	p1.do(call{Op: "rename", Path: m1.path("e"), To: m1.path("g")})
	p1.write(fd, "x")
	p1.close(fd)
	if got := p2.get(m2.path("g/hidden")); got != "x" {
		t.Errorf("written across the rename of its directory: %q", got)
	}
	p1.do(call{Op: "unlink", Path: m1.path("g/hidden")})
	p1.do(call{Op: "rmdir", Path: m1.path("g")})
	if got := p2.list(m2.dir); len(got) != 0 {
		t.Errorf("left: %q", got)
	}
	p1.fails(call{Op: "list", Path: m1.path("g")}, syscall.ENOENT)
	dfd := p1.open(m1.dir, unix.O_RDONLY|unix.O_DIRECTORY)
	p1.do(call{Op: "fsync", Fd: dfd})
	p1.close(dfd)
	// What is gone is forgotten: memory does not grow with what was done.
	for _, m := range []*mounted{m1, m2} {
		eventually(t, "only the root is remembered", func() bool {
			nodes, handles, works := m.Remembered()
			return nodes < 10 && handles == 0 && works == 0
		})
	}
}

func TestNames(t *testing.T) {
	m1, m2, p1, p2, _ := twoMounts(t)
	long := strings.Repeat("n", 255)
	for _, name := range []string{"with space", "naïve-模型-🚀", "-rf", "a,b\\c\"d", long, "...", ".hidden"} {
		p1.put(m1.path(name), name)
		if got := p2.get(m2.path(name)); got != name {
			t.Errorf("%q: got %q", name, got)
		}
		if got := p2.list(m2.dir); !slices.Contains(got, name) {
			t.Errorf("%q is not listed", name)
		}
	}
	p1.fails(call{Op: "open", Path: m1.path(long + "n"), Flags: forNew}, syscall.ENAMETOOLONG)
	hidden := hdfsckpt.TemporaryFor("a")
	p1.fails(call{Op: "open", Path: m1.path(hidden), Flags: forNew, Mode: 0o644}, syscall.EPERM)
	p1.fails(call{Op: "mkdir", Path: m1.path(hidden)}, syscall.EPERM)
}

func TestAttributes(t *testing.T) {
	m1, m2, p1, p2, _ := twoMounts(t)
	when := time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC)
	p1.put(m1.path("a"), "12345")
	p1.do(call{Op: "chmod", Path: m1.path("a"), Mode: 0o600})
	p1.do(call{Op: "utimes", Path: m1.path("a"), Atime: when, Mti: when})
	// And of a file that is not closed yet: they come with it.
	fd := p1.open(m1.path("b"), forNew)
	p1.write(fd, "1234567")
	p1.do(call{Op: "chmod", Path: m1.path("b"), Mode: 0o640})
	p1.do(call{Op: "utimes", Path: m1.path("b"), Atime: when, Mti: when})
	p1.close(fd)
	for name, want := range map[string]struct {
		mode uint32
		size int64
	}{"a": {0o600, 5}, "b": {0o640, 7}} {
		for p, m := range map[*process]*mounted{p1: m1, p2: m2} {
			st := p.do(call{Op: "stat", Path: m.path(name)}).Stat
			if st.Mode != unix.S_IFREG|want.mode || st.Size != want.size || st.Mtim.Sec != when.Unix() {
				t.Errorf("%s: mode %o, size %d, mtime %d", name, st.Mode, st.Size, st.Mtim.Sec)
			}
			if int(st.Uid) != os.Getuid() || int(st.Gid) != os.Getgid() || st.Nlink != 1 {
				t.Errorf("%s: owner %d:%d, %d links", name, st.Uid, st.Gid, st.Nlink)
			}
		}
	}
	p1.do(call{Op: "chown", Path: m1.path("a"), Flags: os.Getuid()})
	p1.fails(call{Op: "chown", Path: m1.path("a"), Flags: 12345}, syscall.EPERM)
	p1.fails(call{Op: "symlink", Path: "a", To: m1.path("l")}, syscall.EPERM)
	p1.fails(call{Op: "link", Path: m1.path("a"), To: m1.path("l")}, syscall.EPERM)
	p1.fails(call{Op: "setxattr", Path: m1.path("a"), Data: []byte("v")}, syscall.ENOTSUP)
	p1.do(call{Op: "access", Path: m1.path("a"), Mode: unix.R_OK | unix.W_OK})
	p1.fails(call{Op: "access", Path: m1.path("a"), Mode: unix.X_OK}, syscall.EACCES)
	if s := p1.do(call{Op: "statfs", Path: m1.dir}).Fs; s.Blocks == 0 || s.Bfree > s.Blocks || s.Namelen != 255 {
		t.Errorf("statfs: %+v", s)
	}
}

func TestLocksHoldWithinAMount(t *testing.T) {
	m, _ := mountLocal(t)
	p1, p2 := newProcess(t), newProcess(t)
	p1.put(m.path("a.h5"), "x")
	fd1, fd2 := p1.open(m.path("a.h5"), unix.O_RDWR), p2.open(m.path("a.h5"), unix.O_RDWR)
	p1.do(call{Op: "flock", Fd: fd1, Flags: unix.LOCK_EX | unix.LOCK_NB})
	p2.fails(call{Op: "flock", Fd: fd2, Flags: unix.LOCK_EX | unix.LOCK_NB}, syscall.EAGAIN)
	p1.close(fd1)
	p2.do(call{Op: "flock", Fd: fd2, Flags: unix.LOCK_EX | unix.LOCK_NB})
}

func TestNothingIsCached(t *testing.T) {
	m1, m2, p1, p2, _ := twoMounts(t)
	for i := range 50 {
		want := fmt.Sprintf("version %d", i)
		if i%2 == 0 {
			p1.put(m1.path("a"), want)
		} else {
			p1.put(m1.path("t"), want)
			p1.do(call{Op: "rename", Path: m1.path("t"), To: m1.path("a")})
		}
		if got := p2.get(m2.path("a")); got != want {
			t.Fatalf("read %q, want %q", got, want)
		}
		fd := p2.open(m2.path("a"), unix.O_RDONLY)
		if got := p2.do(call{Op: "mmap", Fd: fd, Size: int64(len(want))}).Data; string(got) != want {
			t.Fatalf("mapped %q, want %q", got, want)
		}
		if i%3 > 0 {
			p2.close(fd) // some stay open on what was replaced
		}
		if i%5 == 4 {
			p1.do(call{Op: "unlink", Path: m1.path("a")})
			if p2.exists(m2.path("a")) {
				t.Fatal("removed through one mount, there in the other")
			}
		}
	}
}

func TestConcurrentWritersOfManyMounts(t *testing.T) {
	m1, m2, _, _, dir := twoMounts(t)
	m3, m4 := mountStore(t, localStore(t, dir)), mountStore(t, localStore(t, dir))
	reader := mountStore(t, localStore(t, dir))
	const rounds = 20
	var wg sync.WaitGroup
	for i, m := range []*mounted{m1, m2, m3, m4} {
		p := newProcess(t)
		wg.Go(func() {
			for range rounds {
				fd := p.open(m.path("same"), forNew)
				p.do(call{Op: "write", Fd: fd, Size: 1 << 20, Fill: byte(i % 2)})
				p.close(fd)
				own := m.path(fmt.Sprintf("own-%d", i))
				p.put(own, "x")
				p.do(call{Op: "rename", Path: own, To: own + "-renamed"})
			}
		})
	}
	r := newProcess(t)
	wg.Go(func() {
		for range rounds {
			if !r.exists(reader.path("same")) {
				continue
			}
			got := r.get(reader.path("same"))
			if got != string(pattern(1<<20, 0)) && got != string(pattern(1<<20, 1)) {
				t.Errorf("read %d bytes that are neither writer's", len(got))
			}
		}
	})
	wg.Wait()
	got := newProcess(t).get(m2.path("same"))
	if got != string(pattern(1<<20, 0)) && got != string(pattern(1<<20, 1)) {
		t.Errorf("%d bytes at the end that are neither writer's", len(got))
	}
	noLeftovers(t, dir)
}

func TestFence(t *testing.T) {
	m1, m2, p1, p2, dir := twoMounts(t)
	p1.put(m1.path("a"), "before")
	p1.put(m1.path("b"), "before")
	fd := p1.open(m1.path("a"), forNew)
	p1.write(fd, "zombie")
	m1.Fence(fmt.Errorf("generation 1 is over"))
	if err := m1.Quiesce(t.Context()); err != nil {
		t.Fatal(err)
	}
	p1.fails(call{Op: "write", Fd: fd, Data: []byte("x")}, syscall.EIO)
	p1.fails(call{Op: "close", Fd: fd}, syscall.EIO)
	p1.fails(call{Op: "open", Path: m1.path("c"), Flags: forNew, Mode: 0o644}, syscall.EIO)
	p1.fails(call{Op: "rename", Path: m1.path("b"), To: m1.path("c")}, syscall.EIO)
	p1.fails(call{Op: "unlink", Path: m1.path("b")}, syscall.EIO)
	p1.fails(call{Op: "mkdir", Path: m1.path("d"), Mode: 0o755}, syscall.EIO)
	p1.fails(call{Op: "truncate", Path: m1.path("b"), Off: 0}, syscall.EIO)
	p1.fails(call{Op: "chmod", Path: m1.path("b"), Mode: 0o600}, syscall.EIO)
	if got := p1.get(m1.path("b")); got != "before" {
		t.Errorf("reading through a fenced mount: %q", got)
	}
	for _, name := range []string{"a", "b"} {
		if got := p2.get(m2.path(name)); got != "before" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := p2.list(m2.dir); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("left: %q", got)
	}
	if !strings.Contains(m1.logged(), "generation 1 is over") {
		t.Errorf("the log does not say why: %s", m1.logged())
	}
	noLeftovers(t, dir)
}

func TestCloseWhileInUse(t *testing.T) {
	m, dir := mountLocal(t)
	p := newProcess(t)
	fd := p.open(m.path("a"), forNew)
	p.write(fd, "half")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := m.Close(ctx); err != nil && !strings.Contains(err.Error(), "in use") {
		t.Error(err)
	}
	p.fails(call{Op: "write", Fd: fd, Data: []byte("x")}, syscall.ENOTCONN, syscall.ECONNABORTED, syscall.EIO)
	noLeftovers(t, dir)
	if _, err := os.Stat(filepath.Join(dir, "a")); err == nil {
		t.Error("half a file was published by the end of the mount")
	}
}
