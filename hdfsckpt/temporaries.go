package hdfsckpt

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// fullLister is a store that can also list what List hides.
type fullLister interface {
	listAll(ctx context.Context, dir string) ([]Info, error)
}

// askedAtOnce bounds the calls at a time for many directories.
const askedAtOnce = 8

func listAll(ctx context.Context, s Store, dir string) ([]Info, error) {
	l, ok := s.(fullLister)
	if !ok {
		return nil, fmt.Errorf("the store %s cannot list temporary files", s.URI())
	}
	return l.listAll(ctx, dir)
}

// listTemporary lists what List hides.
func listTemporary(ctx context.Context, s Store, dir string) ([]Info, error) {
	all, err := listAll(ctx, s, dir)
	return slices.DeleteFunc(all, func(i Info) bool { return !IsTemporary(i.Name) }), err
}

// removeTemporaries removes those in a directory, and below it, of which dead
// says that nobody writes them.
func removeTemporaries(ctx context.Context, s Store, dir string, dead func(Info) bool) error {
	all, err := listAll(ctx, s, dir)
	if errors.Is(err, syscall.ENOENT) {
		return nil // removed meanwhile, by its owner
	}
	if err != nil {
		return err
	}
	errs := make([]error, len(all))
	var group errgroup.Group
	group.SetLimit(askedAtOnce)
	for i, f := range all {
		name := path.Join(dir, f.Name)
		switch {
		case f.IsDir() && !IsTemporary(f.Name):
			group.Go(func() error {
				errs[i] = removeTemporaries(ctx, s, name, dead)
				return nil
			})
		case f.IsDir() && dead(f): // made for a writer's directory, and never moved there
			if err := s.Remove(ctx, name); err != nil && !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.ENOTEMPTY) {
				errs[i] = err
			}
		case !f.IsDir() && IsTemporary(f.Name) && dead(f):
			if err := s.Remove(ctx, name); err != nil && !errors.Is(err, syscall.ENOENT) {
				errs[i] = err
			}
		}
	}
	_ = group.Wait() // they put theirs in errs
	return errors.Join(errs...)
}

// RemoveDir removes a directory in which nothing is visible. The temporary
// files in it go with it, as those of a writer that was killed must not keep a
// directory from being removed; a writer that lives is told when it closes its
// file. ENOTEMPTY if there is anything visible.
func RemoveDir(ctx context.Context, s Store, dir string) error {
	err := s.Remove(ctx, dir)
	if !errors.Is(err, syscall.ENOTEMPTY) {
		return err
	}
	hidden, listErr := listAll(ctx, s, dir)
	if listErr != nil || slices.ContainsFunc(hidden, func(i Info) bool { return !IsTemporary(i.Name) }) {
		return err
	}
	for _, f := range hidden {
		if err := s.Remove(ctx, path.Join(dir, f.Name)); err != nil && !errors.Is(err, syscall.ENOENT) {
			return err
		}
	}
	return s.Remove(ctx, dir)
}
