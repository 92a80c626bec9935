package store

import (
	"context"

	"holdfast/internal/hadoop/hdfs"
)

// Guarded returns a context for changes that somebody may lose the right to make,
// while one is under way: may is asked again right before each change is made, or
// sent to where it is made, from many goroutines. It must not wait. Changes whose
// context ends do not happen later.
func Guarded(ctx context.Context, may func() error) context.Context { return hdfs.Guarded(ctx, may) }

// SameStorage gives a directory, whose files are to be moved to another, the
// storage policy of that one. Stores without such policies have nothing to do.
func SameStorage(ctx context.Context, s Store, as, dir string) error {
	if s, ok := s.(interface {
		sameStorage(ctx context.Context, as, dir string) error
	}); ok {
		return s.sameStorage(ctx, as, dir)
	}
	return nil
}
