package mount_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"holdfast/hdfsckpt/mount"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/proc"

	"golang.org/x/sys/unix"
)

// armed is set in a server that is to be stopped at the next look at its lease.
var armed atomic.Bool

func init() {
	// A server whose lease ends while it is stopped, right after it has found that
	// the lease still lasts.
	more["serve zombie"] = func(c call, _ *answer) error {
		var hadoop *conf.Conf
		if len(c.Data) > 0 {
			var err error
			if hadoop, err = conf.Load(string(c.Data)); err != nil {
				return err
			}
		}
		s, err := store.Open(context.Background(), c.Path, hadoop)
		if err != nil {
			return err
		}
		var over atomic.Bool
		fs, err := mount.New(s, mount.Options{SpoolDir: filepath.Dir(c.To), Writer: "zombie", Lease: func() error {
			if over.Load() {
				return errors.New("the lease is over")
			}
			if armed.CompareAndSwap(true, false) {
				over.Store(true)
				_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
			}
			return nil
		}})
		if err != nil {
			return err
		}
		return fs.Serve(c.To)
	}
	more["arm"] = func(call, *answer) error { armed.Store(true); return nil }
}

func TestZombieChangesNothing(t *testing.T) {
	zombieChangesNothing(t, func(t *testing.T) (string, string, func() store.Store) {
		dir := t.TempDir()
		return dir, "", func() store.Store { return localStore(t, dir) }
	})
}

// zombieChangesNothing stops an agent after it has found its lease good for an
// operation, and before it has sent anything of it. Its replacement starts
// meanwhile. When the agent goes on, nothing that others see changes.
func zombieChangesNothing(t *testing.T, open func(t *testing.T) (uri, confDir string, store func() store.Store)) {
	for _, c := range []struct {
		name string
		do   func(p *process, dir string, fd int) error
	}{
		{"unlink", func(p *process, dir string, _ int) error {
			_, err := p.try(call{Op: "unlink", Path: dir + "/model.ckpt-7.index"})
			return err
		}},
		{"unlink what is no checkpoint's", func(p *process, dir string, _ int) error {
			_, err := p.try(call{Op: "unlink", Path: dir + "/a"})
			return err
		}},
		{"rename", func(p *process, dir string, _ int) error {
			_, err := p.try(call{Op: "rename", Path: dir + "/a", To: dir + "/c"})
			return err
		}},
		{"rename over", func(p *process, dir string, _ int) error {
			_, err := p.try(call{Op: "rename", Path: dir + "/a", To: dir + "/checkpoint"})
			return err
		}},
		{"close", func(p *process, _ string, fd int) error {
			_, err := p.try(call{Op: "close", Fd: fd})
			return err
		}},
		{"mkdir", func(p *process, dir string, _ int) error {
			_, err := p.try(call{Op: "mkdir", Path: dir + "/d", Mode: 0o755})
			return err
		}},
		{"chmod", func(p *process, dir string, _ int) error {
			_, err := p.try(call{Op: "chmod", Path: dir + "/a", Mode: 0o600})
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			uri, confDir, openStore := open(t)
			dir := filepath.Join(t.TempDir(), "mnt")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			server, p := newProcess(t), newProcess(t)
			server.do(call{Op: "serve zombie", Path: uri, To: dir, Data: []byte(confDir)})
			t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
			for _, name := range []string{"a", "checkpoint", "model.ckpt-7.index"} {
				p.put(filepath.Join(dir, name), "content of "+name)
			}
			fd := p.open(filepath.Join(dir, "checkpoint"), forNew)
			p.write(fd, "the zombie's")
			server.do(call{Op: "arm"})
			result := make(chan error, 1)
			go func() { result <- c.do(p, dir, fd) }()
			pid := server.cmd.Process.Pid
			eventually(t, "the server is stopped", func() bool {
				stat, err := proc.ReadStat(pid)
				return err == nil && stat.State == 'T'
			})
			s := openStore()
			if err := writers.Fence(t.Context(), s, "zombie"); err != nil {
				t.Fatal(err)
			}
			if err := store.WriteFile(t.Context(), s, "checkpoint", []byte("the replacement's"), 0o644); err != nil {
				t.Fatal(err)
			}
			before := listing(t, s)
			if err := unix.Kill(pid, unix.SIGCONT); err != nil {
				t.Fatal(err)
			}
			if err := <-result; err == nil {
				t.Error("the zombie was told that it has done it")
			}
			if after := listing(t, s); after != before {
				t.Errorf("the zombie has changed what is there:\n%s\nbefore:\n%s", after, before)
			}
		})
	}
}

func listing(t *testing.T, s store.Store) (text string) {
	t.Helper()
	all, err := s.List(t.Context(), ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		if i.Name != store.OwnDir {
			text += fmt.Sprintf("%s %v %d %d\n", i.Name, i.Mode, i.Size, i.Inode)
		}
	}
	return text
}
