package faults

import (
	"context"
	"fmt"
	"strings"
	"time"

	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/conf"
)

// saveTime is about how long the parts of a checkpoint take to be written and put
// together.
const saveTime = 100 * time.Millisecond

// awaitSave returns in the middle of a save: parts of a checkpoint are being written.
func (j *job) awaitSave(ctx context.Context) error {
	c, err := conf.Load(j.Cluster.ConfDir())
	if err != nil {
		return err
	}
	store, err := store.Open(ctx, j.store, c)
	if err != nil {
		return err
	}
	defer store.Close()
	before := map[string]bool{}
	for first, end := true, time.Now().Add(roundLimit); ; first = false {
		list, err := store.List(ctx, ".")
		if err != nil {
			return err
		}
		begun := false
		for _, e := range list {
			// Of a save that did not end, TensorFlow's directory may be left.
			if e.IsDir() && strings.HasSuffix(e.Name, "_temp") && !before[e.Name] {
				before[e.Name], begun = true, !first
			}
		}
		if begun {
			wait(ctx, time.Duration(j.rng.Int64N(int64(saveTime))))
			return ctx.Err()
		}
		if time.Now().After(end) {
			return fmt.Errorf("the job began no save within %s", roundLimit)
		}
		if !wait(ctx, 2*time.Millisecond) {
			return ctx.Err()
		}
	}
}
