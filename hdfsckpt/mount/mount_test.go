package mount_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/hdfsckpt/mount"
	"holdfast/hdfsckpt/store"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"
)

// mounted is a mount of a store for a test.
type mounted struct {
	*mount.FS
	t   *testing.T
	dir string
	s   store.Store

	mu      sync.Mutex
	commits []mount.Commit
	reads   []time.Time // when reads of files of the store began
	log     strings.Builder
}

func (m *mounted) path(name string) string { return filepath.Join(m.dir, name) }

// committed are the names of what was committed.
func (m *mounted) committed() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for _, c := range m.commits {
		names = append(names, c.Name)
	}
	return names
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

func mountStore(t *testing.T, s store.Store) *mounted {
	t.Helper()
	return mountStoreWith(t, s, t.TempDir())
}

func mountStoreWith(t *testing.T, s store.Store, spool string) *mounted {
	t.Helper()
	return mountInputs(t, s, spool, "")
}

func mountInputs(t *testing.T, s store.Store, spool, inputs string) *mounted {
	t.Helper()
	m := &mounted{t: t, dir: t.TempDir(), s: s}
	log := logrus.New()
	log.SetOutput(m)
	fs, err := mount.New(s, mount.Options{
		UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), SpoolDir: spool,
		Inputs: inputs, Log: logrus.NewEntry(log), FlushEvery: 200 * time.Millisecond,
		OnCommit: func(c mount.Commit) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.commits = append(m.commits, c)
		},
		OnRead: func(began time.Time) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.reads = append(m.reads, began)
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

func localStore(t *testing.T, dir string) store.Store {
	t.Helper()
	s, err := store.Open(context.Background(), dir, nil)
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
		if err == nil && store.IsTemporary(d.Name()) {
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
	own := p1.open(m1.path(name), unix.O_RDONLY)
	for _, more := range []string{"1", "2", "3"} {
		before := p1.pread(own, 0, 100)
		p1.write(fd, more)
		if got := p1.pread(own, 0, 100); got != before+more {
			t.Errorf("an open reader in its own mount reads %q, want %q", got, before+more)
		}
	}
	// A kill loses nothing that was written.
	p1.write(fd, ", last")
	p1.kill()
	eventually(t, "the last event is there", func() bool { return p2.get(m2.path(name)) == "header event123, last" })
	noLeftovers(t, dir)

	p3 := newProcess(t)
	fd = p3.open(m1.path(name), unix.O_WRONLY|unix.O_APPEND)
	p3.write(fd, "!")
	eventually(t, "what was appended is seen before close", func() bool {
		return p2.get(m2.path(name)) == "header event123, last!"
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
		do   func(fd int) []byte
	}{
		{"backwards", func(fd int) []byte {
			p1.do(call{Op: "write", Fd: fd, Size: size, Fill: 1})
			p1.pwrite(fd, 100, "header")
			p1.do(call{Op: "pwrite", Fd: fd, Off: size, Data: []byte("tail")})
			b := pattern(size, 1)
			copy(b[100:], "header")
			return append(b, "tail"...)
		}},
		{"sparse", func(fd int) []byte {
			p1.pwrite(fd, 1<<20, "far")
			p1.pwrite(fd, 0, "near")
			b := make([]byte, 1<<20+3)
			copy(b, "near")
			copy(b[1<<20:], "far")
			return b
		}},
		{"shrunk and grown", func(fd int) []byte {
			p1.do(call{Op: "write", Fd: fd, Size: size, Fill: 2})
			p1.do(call{Op: "ftruncate", Fd: fd, Off: 1000})
			p1.do(call{Op: "ftruncate", Fd: fd, Off: 2000})
			return append(pattern(1000, 2), make([]byte, 1000)...)
		}},
		{"emptied", func(fd int) []byte {
			p1.do(call{Op: "write", Fd: fd, Size: size, Fill: 3})
			p1.do(call{Op: "ftruncate", Fd: fd, Off: 0})
			p1.pwrite(fd, 0, "new")
			return []byte("new")
		}},
		{"read back", func(fd int) []byte {
			p1.do(call{Op: "write", Fd: fd, Size: size, Fill: 4})
			if got := p1.pread(fd, 5, size); got != string(pattern(size, 4)[5:]) {
				t.Errorf("read back %d bytes that differ", len(got))
			}
			p1.do(call{Op: "pwrite", Fd: fd, Off: size, Data: []byte("more")})
			return append(pattern(size, 4), "more"...)
		}},
		{"mapped", func(fd int) []byte {
			p1.do(call{Op: "ftruncate", Fd: fd, Off: 8192})
			p1.do(call{Op: "mmapwrite", Fd: fd, Size: 8192, Off: 5000, Data: []byte("through a mapping")})
			b := make([]byte, 8192)
			copy(b[5000:], "through a mapping")
			return b
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fd := p1.open(m1.path(tt.name), forNewRW)
			want := tt.do(fd)
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

func TestOpenReaderSeesWhatItsOwnMountWrites(t *testing.T) {
	m, _ := mountLocal(t)
	p := newProcess(t)
	p.put(m.path("a"), "first content")
	r := p.open(m.path("a"), unix.O_RDONLY)
	for _, want := range []string{"second", "third, longer than all", "x"} {
		p.put(m.path("a"), want)
		if got := p.pread(r, 0, 100); got != want { // the same file, as in any file system
			t.Errorf("read %q, want %q", got, want)
		}
	}
}

// TestMappingSeesAWriter: pages that are mapped, and those that a reader has in
// the kernel, follow what is written through a descriptor for writing only.
func TestMappingSeesAWriter(t *testing.T) {
	m, _ := mountLocal(t)
	reader, writer := newProcess(t), newProcess(t)
	reader.put(m.path("a"), "0123456789")
	r := reader.open(m.path("a"), unix.O_RDONLY)
	mapped := func() string { return string(reader.do(call{Op: "mapping", Fd: r}).Data) }
	look := func(want string) {
		t.Helper()
		if got := reader.pread(r, 0, 100); got != want {
			t.Errorf("read %q, want %q", got, want)
		}
		if got := mapped(); got != want+strings.Repeat("\x00", 64-len(want)) {
			t.Errorf("mapped %q, want %q", got, want)
		}
	}
	look("0123456789")
	fd := writer.open(m.path("a"), unix.O_WRONLY)
	writer.pwrite(fd, 3, "abc")
	look("012abc6789")
	writer.pwrite(fd, 10, "longer")
	look("012abc6789longer")
	writer.close(fd)
	fd = writer.open(m.path("a"), unix.O_WRONLY|unix.O_APPEND)
	writer.write(fd, " still")
	look("012abc6789longer still")
	writer.close(fd)
}

// kept are mappings of the first 64 bytes, by descriptor.
var kept = map[int][]byte{}

func init() {
	more["mapping"] = func(c call, a *answer) (err error) {
		if kept[c.Fd] == nil {
			kept[c.Fd], err = unix.Mmap(c.Fd, 0, 64, unix.PROT_READ, unix.MAP_SHARED)
		}
		a.Data = append([]byte(nil), kept[c.Fd]...)
		return err
	}
}

// TestAMappedPageStaysInItsPlace: what is changed in a mapping is written where it is, also through
// a descriptor that appends ("a+b").
func TestAMappedPageStaysInItsPlace(t *testing.T) {
	m, _ := mountLocal(t)
	p := newProcess(t)
	p.put(m.path("a"), strings.Repeat("a", 8192))
	fd := p.open(m.path("a"), unix.O_RDWR|unix.O_APPEND)
	p.do(call{Op: "change mapped", Fd: fd, Data: []byte("new")})
	p.write(fd, "end")
	p.close(fd)
	if got, want := p.get(m.path("a")), "new"+strings.Repeat("a", 8189)+"end"; got != want {
		t.Errorf("the file has %d bytes, which begin with %.5q", len(got), got)
	}
}

func init() {
	more["change mapped"] = func(c call, a *answer) error {
		b, err := unix.Mmap(c.Fd, 0, len(c.Data), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return err
		}
		copy(b, c.Data)
		return errors.Join(unix.Msync(b, unix.MS_SYNC), unix.Munmap(b))
	}
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
