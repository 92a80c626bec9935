package inspect_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/hdfsckpt/inspect"
	"holdfast/hdfsckpt/store"
)

// watched is a store that counts how often its root is listed and how often it is closed; it
// can be made to hang.
type watched struct {
	store.Store
	lists, closes *atomic.Int32
	hangs         *atomic.Bool
}

func (w watched) List(ctx context.Context, dir string) ([]store.Info, error) {
	if dir == "." {
		w.lists.Add(1)
	}
	if w.hangs.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return w.Store.List(ctx, dir)
}

func (w watched) Close() error {
	w.closes.Add(1)
	return w.Store.Close()
}

// watch returns a browser of one directory with one checkpoint, whose store is watched.
func watch(t *testing.T) (*inspect.Browser, watched, *atomic.Int32) {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "step-7"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "step-7/COMMITTED"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	w := watched{lists: &atomic.Int32{}, closes: &atomic.Int32{}, hangs: &atomic.Bool{}}
	var opens atomic.Int32
	b := inspect.NewBrowser([]inspect.Directory{{URI: dir}}, func(ctx context.Context, uri string) (store.Store, error) {
		opens.Add(1)
		s, err := store.OpenExisting(ctx, uri, nil)
		return watched{s, w.lists, w.closes, w.hangs}, err
	})
	return b, w, &opens
}

// TestAListingIsForAll: however many look at a directory, it is listed once within a short
// time, and its store is closed when nobody does any longer.
func TestAListingIsForAll(t *testing.T) {
	b, w, opens := watch(t)
	synctest.Test(t, func(t *testing.T) {
		defer b.Close()
		look := func() {
			t.Helper()
			if found, err := b.List(t.Context(), 0); err != nil || len(found.Checkpoints) != 1 {
				t.Errorf("%+v, %v", found, err)
			}
		}
		var all sync.WaitGroup
		for range 10 {
			all.Go(look)
		}
		all.Wait()
		time.Sleep(time.Second)
		look()
		if n := w.lists.Load(); n != 1 {
			t.Errorf("listed %d times within a second", n)
		}
		time.Sleep(10 * time.Second)
		if e, err := b.Checkpoint(t.Context(), 0, "step-7"); err != nil || e.Name != "step-7" || w.lists.Load() != 1 {
			t.Errorf("for what is known already it is listed %d times: %+v, %v", w.lists.Load(), e, err)
		}
		look()
		if n := w.lists.Load(); n != 2 || opens.Load() != 1 || w.closes.Load() != 0 {
			t.Errorf("after ten seconds listed %d times, opened %d, closed %d", n, opens.Load(), w.closes.Load())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if w.closes.Load() != 1 {
			t.Errorf("after a minute the store was closed %d times", w.closes.Load())
		}
		look()
		if opens.Load() != 2 {
			t.Errorf("opened %d times", opens.Load())
		}
	})
	if w.closes.Load() != 2 {
		t.Errorf("at the end the store was closed %d times", w.closes.Load())
	}
}

// TestWhatIsSafe: what tasks continue from is known without waiting for a listing, which is made
// anew seldom however often it is asked for, and at once after a change.
func TestWhatIsSafe(t *testing.T) {
	b, w, _ := watch(t)
	w.hangs.Store(true)
	synctest.Test(t, func(t *testing.T) {
		defer b.Close()
		begin := time.Now()
		if s := b.Safe(0, time.Time{}); s != nil || !time.Now().Equal(begin) {
			t.Errorf("before it was listed %+v is said, after %v", s, time.Since(begin))
		}
		time.Sleep(31 * time.Second)
		if s := b.Safe(0, time.Time{}); s == nil || s.Err == nil || !strings.Contains(s.Err.Error(), "waits longer") {
			t.Errorf("of a directory that cannot be listed %+v is said", s)
		}
		w.hangs.Store(false)
		time.Sleep(3 * time.Minute) // a listing that took long is shown for longer
		b.Safe(0, time.Time{})
		synctest.Wait()
		s := b.Safe(0, time.Time{})
		if s == nil || s.Err != nil || s.From == nil || s.From.Name != "step-7" || s.Total != 1 {
			t.Fatalf("%+v is said", s)
		}
		// Its listing took no time here.
		lists := w.lists.Load()
		for range 600 {
			b.Safe(0, time.Time{})
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		if n := w.lists.Load() - lists; n < 3 || n > 7 {
			t.Errorf("within a minute it is listed %d times", n)
		}
		// What has changed since is looked at as soon as a listing is made anew at all.
		lists = w.lists.Load()
		changed := time.Now()
		for range 70 {
			b.Safe(0, changed)
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		if n := w.lists.Load() - lists; n != 1 || b.Safe(0, changed).At.Before(changed) {
			t.Errorf("after a change it is listed %d times within seven seconds", n)
		}
		if s := b.Safe(9, time.Time{}); s == nil || !inspect.IsMissing(s.Err) {
			t.Errorf("of a directory that there is not %+v is said", s)
		}
	})
}

// paused is a store in which one listing of checkpoints, once that was asked for, stops when it has looked
// at all that the program has written, until goOn is closed.
type paused struct {
	store.Store
	wanted       *atomic.Bool
	listed, goOn chan struct{}
}

func (p paused) List(ctx context.Context, dir string) ([]store.Info, error) {
	list, err := p.Store.List(ctx, dir)
	if strings.HasPrefix(dir, ".holdfast") && p.wanted.CompareAndSwap(true, false) {
		close(p.listed)
		<-p.goOn
	}
	return list, err
}

// TestAListingFromBeforeAChange: it is not shown after the change, whenever it has ended.
func TestAListingFromBeforeAChange(t *testing.T) {
	dir := plain(t)
	p := paused{wanted: &atomic.Bool{}, listed: make(chan struct{}), goOn: make(chan struct{})}
	b := inspect.NewBrowser([]inspect.Directory{{URI: dir}}, func(ctx context.Context, uri string) (store.Store, error) {
		s, err := store.OpenExisting(ctx, uri, nil)
		p.Store = s
		return p, err
	})
	defer b.Close()
	var other sync.WaitGroup
	plan, err := b.Execute(t.Context(), 0, inspect.PlanPrune(1, 0), func(string) bool {
		p.wanted.Store(true)
		other.Go(func() { _, _ = b.List(t.Context(), 0) }) // as a page that is open does
		<-p.listed
		return true
	})
	if err != nil || !plan.IsDone() {
		t.Fatal(err)
	}
	close(p.goOn)
	found, err := b.List(t.Context(), 0) // which may join the other
	if err != nil || len(found.Checkpoints) != 1 {
		t.Errorf("after the change there are %+v, %v", found.Checkpoints, err)
	}
	other.Wait()
	if found, err = b.List(t.Context(), 0); err != nil || len(found.Checkpoints) != 1 {
		t.Errorf("a moment later there are %+v, %v", found.Checkpoints, err)
	}
	if s := b.Safe(0, time.Time{}); s == nil || s.Total != 1 {
		t.Errorf("what is safe is %+v", s)
	}
}

// TestAListingEnds: one that takes too long ends with an error, which says what to do, and
// which those that come soon after it are told, too; who asked first may have left.
func TestAListingEnds(t *testing.T) {
	b, w, _ := watch(t)
	w.hangs.Store(true)
	synctest.Test(t, func(t *testing.T) {
		defer b.Close()
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.List(ctx, 0); err != context.DeadlineExceeded || time.Since(begin) != time.Second {
			t.Errorf("who waits for a second is told %v after %v", err, time.Since(begin))
		}
		_, err := b.List(t.Context(), 0)
		if took := time.Since(begin); err == nil || !strings.Contains(err.Error(), "yarn-submit ckpt ls") || took > time.Minute {
			t.Errorf("after %v: %v", took, err)
		}
		if _, again := b.List(t.Context(), 0); again != err || w.lists.Load() != 1 {
			t.Errorf("listed %d times: %v", w.lists.Load(), again)
		}
	})
}

// TestMissing: what is not there is told apart from what failed.
func TestMissing(t *testing.T) {
	b, _, _ := watch(t)
	defer b.Close()
	if _, err := b.List(t.Context(), 1); !inspect.IsMissing(err) {
		t.Error(err)
	}
	found, err := b.List(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := found.Find("step-8"); !inspect.IsMissing(err) {
		t.Error(err)
	}
	if e, err := found.Find("step-7"); err != nil || !e.Restart {
		t.Errorf("%+v, %v", e, err)
	}
}
