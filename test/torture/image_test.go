package torture

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"holdfast/hdfsckpt/store"
)

// watched is a local store that calls before each of its changes, with all
// others held up: what its directory has then is what a crash would leave.
type watched struct {
	*store.Local
	mu     *sync.Mutex
	before func()
}

func (s watched) change(do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before()
	return do()
}

func (s watched) Mkdir(ctx context.Context, name string, perm fs.FileMode) error {
	return s.change(func() error { return s.Local.Mkdir(ctx, name, perm) })
}

func (s watched) Rename(ctx context.Context, from, to string) error {
	return s.change(func() error { return s.Local.Rename(ctx, from, to) })
}

func (s watched) RenameNew(ctx context.Context, from, to string) error {
	return s.change(func() error { return s.Local.RenameNew(ctx, from, to) })
}

func (s watched) Remove(ctx context.Context, name string) error {
	return s.change(func() error { return s.Local.Remove(ctx, name) })
}

func (s watched) Chtimes(ctx context.Context, name string, atime, mtime time.Time) error {
	return s.change(func() error { return s.Local.Chtimes(ctx, name, atime, mtime) })
}

func (s watched) Create(ctx context.Context, name string, perm fs.FileMode) (w store.Writer, err error) {
	err = s.change(func() error { w, err = s.Local.Create(ctx, name, perm); return err })
	return watchedWriter{w, s}, err
}

func (s watched) Stage(ctx context.Context, name string, perm fs.FileMode) (w store.Writer, err error) {
	err = s.change(func() error { w, err = s.Local.Stage(ctx, name, perm); return err })
	return watchedWriter{w, s}, err
}

type watchedWriter struct {
	store.Writer
	s watched
}

func (w watchedWriter) Write(b []byte) (n int, err error) {
	err = w.s.change(func() error { n, err = w.Writer.Write(b); return err })
	return n, err
}

func (w watchedWriter) Close() error { return w.s.change(w.Writer.Close) }
func (w watchedWriter) Abort() error { return w.s.change(w.Writer.Abort) }

// image copies a store's directory as it is. Files are linked, but for logs, which
// are changed in place.
func image(t testing.TB, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		if filepath.Ext(p) == ".log" {
			b, err := os.ReadFile(p)
			if err == nil {
				err = os.WriteFile(filepath.Join(to, rel), b, 0o644)
			}
			return err
		}
		return os.Link(p, filepath.Join(to, rel))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// memoryDir is a directory without a disk under it, if there is such a thing:
// a crash test syncs often.
func memoryDir(t testing.TB) string {
	t.Helper()
	for _, base := range []string{"/dev/shm", os.TempDir()} {
		dir, err := os.MkdirTemp(base, "holdfast-torture-")
		if err == nil {
			t.Cleanup(func() { os.RemoveAll(dir) })
			return dir
		}
	}
	t.Fatal("no directory can be made")
	return ""
}

func openLocal(t testing.TB, dir string) *store.Local {
	t.Helper()
	s, err := store.NewLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
