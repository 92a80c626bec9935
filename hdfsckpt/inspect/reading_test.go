package inspect_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/hdfsckpt/inspect"
	"holdfast/hdfsckpt/store"
)

// gated is a store whose files can be read only after gate was closed.
type gated struct {
	store.Store
	gate chan struct{}
}

func (g gated) Open(ctx context.Context, name string) (store.Reader, error) {
	r, err := g.Store.Open(ctx, name)
	return gatedReader{r, ctx, g.gate}, err
}

type gatedReader struct {
	store.Reader
	ctx  context.Context
	gate chan struct{}
}

func (g gatedReader) ReadAt(b []byte, off int64) (int, error) {
	if off > 0 { // what is at the beginning is read to list
		select {
		case <-g.gate:
		case <-g.ctx.Done():
			return 0, g.ctx.Err()
		}
	}
	return g.Reader.ReadAt(b, off)
}

// plain makes a directory with two plain checkpoints, whose files are read in two pieces.
func plain(t *testing.T) (dir string) {
	dir = t.TempDir()
	for _, step := range []string{"step-1", "step-2"} {
		if err := os.Mkdir(filepath.Join(dir, step), 0o755); err != nil {
			t.Fatal(err)
		}
		for file, size := range map[string]int{"data": 3 << 20, "COMMITTED": 0} {
			if err := os.WriteFile(filepath.Join(dir, step, file), make([]byte, size), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// TestOneIsReadAtATime: a verification is started when it is asked for, one at a time, says how
// far it has come, and its result is remembered for a while.
func TestOneIsReadAtATime(t *testing.T) {
	dir := plain(t)
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		b := inspect.NewBrowser([]inspect.Directory{{URI: dir}}, func(ctx context.Context, uri string) (store.Store, error) {
			s, err := store.OpenExisting(ctx, uri, nil)
			return gated{s, gate}, err
		})
		defer b.Close()
		verify := func(step string, start bool) inspect.Reading[inspect.Verification] {
			t.Helper()
			e, err := b.Checkpoint(t.Context(), 0, step)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return b.Verify(ctx, 0, e, start)
		}
		if r := verify("step-1", false); r.Started {
			t.Errorf("it is started without being asked for: %+v", r)
		}
		if r := verify("step-1", true); !r.Started || r.Finished || r.Total != 3<<20 || r.Percent() != 33 {
			t.Errorf("while it is read it says %+v", r)
		}
		if r := verify("step-2", true); r.Started || !strings.Contains(r.Before, "step-1") {
			t.Errorf("another says %+v", r)
		}
		close(gate)
		if r := verify("step-1", false); !r.Finished || r.Err != nil || !r.Result.OK || r.Done != 3<<20 {
			t.Errorf("after it was read it says %+v", r)
		}
		if r := verify("step-2", true); !r.Finished || !r.Result.OK {
			t.Errorf("another says then %+v", r)
		}
		time.Sleep(10 * time.Minute)
		if r := verify("step-1", false); !r.Finished {
			t.Errorf("after ten minutes it says %+v", r)
		}
		time.Sleep(10 * time.Minute)
		if r := verify("step-1", false); r.Started {
			t.Errorf("after twenty minutes it says %+v", r)
		}
	})
}

// failing is a store whose files cannot be read for a while.
type failing struct {
	store.Store
	fails *atomic.Bool
}

func (f failing) Open(ctx context.Context, name string) (store.Reader, error) {
	if f.fails.Load() {
		return nil, errors.New("no DataNode answers")
	}
	return f.Store.Open(ctx, name)
}

// TestAReadingThatHasFailed: why it has is said for as long as pages look for the result, and then it can be
// read again.
func TestAReadingThatHasFailed(t *testing.T) {
	dir := plain(t)
	synctest.Test(t, func(t *testing.T) {
		var fails atomic.Bool
		b := inspect.NewBrowser([]inspect.Directory{{URI: dir}}, func(ctx context.Context, uri string) (store.Store, error) {
			s, err := store.OpenExisting(ctx, uri, nil)
			return failing{s, &fails}, err
		})
		defer b.Close()
		verify := func() inspect.Reading[inspect.Verification] {
			t.Helper()
			e, err := b.Checkpoint(t.Context(), 0, "step-1")
			if err != nil {
				t.Fatal(err)
			}
			return b.Verify(t.Context(), 0, e, true)
		}
		verify() // what is listed is known
		time.Sleep(time.Hour)
		if _, err := b.Checkpoint(t.Context(), 0, "step-1"); err != nil {
			t.Fatal(err)
		}
		fails.Store(true)
		if r := verify(); !r.Finished || r.Err == nil {
			t.Fatalf("where files cannot be read it says %+v", r)
		}
		fails.Store(false)
		time.Sleep(10 * time.Second)
		if r := verify(); r.Err == nil {
			t.Errorf("a page that looks for the result is told %+v", r)
		}
		time.Sleep(time.Minute)
		if r := verify(); r.Err != nil || !r.Finished || !r.Result.OK {
			t.Errorf("a minute later it says %+v", r)
		}
	})
}

// TestReadingEnds: with the browser, or after a limit, and then it says so.
func TestReadingEnds(t *testing.T) {
	dir := plain(t)
	synctest.Test(t, func(t *testing.T) {
		b := inspect.NewBrowser([]inspect.Directory{{URI: dir}}, func(ctx context.Context, uri string) (store.Store, error) {
			s, err := store.OpenExisting(ctx, uri, nil)
			return gated{s, nil}, err
		})
		e, err := b.Checkpoint(t.Context(), 0, "step-1")
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		r := b.Verify(t.Context(), 0, e, true)
		if took := time.Since(begin); r.Err == nil || !strings.Contains(r.Err.Error(), "limit") || took > time.Hour {
			t.Errorf("after %v it says %+v", took, r)
		}
		if e, err = b.Checkpoint(t.Context(), 0, "step-2"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if r := b.Verify(ctx, 0, e, true); !r.Started || r.Finished {
			t.Errorf("it says %+v", r)
		}
		begin = time.Now()
		b.Close()
		if took := time.Since(begin); took > time.Second {
			t.Errorf("closing the browser takes %v", took)
		}
	})
}
