package store_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"holdfast/hdfsckpt/store"
)

// counted counts what is opened in a store.
type counted struct {
	store.Store
	opened int
}

func (c *counted) Open(ctx context.Context, name string) (store.Reader, error) {
	c.opened++
	return c.Store.Open(ctx, name)
}

func TestTheLatestIsReadOnce(t *testing.T) {
	local, err := store.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	s := &counted{Store: local}
	var l store.Latest
	for i, x := range []struct {
		before func() error
		text   string
		opened int
	}{
		{func() error { return store.WriteFile(t.Context(), s, "f", []byte("one"), 0o600) }, "one", 1},
		{func() error { return nil }, "one", 1},
		{func() error { return s.Chtimes(t.Context(), "f", time.Unix(1, 0), time.Unix(1, 0)) }, "one", 2},
		{func() error { return store.WriteFile(t.Context(), s, "f", []byte("two"), 0o600) }, "two", 3},
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

// filling puts a file into a directory each time it is to be removed, as long as left says.
type filling struct {
	*store.Local
	dir  string
	left int
}

func (f *filling) Remove(ctx context.Context, name string) error {
	if name == f.dir && f.left > 0 {
		f.left--
		if err := store.WriteFile(ctx, f.Local, f.dir+"/late", nil, 0o600); err != nil {
			return err
		}
	}
	return f.Local.Remove(ctx, name)
}

// TestWhatComesMeanwhileIsRemoved: a directory is removed although something is put into it
// meanwhile; if that does not end, the error says so.
func TestWhatComesMeanwhileIsRemoved(t *testing.T) {
	for times, want := range map[int]error{1: nil, 2: nil, 1000: syscall.ENOTEMPTY} {
		local, err := store.NewLocal(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer local.Close()
		s := &filling{Local: local, dir: "job/journal", left: times}
		if err := store.MkdirAll(t.Context(), s, s.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := store.RemoveAll(t.Context(), s, "job"); !errors.Is(err, want) {
			t.Errorf("filled %d times: %v, want %v", times, err, want)
		}
		if there, err := store.Exists(t.Context(), s, "job"); err != nil || there != (want != nil) {
			t.Errorf("filled %d times: it is there: %v (%v)", times, there, err)
		}
	}
}

func TestAppendFile(t *testing.T) {
	s, err := store.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, text := range []string{"one ", "two"} {
		if err := store.AppendFile(t.Context(), s, "a/b/log", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := store.ReadFile(t.Context(), s, "a/b/log"); err != nil || string(text) != "one two" {
		t.Errorf("the file is %q (%v)", text, err)
	}
}
