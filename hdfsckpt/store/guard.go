package store

import (
	"context"
	"time"

	"holdfast/internal/hadoop/hdfs"
	"holdfast/internal/hadoop/hdfs/write"
)

// Guarded returns a context for changes whose permission may end at any time: may is called right
// before each change is made, or sent to the server that makes it, from many goroutines, and
// must not block. After the context has ended, changes that were under way are not made later.
func Guarded(ctx context.Context, may func() error) context.Context { return hdfs.Guarded(ctx, may) }

// Committing returns a context for calls that must succeed lest what has been uploaded is lost:
// they wait for a NameNode that is away longer than others do. Renames always do.
func Committing(ctx context.Context) context.Context {
	return hdfs.WithLimit(ctx, write.CommitLimit)
}

// Tidying returns a context for the removal of a file that could not be given its name, perhaps
// since the NameNode is away: it waits for it no more than seconds.
func Tidying(ctx context.Context) context.Context { return hdfs.WithLimit(ctx, 10*time.Second) }

// SameStorage gives a directory, whose files are to be moved to another, the
// storage policy of that one. For stores without such policies it does nothing.
func SameStorage(ctx context.Context, s Store, as, dir string) error {
	if s, ok := s.(interface {
		sameStorage(ctx context.Context, as, dir string) error
	}); ok {
		return s.sameStorage(ctx, as, dir)
	}
	return nil
}
