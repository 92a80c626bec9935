package hdfsckpt_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"holdfast/hdfsckpt"
)

// counted counts what is opened in a store.
type counted struct {
	hdfsckpt.Store
	opened int
}

func (c *counted) Open(ctx context.Context, name string) (hdfsckpt.Reader, error) {
	c.opened++
	return c.Store.Open(ctx, name)
}

func TestTheLatestIsReadOnce(t *testing.T) {
	local, err := hdfsckpt.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	s := &counted{Store: local}
	var l hdfsckpt.Latest
	for i, x := range []struct {
		before func() error
		text   string
		opened int
	}{
		{func() error { return hdfsckpt.WriteFile(t.Context(), s, "f", []byte("one"), 0o600) }, "one", 1},
		{func() error { return nil }, "one", 1},
		{func() error { return s.Chtimes(t.Context(), "f", time.Unix(1, 0), time.Unix(1, 0)) }, "one", 2},
		{func() error { return hdfsckpt.WriteFile(t.Context(), s, "f", []byte("two"), 0o600) }, "two", 3},
	} {
		err := x.before()
		if err == nil {
			err = l.Read(t.Context(), s, "f")
		}
		if err != nil || string(l.Text) != x.text || s.opened != x.opened {
			t.Errorf("%d: %q, %v, opened %d times", i, l.Text, err, s.opened)
		}
	}
	if err := s.Remove(t.Context(), "f"); err != nil {
		t.Fatal(err)
	}
	if err := l.Read(t.Context(), s, "f"); err == nil {
		t.Error("what is no longer there was read")
	}
}

// TestReadFileIsBounded: a file that is too large for what it is taken for is not
// read, and the others of its directory are listed as ever.
func TestReadFileIsBounded(t *testing.T) {
	dir := t.TempDir()
	s, err := hdfsckpt.NewLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, name := range []string{"checkpoint", "step-7/COMMITTED", "step-8/.metadata"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(filepath.Join(dir, name), 1<<40); err != nil { // no room is taken
			t.Fatal(err)
		}
		if _, err := hdfsckpt.ReadFile(t.Context(), s, name); !errors.Is(err, syscall.EFBIG) {
			t.Errorf("reading 1 TB of %s: %v", name, err)
		}
	}
	for _, name := range []string{"step-7/shard-0", "step-8/__0_0.distcp"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	putCheckpoint(t, s, "model.ckpt-3", nil)
	list, err := hdfsckpt.Checkpoints(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]hdfsckpt.State{}
	for _, c := range list {
		states[c.Name] = c.State
	}
	want := map[string]hdfsckpt.State{"model.ckpt-3": hdfsckpt.Complete, "step-7": hdfsckpt.Unchecked, "step-8": hdfsckpt.Unchecked}
	if !maps.Equal(states, want) {
		t.Errorf("listed are %v, want %v", states, want)
	}
}
