package mount_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/hdfsckpt/mount"
	"holdfast/hdfsckpt/store"

	"golang.org/x/sys/unix"
)

func init() {
	// A process that mounts a store and serves it, as an agent, to be killed.
	more["serve"] = func(c call, _ *answer) error {
		s, err := store.Open(context.Background(), c.Path, nil)
		if err != nil {
			return err
		}
		fs, err := mount.New(s, mount.Options{SpoolDir: filepath.Dir(c.To), FlushEvery: 50 * time.Millisecond})
		if err != nil {
			return err
		}
		return fs.Serve(c.To)
	}
}

// save is a save of a checkpoint, one operation after the other: shards, index,
// then the file that names it. It stops before operation cut and reports whether
// it came to its end.
func save(p *process, dir string, step, cut int) bool {
	prefix := fmt.Sprintf("model.ckpt-%d", step)
	var fd int
	var ops []func()
	file := func(name string, size int64) {
		ops = append(ops,
			func() { fd = p.open(filepath.Join(dir, name), forNewRW) },
			func() { p.do(call{Op: "write", Fd: fd, Size: size / 2, Fill: byte(step)}) },
			func() { p.do(call{Op: "pwrite", Fd: fd, Off: size / 2, Size: size - size/2, Fill: byte(step)}) },
			func() { p.close(fd) })
	}
	rename := func(from, to string) {
		ops = append(ops, func() {
			p.do(call{Op: "rename", Path: filepath.Join(dir, from), To: filepath.Join(dir, to)})
		})
	}
	ops = append(ops, func() { p.do(call{Op: "mkdir", Path: filepath.Join(dir, prefix+"_temp"), Mode: 0o755}) })
	for i := range 2 {
		part := fmt.Sprintf("%s_temp/part-%d", prefix, i)
		file(part, shardSize)
		rename(part, fmt.Sprintf("%s.data-%d", prefix, i))
	}
	// Over the one that is in use, as a save at the restored step does.
	file(prefix+".index", indexSize)
	ops = append(ops, func() { p.do(call{Op: "rmdir", Path: filepath.Join(dir, prefix+"_temp")}) },
		func() {
			fd = p.open(filepath.Join(dir, "checkpoint.tmp"), forNew)
			p.write(fd, prefix)
			p.close(fd)
		})
	rename("checkpoint.tmp", "checkpoint")
	for _, op := range ops[:min(cut, len(ops))] {
		op()
	}
	return cut >= len(ops)
}

const shardSize, indexSize = 300 << 10, 9 << 10

// TestServerIsKilledAnywhere ends the serving process at each operation of a
// save, twice over: a first save, and one that replaces it at the same step.
// What is left is never a half-written file.
func TestServerIsKilledAnywhere(t *testing.T) {
	for _, former := range []bool{false, true} {
		cuts := 0
		for cut, end := 0, false; !end; cut++ {
			store := t.TempDir()
			dir := filepath.Join(t.TempDir(), "mnt")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			server, p := newProcess(t), newProcess(t)
			server.do(call{Op: "serve", Path: store, To: dir})
			if former && !save(p, dir, 7, 1000) {
				t.Fatal("the first save did not end")
			}
			end = save(p, dir, 7, cut)
			server.kill()
			unix.Unmount(dir, unix.MNT_DETACH)
			checkStore(t, store, fmt.Sprintf("former %v, cut %d", former, cut), former || end)
			p.kill()
			cuts++
		}
		t.Logf("former save there: %v: %d cuts, each left only whole files", former, cuts)
	}
}

func checkStore(t *testing.T, store, when string, named bool) {
	t.Helper()
	s := localStore(t, store)
	files, err := s.List(t.Context(), ".")
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]int64)
	for _, f := range files {
		found[f.Name] = f.Size
		switch {
		case strings.Contains(f.Name, ".data-") && f.Size != shardSize,
			strings.HasSuffix(f.Name, ".index") && f.Size != indexSize:
			t.Errorf("%s: %s has %d bytes", when, f.Name, f.Size)
		}
	}
	if _, ok := found["checkpoint"]; ok != named {
		t.Errorf("%s: checkpoint there: %v, want %v", when, ok, named)
	}
	if named && (found["model.ckpt-7.data-0"] == 0 || found["model.ckpt-7.data-1"] == 0 || found["model.ckpt-7.index"] == 0) {
		t.Errorf("%s: the named checkpoint is not whole: %v", when, found)
	}
}
