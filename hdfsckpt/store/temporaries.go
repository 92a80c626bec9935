package store

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"syscall"
)

// fullLister is a store that can also list temporary files.
type fullLister interface {
	listAll(ctx context.Context, dir string) ([]Info, error)
}

// ListAll lists a directory with its temporary files, and links that lead nowhere.
func ListAll(ctx context.Context, s Store, dir string) ([]Info, error) {
	l, ok := s.(fullLister)
	if !ok {
		return nil, fmt.Errorf("the store %s cannot list temporary files", s.URI())
	}
	return l.listAll(ctx, dir)
}

// ListTemporary lists only the temporary files of a directory.
func ListTemporary(ctx context.Context, s Store, dir string) ([]Info, error) {
	all, err := ListAll(ctx, s, dir)
	return slices.DeleteFunc(all, func(i Info) bool { return !IsTemporary(i.Name) }), err
}

// RemoveDir removes a directory in which nothing is visible. The temporary
// files in it go with it, as those of a writer that was killed must not keep a
// directory from being removed; a writer that lives gets an error when it closes its
// file. ENOTEMPTY if there is anything visible.
func RemoveDir(ctx context.Context, s Store, dir string) error {
	err := s.Remove(ctx, dir)
	if !errors.Is(err, syscall.ENOTEMPTY) {
		return err
	}
	hidden, listErr := ListAll(ctx, s, dir)
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
