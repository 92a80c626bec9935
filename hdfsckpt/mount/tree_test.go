package mount_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/hdfsckpt/store"

	"golang.org/x/sys/unix"
)

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
	hidden := store.TemporaryFor("a")
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
