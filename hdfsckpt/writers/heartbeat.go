package writers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"holdfast/hdfsckpt/store"
)

// A job's heartbeat is the modification time of a writer's directory: its master updates
// that of its own every HeartbeatEvery, and while no master answers, agents that write
// update theirs. Completing a file updates it too. A job none of whose writers' times
// change for LostAfter was lost without leaving in order. Clocks are not compared.
const (
	HeartbeatEvery = 5 * time.Second
	LostAfter      = 30 * time.Second
)

// pollInterval is the time between two looks at others' heartbeats.
const pollInterval = time.Second

// Heartbeat updates a writer's heartbeat. ENOENT for a writer that has not begun to
// write; one that was fenced off fails too.
func Heartbeat(ctx context.Context, s store.Store, writer string) error {
	dir := Dir(writer)
	i, err := s.Stat(ctx, dir)
	if err == nil && !i.IsDir() {
		err = fmt.Errorf("the writer %s was fenced off from %s", writer, s.URI())
	}
	if err == nil {
		now := time.Now()
		if !now.Truncate(time.Millisecond).After(i.ModTime) { // by a clock that is behind
			now = i.ModTime.Add(time.Second)
		}
		err = s.Chtimes(ctx, dir, now, now)
	}
	return err
}

// OtherJobs returns the other jobs that write to a store and are alive, and those that
// were lost without leaving in order. It watches them for timeout, usually LostAfter, or
// until all have sent a heartbeat. jobOf returns the job of a writer.
func OtherJobs(ctx context.Context, s store.Store, own string, jobOf func(writer string) string, timeout time.Duration) (alive, lost []string, err error) {
	look := func() (map[string]time.Time, error) { // by writer
		entries, err := s.List(ctx, writingDir)
		if err != nil && !store.Vanished(err) {
			return nil, fmt.Errorf("cannot list the writers of the checkpoint store %s: %w", s.URI(), err)
		}
		times := map[string]time.Time{}
		for _, e := range entries {
			if name, ok := store.EntryOf(e.Name); ok && e.IsDir() && jobOf(name) != own {
				times[name] = e.ModTime
			}
		}
		return times, nil
	}
	first, err := look()
	if err != nil || len(first) == 0 {
		return nil, nil, err
	}
	beating := map[string]bool{} // by job; false: not yet
	for w := range first {
		beating[jobOf(w)] = false
	}
	tick := time.NewTicker(min(pollInterval, timeout))
	defer tick.Stop()
	for begin := time.Now(); slices.Contains(slices.Collect(maps.Values(beating)), false) && time.Since(begin) < timeout; {
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-tick.C:
		}
		now, err := look()
		if err != nil {
			return nil, nil, err
		}
		for w, at := range now {
			if before, was := first[w]; !was || !at.Equal(before) {
				beating[jobOf(w)] = true
			}
		}
		for w := range first {
			if _, is := now[w]; !is && !slices.ContainsFunc(slices.Collect(maps.Keys(now)), func(o string) bool { return jobOf(o) == jobOf(w) }) {
				delete(beating, jobOf(w)) // it has ended in order meanwhile
			}
		}
	}
	for job, beats := range beating {
		if beats {
			alive = append(alive, job)
		} else {
			lost = append(lost, job)
		}
	}
	slices.Sort(alive)
	slices.Sort(lost)
	return alive, lost, nil
}

// FenceJobs fences off all writers of some jobs.
func FenceJobs(ctx context.Context, s store.Store, jobs []string, jobOf func(writer string) string) error {
	writers, err := List(ctx, s)
	for _, w := range writers {
		if slices.Contains(jobs, jobOf(w)) {
			err = errors.Join(err, Fence(ctx, s, w))
		}
	}
	return err
}
