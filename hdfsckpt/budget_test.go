package hdfsckpt

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"holdfast/hdfsckpt/store"
)

// TestLooksHaveOneBudget: however many look into checkpoints at once, and however
// large their files are, they take no more together than one budget.
func TestLooksHaveOneBudget(t *testing.T) {
	for name, x := range map[string]struct {
		size int64
		fit  int
	}{"four at once": {lookBudget / lookCost / 4, 4}, "a larger one alone": {1 << 40, 1}} {
		t.Run(name, func(t *testing.T) {
			in, leave := make(chan struct{}, x.fit), make(chan struct{})
			var wg sync.WaitGroup
			for range x.fit {
				wg.Go(func() {
					if err := budgeted(t.Context(), x.size, func() error { in <- struct{}{}; <-leave; return nil }); err != nil {
						t.Error(err)
					}
				})
			}
			for range x.fit {
				<-in
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			if err := budgeted(ctx, 1, func() error { return nil }); err == nil {
				t.Errorf("beside %d of %d bytes there is room for one more", x.fit, x.size)
			}
			cancel()
			close(leave)
			if err := budgeted(t.Context(), 1, func() error { return nil }); err != nil {
				t.Error(err)
			}
			wg.Wait()
		})
	}
}

// TestManifestsAreReadOnce: who keeps a store open reads each manifest once, however
// often it looks.
func TestManifestsAreReadOnce(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	open := func() *store.Local {
		t.Helper()
		s, err := store.NewLocal(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	state := func(s store.Store) State {
		t.Helper()
		list, err := Checkpoints(ctx, s)
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		return list[0].State
	}
	s := open()
	err := store.MkdirAll(ctx, s, "step-10", 0o755)
	if err == nil {
		err = store.WriteFile(ctx, s, "step-10/"+Committed, nil, 0o644)
	}
	var list []Checkpoint
	if err == nil {
		list, err = Checkpoints(ctx, s)
	}
	if err == nil {
		_, err = Seal(ctx, s, list[0], Meta{}, nil)
	}
	if err != nil || state(s) != Sealed {
		t.Fatal(err)
	}
	// The same file by all that a list says of it, and not what it was.
	name := filepath.Join(dir, manifestName("step-10"))
	i, err := os.Stat(name)
	if err == nil {
		err = os.WriteFile(name, bytes.Repeat([]byte("x"), int(i.Size())), 0o644)
	}
	if err == nil {
		err = os.Chtimes(name, i.ModTime(), i.ModTime())
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := state(s); got != Sealed {
		t.Errorf("its manifest was read again: it is %s", got)
	}
	if got := state(open()); got != Complete {
		t.Errorf("the test tests nothing: it is %s", got)
	}
}
