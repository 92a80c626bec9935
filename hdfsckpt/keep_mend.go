package hdfsckpt

import (
	"context"
	"fmt"
	"maps"
	"path"
	"time"

	"holdfast/hdfsckpt/store"
)

const (
	// stillFor is how long nothing may have happened to a checkpoint that is
	// being replaced for its program to be taken for dead while others run.
	stillFor  = 5 * time.Second
	stillPoll = 250 * time.Millisecond
)

// mend undoes replacing and removing that did not come to an end. While
// somebody may be at it (live), only what stays as it is for a while counts.
func mend(ctx context.Context, s store.Store, live bool) (back []string, err error) {
	slots, err := keptSlots(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, k := range slots {
		broken, err := k.broken(ctx)
		if err == nil && broken && live {
			broken, err = k.staysBroken(ctx)
		}
		if err != nil {
			return back, err
		}
		if broken {
			if err := k.bringBack(ctx); err != nil {
				return back, fmt.Errorf("bringing %s back: %w", k.name, err)
			}
			back = append(back, k.name)
			continue
		}
		whole, err := k.whole(ctx, true)
		if err == nil && !whole && !live {
			err = k.clear(ctx)
		}
		if err != nil {
			return back, err
		}
	}
	return back, nil
}

// broken tells that something visible is not whole, and would be with what is
// kept. Where nothing is visible, it was removed, unless `checkpoint` names it:
// then all of it has made room for what was to replace it.
func (k *keeping) broken(ctx context.Context) (bool, error) {
	if len(k.kept) == 0 {
		return false, nil
	}
	if len(k.visible) == 0 {
		if named, err := k.named(ctx); err != nil || !named {
			return false, err
		}
	}
	if whole, err := k.whole(ctx, false); err != nil || whole {
		return false, err
	}
	return k.whole(ctx, true)
}

// named tells whether the file `checkpoint` names it.
func (k *keeping) named(ctx context.Context) (bool, error) {
	if k.kind != TensorFlow {
		return false, nil
	}
	now, err := readSaved(ctx, k.s, k.dir)
	if err != nil {
		return false, err
	}
	state, err := ParseState(now.text)
	return err == nil && path.Base(state.Current) == path.Base(k.name), nil
}

// staysBroken watches it for a while.
func (k *keeping) staysBroken(ctx context.Context) (bool, error) {
	tick := time.NewTicker(stillPoll)
	defer tick.Stop()
	since := time.Now()
	for time.Since(since) < stillFor {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-tick.C:
		}
		now, err := lookAt(ctx, k.s, k.name, k.kind)
		if err != nil {
			return false, err
		}
		if !maps.EqualFunc(now.visible, k.visible, sameInfo) || !maps.EqualFunc(now.kept, k.kept, sameInfo) {
			since = time.Now()
		}
		*k = *now
		if broken, err := k.broken(ctx); err != nil || !broken {
			return false, err
		}
		if writing, err := anyWriting(ctx, k.s); err != nil || writing {
			return false, err // what comes next may take long
		}
	}
	return true, nil
}

func sameInfo(a, b store.Info) bool {
	return a.Size == b.Size && a.ModTime.Equal(b.ModTime) && a.Inode == b.Inode
}

// bringBackNewest puts back the newest checkpoint that is kept of a directory.
// It tells its name; "" if there is none.
func bringBackNewest(ctx context.Context, s store.Store, dir string) (string, error) {
	slots, err := keptSlots(ctx, s)
	if err != nil {
		return "", err
	}
	var best *keeping
	for _, k := range slots {
		if k.kind != TensorFlow || path.Dir(k.name) != dir {
			continue
		}
		whole, err := k.whole(ctx, true)
		if err != nil {
			return "", err
		}
		if whole && (best == nil || stepOf(k.name) > stepOf(best.name)) {
			best = k
		}
	}
	if best == nil {
		return "", nil
	}
	return best.name, best.bringBack(ctx)
}
