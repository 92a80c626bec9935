package hdfsckpt_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
)

func jobOf(writer string) string {
	job, _, _ := strings.Cut(writer, ".")
	return job
}

// TestOtherJobs: a job lives of which one writer sends heartbeats, however old
// the others' are, and another is lost, however young.
func TestOtherJobs(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		ctx := context.Background()
		for _, w := range []string{"own.c1", "lives.am", "lives.c1", "lost.am", "lost.c2"} {
			must(t, store.MkdirAll(ctx, s, writers.Dir(w), 0o755))
		}
		must(t, s.Chtimes(ctx, writers.Dir("lives.am"), old, old))
		var wg sync.WaitGroup
		beating, stop := context.WithCancel(ctx)
		wg.Go(func() {
			for beating.Err() == nil {
				if err := writers.Heartbeat(beating, s, "lives.am"); err != nil && beating.Err() == nil {
					t.Error(err)
				}
			}
		})
		living, lost, err := writers.OtherJobs(ctx, s, "own", jobOf, 3*time.Second)
		stop()
		wg.Wait()
		if got := fmt.Sprint(living, lost, err); got != "[lives] [lost] <nil>" {
			t.Error(got)
		}
		must(t, writers.FenceJobs(ctx, s, lost, jobOf))
		all, err := writers.List(ctx, s)
		if got := fmt.Sprint(all, err); got != "[lives.am lives.c1 own.c1] <nil>" {
			t.Error(got)
		}
		if err := writers.Heartbeat(ctx, s, "lost.am"); err == nil || errors.Is(err, syscall.ENOENT) {
			t.Errorf("one that was fenced off sends heartbeats: %v", err)
		}
	})
}
