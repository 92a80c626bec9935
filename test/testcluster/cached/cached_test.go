package cached_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"holdfast/test/testcluster/cached"
)

func write(dir, text string) error {
	return os.WriteFile(filepath.Join(dir, "file"), []byte(text), 0o644)
}

func TestMadeOnce(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if _, ok := cached.Find("x"); ok {
		t.Error("found what nobody has made")
	}
	var made atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			dir, err := cached.Dir(t.Context(), "x", func(_ context.Context, dir string) error {
				made.Add(1)
				return write(dir, "whole")
			})
			if err != nil {
				t.Error(err)
				return
			}
			if text, err := os.ReadFile(filepath.Join(dir, "file")); string(text) != "whole" {
				t.Errorf("read %q, %v", text, err)
			}
		})
	}
	all.Wait()
	if n := made.Load(); n != 1 {
		t.Errorf("made %d times", n)
	}
	if _, ok := cached.Find("x"); !ok {
		t.Error("it is not found")
	}
}

func TestAFailureLeavesNothing(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	broken := errors.New("broken")
	_, err := cached.Dir(t.Context(), "x", func(_ context.Context, dir string) error {
		return errors.Join(write(dir, "half"), broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	if _, ok := cached.Find("x"); ok {
		t.Error("found what was not completed")
	}
}

// TestInterrupted finds the directory as a process leaves it that is killed.
func TestInterrupted(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	half := filepath.Join(cache, "holdfast", "x")
	if err := os.MkdirAll(half, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(half, "half"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	dir, err := cached.Dir(t.Context(), "x", func(_ context.Context, dir string) error { return write(dir, "whole") })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "half")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the remains are still there: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "file")); string(text) != "whole" {
		t.Errorf("read %q, %v", text, err)
	}
}

func TestWaitingHeedsTheContext(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	_, err := cached.Dir(t.Context(), "x", func(_ context.Context, dir string) error {
		cancel()
		_, err := cached.Dir(ctx, "x", func(context.Context, string) error { return errors.New("entered twice") })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the second one got %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
