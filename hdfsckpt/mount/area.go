package mount

import (
	"context"
	"fmt"
	"sync"
	"time"

	"holdfast/hdfsckpt"
)

// area is the directory of the store for what this mount has not completed. It
// is made at the first write and never again: once it is gone, this mount has
// been shut out.
type area struct {
	mu  sync.Mutex
	dir *node // below the root, but in no one's sight
}

// get makes the directory if that was not done.
func (a *area) get(ctx context.Context, f *FS) (*node, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dir != nil {
		return a.dir, nil
	}
	name := hdfsckpt.WriterDir(f.o.Writer)
	if err := hdfsckpt.MkdirAll(ctx, f.store, name, 0o755); err != nil {
		return nil, fmt.Errorf("making the directory for what %s writes, which fails if it was shut out: %w", f.o.Writer, err)
	}
	a.dir = &node{dir: true, name: name, parent: f.root}
	return a.dir, nil
}

// removeLimit bounds the removal of an empty directory at the end.
const removeLimit = 5 * time.Second

// remove takes the directory away at the end. If somebody else has, or it is
// not empty, it is not ours to care for any more.
func (a *area) remove(f *FS) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dir == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), removeLimit)
	defer cancel()
	_ = f.store.Remove(ctx, a.dir.name)
}
