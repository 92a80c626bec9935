package hdfs

import (
	"context"

	"holdfast/internal/hadoop/rpc"
)

// Guarded returns a context for changes that somebody may lose the right to make
// (rpc.Guarded).
func Guarded(ctx context.Context, may func() error) context.Context { return rpc.Guarded(ctx, may) }

// Permitted asks what Guarded was given.
func Permitted(ctx context.Context) error { return rpc.Permitted(ctx) }
