package hdfsckpt_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/store"
)

// counting counts how often indices are opened.
type counting struct {
	*store.Local
	mu      sync.Mutex
	indices map[string]int
}

func (c *counting) Open(ctx context.Context, name string) (store.Reader, error) {
	if strings.HasSuffix(name, ".index") {
		c.mu.Lock()
		c.indices[name]++
		c.mu.Unlock()
	}
	return c.Local.Open(ctx, name)
}

// TestRepairLooksSeldom: tasks wait for it, and each look into a checkpoint
// is several round trips.
func TestRepairLooksSeldom(t *testing.T) {
	for _, x := range []struct {
		name  string
		dirs  []string
		looks int
	}{
		{"all in the root", []string{""}, 1},
		{"five directories", []string{"", "a/", "b/", "b/c/", "d/"}, 2},
	} {
		t.Run(x.name, func(t *testing.T) {
			local, err := store.NewLocal(t.TempDir())
			must(t, err)
			s := &counting{Local: local, indices: map[string]int{}}
			defer s.Close()
			for _, dir := range x.dirs {
				putCheckpoint(t, s, dir+"model.ckpt-10", nil)
				putCheckpoint(t, s, dir+"model.ckpt-20", nil)
				putCheckpoint(t, s, dir+"model.ckpt-30", nil)
				must(t, store.WriteFile(context.Background(), s, dir+"checkpoint", stateFile("model.ckpt-40"), 0o644))
			}
			clear(s.indices)
			report, err := hdfsckpt.Repair(context.Background(), s, 0)
			must(t, err)
			if len(report.Pointed) != len(x.dirs) {
				t.Errorf("of %d files `checkpoint`, these were put right: %v", len(x.dirs), report)
			}
			if len(s.indices) != 3*len(x.dirs) {
				t.Errorf("it looked into %d indices", len(s.indices))
			}
			for name, n := range s.indices {
				if n > x.looks {
					t.Errorf("it looked %d times into %s", n, name)
				}
			}
		})
	}
}

// TestRepairRemovesWhatKilledWritersLeft: files that were being written are removed
// once they are old enough that nobody writes them, and nothing else is.
func TestRepairRemovesWhatKilledWritersLeft(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		ctx := t.Context()
		must(t, s.Mkdir(ctx, "d", 0o755))
		for _, name := range []string{"a", "d/b", strings.Repeat("n", 255)} {
			w, err := s.Create(ctx, name, 0o644)
			must(t, err)
			_, err = w.Write([]byte("x"))
			must(t, err) // and its writer is killed
		}
		put(t, s, "d/whole", []byte("x"))
		_, err := hdfsckpt.Repair(ctx, s, time.Hour)
		must(t, err)
		if n := temporaries(t, s); n != 3 {
			t.Errorf("of three files that were written a moment ago, %d are left", n)
		}
		_, err = hdfsckpt.Repair(ctx, s, 0)
		must(t, err)
		if n := temporaries(t, s); n != 0 {
			t.Errorf("%d files of killed writers are left", n)
		}
		if _, err := s.Stat(ctx, "d/whole"); err != nil {
			t.Error(err)
		}
	})
}

// temporaries counts the files that are being written, or were.
func temporaries(t *testing.T, s store.Store) int {
	t.Helper()
	n := 0
	for _, dir := range []string{".", "d"} {
		list, err := store.ListTemporary(t.Context(), s, dir)
		must(t, err)
		n += len(list)
	}
	return n
}
