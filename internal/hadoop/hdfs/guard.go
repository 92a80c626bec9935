package hdfs

import (
	"context"

	"holdfast/internal/hadoop/rpc"
)

// Guarded returns a context for changes whose permission may end (rpc.Guarded).
func Guarded(ctx context.Context, may func() error) context.Context { return rpc.Guarded(ctx, may) }

// Permitted returns the result of the function that Guarded was given.
func Permitted(ctx context.Context) error { return rpc.Permitted(ctx) }
