package hdfsckpt

import (
	"context"
	"errors"
	"path"
	"slices"
	"syscall"

	"golang.org/x/sync/errgroup"

	"holdfast/hdfsckpt/store"
)

// askedAtOnce bounds the calls at a time for many directories.
const askedAtOnce = 8

// removeTemporaries removes the temporary files in a directory and below it that nobody
// is writing any more, which dead reports.
func removeTemporaries(ctx context.Context, s store.Store, dir string, dead func(store.Info) bool) error {
	all, err := store.ListAll(ctx, s, dir)
	if errors.Is(err, syscall.ENOENT) {
		return nil // removed meanwhile, by its owner
	}
	if err != nil {
		return err
	}
	if dir != "." && slices.ContainsFunc(all, func(i store.Info) bool { return i.Name == store.OwnDir }) {
		return nil // a store of its own, whose jobs remove theirs
	}
	errs := make([]error, len(all))
	var group errgroup.Group
	group.SetLimit(askedAtOnce)
	for i, f := range all {
		name := path.Join(dir, f.Name)
		switch {
		case f.IsDir() && f.Link: // what it leads to is seen to where that lies
		case f.IsDir() && !store.IsTemporary(f.Name):
			group.Go(func() error {
				errs[i] = removeTemporaries(ctx, s, name, dead)
				return nil
			})
		case f.IsDir() && dead(f): // made for a writer's directory, and never moved there
			if err := s.Remove(ctx, name); err != nil && !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.ENOTEMPTY) {
				errs[i] = err
			}
		case !f.IsDir() && store.IsTemporary(f.Name) && dead(f):
			if err := s.Remove(ctx, name); err != nil && !errors.Is(err, syscall.ENOENT) {
				errs[i] = err
			}
		}
	}
	_ = group.Wait() // errors are in errs
	return errors.Join(errs...)
}
