package mount

import (
	"context"
	"errors"
	"syscall"

	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/retain"
)

// replace renames in the store. Where that replaces a part of a complete checkpoint, the
// checkpoint is retained.
func (f *FS) replace(ctx context.Context, from, to string) error {
	if retain.Concerns(to) {
		// The usual case: nothing is there.
		if err := f.store.RenameNew(ctx, from, to); !errors.Is(err, syscall.EEXIST) {
			if err == nil {
				f.replaced(ctx, to)
			}
			return err
		}
		f.retaining.Lock()
		defer f.retaining.Unlock()
		if err := retain.Replacing(ctx, f.store, to); err != nil {
			return err
		}
		f.noteReplacing(to)
	}
	err := f.store.Rename(ctx, from, to)
	if err != nil && retain.Concerns(to) {
		err = errors.Join(err, retain.NotReplaced(ctx, f.store, to))
	}
	return err
}

// noteReplacing notes that a file of a checkpoint is being replaced.
func (f *FS) noteReplacing(name string) {
	owner, _ := formats.OwnerOf(name)
	if owner.Checkpoint == name { // all of it
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.replacing == nil {
		f.replacing = map[string]bool{}
	}
	f.replacing[owner.Checkpoint] = true
}

// replaced is called after a file has got a name that was free. It asks the store only
// about checkpoints of which this mount has replaced files. An error is logged: the file
// has its name already.
func (f *FS) replaced(ctx context.Context, name string) {
	owner, _ := formats.OwnerOf(name)
	f.mu.Lock()
	replacing := f.replacing[owner.Checkpoint]
	f.mu.Unlock()
	if !replacing {
		return
	}
	f.retaining.Lock()
	defer f.retaining.Unlock()
	if err := retain.Replaced(ctx, f.store, name); err != nil {
		f.fail("retaining", name, err)
	}
}

// retain reports whether a file that is to be removed was retained instead.
func (f *FS) retain(ctx context.Context, name string) (bool, error) {
	if !retain.Concerns(name) {
		return false, nil
	}
	f.retaining.Lock()
	defer f.retaining.Unlock()
	return retain.Removing(ctx, f.store, name)
}
