package writers

import (
	"context"
	"time"

	"holdfast/hdfsckpt/store"
)

// Activity is who may be writing to a store while it is made safe to start from.
type Activity int

const (
	// Nobody writes.
	Nobody Activity = iota
	// Observers may write: tasks that are not those whose checkpoints are restored, as an
	// evaluator. What is broken and what happens to nothing for a while is not theirs.
	Observers
	// Tasks may write, and stay silent for long in the middle of a save.
	Tasks
)

const (
	// stillFor is how long nothing may have happened to what is broken for its writer to
	// be taken for dead while others run.
	stillFor  = 5 * time.Second
	stillPoll = 250 * time.Millisecond
)

// StaysBroken watches what is broken until nothing has happened to it for some seconds. It
// reports false as soon as it is broken no longer, or anything is being written, which may
// take long. look returns whether it is broken, and a text that changes with it.
func StaysBroken(ctx context.Context, s store.Store, look func() (broken bool, state string, err error)) (bool, error) {
	broken, before, err := look()
	if err != nil || !broken {
		return false, err
	}
	tick := time.NewTicker(stillPoll)
	defer tick.Stop()
	for since := time.Now(); time.Since(since) < stillFor; {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-tick.C:
		}
		broken, now, err := look()
		if err != nil || !broken {
			return false, err
		}
		if now != before {
			before, since = now, time.Now()
		}
		if writing, err := Writing(ctx, s); err != nil || writing {
			return false, err
		}
	}
	return true, nil
}
