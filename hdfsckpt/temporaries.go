package hdfsckpt

import (
	"context"
	"errors"
	"fmt"
	"path"
	"syscall"
)

// temporaryLister is a store that can list what List hides.
type temporaryLister interface {
	listTemporary(ctx context.Context, dir string) ([]Info, error)
}

// removeTemporaries removes those in a directory, and below it, of which dead
// says that nobody writes them.
func removeTemporaries(ctx context.Context, s Store, dir string, dead func(Info) bool) error {
	lister, ok := s.(temporaryLister)
	if !ok {
		return fmt.Errorf("cannot remove temporary files: the store %s cannot list them", s.URI())
	}
	var errs []error
	found, err := lister.listTemporary(ctx, dir)
	if errors.Is(err, syscall.ENOENT) {
		return nil // removed meanwhile, by its owner
	}
	if err != nil {
		return err
	}
	for _, f := range found {
		if f.IsDir() || !dead(f) {
			continue
		}
		if err := s.Remove(ctx, path.Join(dir, f.Name)); err != nil && !errors.Is(err, syscall.ENOENT) {
			errs = append(errs, err)
		}
	}
	entries, err := s.List(ctx, dir)
	if err != nil && !errors.Is(err, syscall.ENOENT) {
		errs = append(errs, err)
	}
	for _, e := range entries {
		if e.IsDir() {
			errs = append(errs, removeTemporaries(ctx, s, path.Join(dir, e.Name), dead))
		}
	}
	return errors.Join(errs...)
}

// RemoveDir removes a directory in which nothing is visible. The temporary
// files in it go with it, as those of a writer that was killed must not keep a
// directory from being removed; a writer that lives is told when it closes its
// file. ENOTEMPTY if there is anything visible.
func RemoveDir(ctx context.Context, s Store, dir string) error {
	err := s.Remove(ctx, dir)
	lister, ok := s.(temporaryLister)
	if !ok || !errors.Is(err, syscall.ENOTEMPTY) {
		return err
	}
	if visible, listErr := s.List(ctx, dir); listErr != nil || len(visible) > 0 {
		return err
	}
	hidden, listErr := lister.listTemporary(ctx, dir)
	if listErr != nil {
		return err
	}
	for _, f := range hidden {
		if err := s.Remove(ctx, path.Join(dir, f.Name)); err != nil && !errors.Is(err, syscall.ENOENT) {
			return err
		}
	}
	return s.Remove(ctx, dir)
}
