package mount_test

import (
	"context"
	"errors"
	"fmt"
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
)

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
	if p2.exists(m2.path("a")) {
		t.Error("closing a duplicate published half the file")
	}
	p1.write(fd, "two")
	p1.close(fd)
	if got := p2.get(m2.path("a")); got != "one two" {
		t.Errorf("got %q", got)
	}
	noLeftovers(t, dir)
}

func TestShellRedirections(t *testing.T) {
	m1, m2, _, p2, _ := twoMounts(t)
	for _, sh := range []string{"/bin/sh", "/bin/bash"} {
		p2.put(m2.path("held"), "former")
		for _, script := range []string{
			`(echo one; /bin/echo two; echo three) > a`,
			sh + ` -c 'echo failing; exit 3' > b; true`,
			`: > empty`,
			`echo one > log; echo two >> log; /bin/echo three >> log`,
			`cp a copy && mv copy moved && cmp a moved`,
			// The former content stays until the command is done.
			`(/bin/echo new; cat ` + m2.path("held") + `; cat ` + m2.path("held") + `) > held`,
		} {
			if out, err := shell(t, sh, m1.dir, script); err != nil {
				t.Fatalf("%s: %s: %v: %s", sh, script, err, out)
			}
		}
		for name, want := range map[string]string{
			"a": "one\ntwo\nthree\n", "b": "failing\n", "empty": "", "log": "one\ntwo\nthree\n",
			"moved": "one\ntwo\nthree\n", "held": "new\nformerformer",
		} {
			if got := p2.get(m2.path(name)); got != want {
				t.Errorf("%s: %s: got %q, want %q", sh, name, got, want)
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

// holding is a store that holds renames back, once it is told to, until their context ends.
type holding struct {
	store.Store
	hold  atomic.Bool
	began chan string // what is renamed
}

func (s *holding) await(ctx context.Context, from string) {
	if s.hold.Load() {
		s.began <- from
		<-ctx.Done()
	}
}

func (s *holding) Rename(ctx context.Context, from, to string) error {
	s.await(ctx, from)
	return s.Store.Rename(ctx, from, to)
}

func (s *holding) RenameNew(ctx context.Context, from, to string) error {
	s.await(ctx, from)
	return s.Store.RenameNew(ctx, from, to)
}

// TestFenceTakesBackWhatIsUnderWay: what waits for the store when the mount is fenced fails at
// once, and does not happen when the store goes on.
func TestFenceTakesBackWhatIsUnderWay(t *testing.T) {
	for name, prepare := range map[string]func(p *process, dir string) call{
		"rename": func(_ *process, dir string) call {
			return call{Op: "rename", Path: dir + "/a", To: dir + "/b"}
		},
		"rename a checkpoint": func(_ *process, dir string) call {
			return call{Op: "rename", Path: dir + "/a", To: dir + "/checkpoint"}
		},
		"unlink": func(_ *process, dir string) call { return call{Op: "unlink", Path: dir + "/a"} },
		"close": func(p *process, dir string) call {
			fd := p.open(dir+"/a", forNew)
			p.write(fd, "the zombie's")
			return call{Op: "close", Fd: fd}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &holding{Store: localStore(t, t.TempDir()), began: make(chan string, 10)}
			m, p := mountStore(t, s), newProcess(t)
			p.put(m.path("a"), "content")
			c := prepare(p, m.dir)
			before := listing(t, s)
			s.hold.Store(true)
			p.send(c)
			select {
			case <-s.began:
			case <-time.After(time.Minute):
				t.Fatal("the store was not asked")
			}
			m.Fence(errors.New("generation 1 is over"))
			if a := p.receive(c); a.Errno != syscall.EIO {
				t.Errorf("%s: %v", c.Op, a.Errno)
			}
			if err := m.Quiesce(t.Context()); err != nil {
				t.Error(err)
			}
			if after := listing(t, s); after != before {
				t.Errorf("it has changed what is there:\n%s\nbefore:\n%s", after, before)
			}
		})
	}
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

// shell runs a script in a directory of a mount. The directory is entered by the
// shell, not by us.
func shell(t *testing.T, sh, dir, script string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), sh, "-c", "cd \"$1\" && "+script, "sh", dir).CombinedOutput()
	return string(out), err
}
