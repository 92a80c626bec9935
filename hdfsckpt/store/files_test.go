package store_test

import (
	"context"
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
