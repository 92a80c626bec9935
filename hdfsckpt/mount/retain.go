package mount

import (
	"context"
	"errors"
	"syscall"

	"holdfast/hdfsckpt/retain"
)

// replace renames in the store. Where that replaces a part of a complete checkpoint, the
// checkpoint is retained.
func (f *FS) replace(ctx context.Context, from, to string) error {
	if retain.Concerns(to) {
		// The usual case: nothing is there.
		if err := f.store.RenameNew(ctx, from, to); !errors.Is(err, syscall.EEXIST) {
			return err
		}
		f.retaining.Lock()
		defer f.retaining.Unlock()
		if err := retain.Replacing(ctx, f.store, to); err != nil {
			return err
		}
	}
	err := f.store.Rename(ctx, from, to)
	if err != nil && retain.Concerns(to) {
		err = errors.Join(err, retain.NotReplaced(ctx, f.store, to))
	}
	return err
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
