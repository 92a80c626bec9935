package mount_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/hdfsckpt/store"
)

// forLog is how a log is opened: Python's open('a'), a shell's >>.
const forLog = unix.O_WRONLY | unix.O_APPEND | unix.O_CREAT

func TestNewLogOutlivesItsWriter(t *testing.T) {
	dir := t.TempDir()
	newLogOutlivesItsWriter(t, func() store.Store { return localStore(t, dir) })
	noLeftovers(t, dir)
}

// newLogOutlivesItsWriter: what fsync has said yes to is there, though its writer
// is killed, and though the file was new.
func newLogOutlivesItsWriter(t *testing.T, open func() store.Store) {
	m1, m2, p1, p2 := mountStore(t, open()), mountStore(t, open()), newProcess(t), newProcess(t)
	fd := p1.open(m1.path("log"), forLog)
	if !p2.exists(m2.path("log")) {
		t.Error("another task does not see a log that was opened")
	}
	p1.write(fd, "first line\n")
	p1.do(call{Op: "fsync", Fd: fd})
	if got := p2.get(m2.path("log")); got != "first line\n" {
		t.Errorf("after fsync another task reads %q", got)
	}
	p1.write(fd, "second line\n")
	p1.kill()
	eventually(t, "the mount has let go of it", func() bool { _, handles, works := m1.Remembered(); return handles+works == 0 })
	if got := p2.get(m2.path("log")); got != "first line\nsecond line\n" {
		t.Errorf("after its writer was killed: %q", got)
	}
	// One that is emptied as it is opened is another file until it is closed.
	p3 := newProcess(t)
	fd = p3.open(m1.path("log"), forLog|unix.O_TRUNC)
	p3.write(fd, "new")
	p3.kill()
	eventually(t, "the mount has let go of it", func() bool { _, handles, works := m1.Remembered(); return handles+works == 0 })
	if got := p2.get(m2.path("log")); got != "first line\nsecond line\n" {
		t.Errorf("after the writer of a new version was killed: %q", got)
	}
}

func TestNewLogOutlivesTheServer(t *testing.T) {
	store, dir := t.TempDir(), filepath.Join(t.TempDir(), "mnt")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	server, p := newProcess(t), newProcess(t)
	server.do(call{Op: "serve", Path: store, To: dir})
	fd := p.open(filepath.Join(dir, "log"), forLog)
	p.write(fd, "line\n")
	p.do(call{Op: "fsync", Fd: fd})
	server.kill()
	unix.Unmount(dir, unix.MNT_DETACH)
	b, err := os.ReadFile(filepath.Join(store, "log"))
	if err != nil || string(b) != "line\n" {
		t.Errorf("after the agent was killed: %q, %v", b, err)
	}
}

// hdfsAppends: a file takes as many lines as one likes, each with a reopening of
// its own, where the NameNode allows blocks to a file (16 MB each). small is a
// store with blocks of 1 MB.
func hdfsAppends(t *testing.T, blocks int, open, small func() store.Store) {
	m1, m2, p := mountStore(t, open()), mountStore(t, open()), newProcess(t)
	want := ""
	for i := range 5 * blocks {
		want += fmt.Sprintln(i)
	}
	for _, sh := range []string{"/bin/sh", "/bin/bash"} {
		script := fmt.Sprintf("for i in $(seq 0 %d); do echo $i >> log || exit; done", 5*blocks-1)
		if out, err := shell(t, sh, m1.dir, script); err != nil {
			t.Errorf("%s: %v: %s", sh, err, out)
		}
		if got := p.get(m2.path("log")); got != want {
			t.Errorf("%s: %d lines of %d are there", sh, strings.Count(got, "\n"), strings.Count(want, "\n"))
		}
		p.do(call{Op: "unlink", Path: m2.path("log")})
	}
	// By turns, so that each takes it over from another.
	want = ""
	for i := range 2 * blocks {
		m := []*mounted{m1, m2}[i%2]
		fd := p.open(m.path("turns"), forLog)
		p.write(fd, fmt.Sprintln(i))
		p.close(fd)
		want += fmt.Sprintln(i)
	}
	if got := p.get(m2.path("turns")); got != want {
		t.Errorf("by turns: got %q", got)
	}

	// At the limit the shell is told.
	m3 := mountStore(t, small())
	full := int64(blocks) << 20
	fd := p.open(m3.path("full"), forNew)
	p.do(call{Op: "write", Fd: fd, Size: full})
	p.close(fd)
	if out, err := shell(t, "/bin/bash", m3.dir, "echo more >> full"); err == nil {
		t.Errorf("a shell that adds to a file of %d blocks hears of no error: %s", blocks, out)
	}
	if !strings.Contains(m3.logged(), "max-blocks-per-file") {
		t.Errorf("the log does not say why:\n%s", m3.logged())
	}
	fd = p.open(m3.path("full"), unix.O_WRONLY|unix.O_APPEND)
	p.fails(call{Op: "write", Fd: fd, Data: []byte("more")}, syscall.EIO, syscall.EFBIG)
	p.try(call{Op: "close", Fd: fd})
	if got := p.do(call{Op: "stat", Path: m3.path("full")}).Stat.Size; got != full {
		t.Errorf("%d bytes are there, want %d", got, full)
	}
}
