package hdfsckpt

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// What is read of checkpoints to look at them is bounded, however many are looked
// at, and whatever their files say.
const (
	// lookBudget is for all indexes and the like that this process looks at at
	// once, in bytes; each takes about lookCost times its size.
	lookBudget = 64 << 20
	lookCost   = 8
)

var looking = semaphore.NewWeighted(lookBudget)

// budgeted does what takes memory for a file of size bytes when there is room for it.
// One that takes more than the budget is looked at alone.
func budgeted(ctx context.Context, size int64, do func() error) error {
	n := min(max(size, 1), lookBudget/lookCost) * lookCost
	if err := looking.Acquire(ctx, n); err != nil {
		return err
	}
	defer looking.Release(n)
	return do()
}
