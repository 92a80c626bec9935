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

// A job's heartbeat is the modification time of a writer's directory: its master's,
// which it makes for that, every HeartbeatEvery, and while no master answers those of
// its agents that write. What a writer completes changes that time too. A job of
// which no writer's time changes for LostAfter was lost without a word. Clocks are
// not compared.
const (
	HeartbeatEvery = 5 * time.Second
	LostAfter      = 30 * time.Second
)

// heartbeatLook is the time between two looks at others' heartbeats.
const heartbeatLook = time.Second

// Heartbeat updates a writer's heartbeat. One that has not begun to write, or was
// shut out, gives none (ENOENT, ENOTDIR).
func Heartbeat(ctx context.Context, s store.Store, writer string) error {
	dir := Dir(writer)
	i, err := s.Stat(ctx, dir)
	if err == nil && !i.IsDir() {
		err = fmt.Errorf("the writer %s was shut out of %s", writer, s.URI())
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

// OtherJobs tells which other jobs write to a store and live, and which were lost
// without a word: it watches for as long as patience, LostAfter as a rule, or until
// all have sent a heartbeat. jobOf tells whose a writer is.
func OtherJobs(ctx context.Context, s store.Store, own string, jobOf func(writer string) string, patience time.Duration) (living, lost []string, err error) {
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
	moved := map[string]bool{} // by job; false: not yet
	for w := range first {
		moved[jobOf(w)] = false
	}
	tick := time.NewTicker(min(heartbeatLook, patience))
	defer tick.Stop()
	for begin := time.Now(); slices.Contains(slices.Collect(maps.Values(moved)), false) && time.Since(begin) < patience; {
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
				moved[jobOf(w)] = true
			}
		}
		for w := range first {
			if _, is := now[w]; !is && !slices.ContainsFunc(slices.Collect(maps.Keys(now)), func(o string) bool { return jobOf(o) == jobOf(w) }) {
				delete(moved, jobOf(w)) // it has ended in order meanwhile
			}
		}
	}
	for job, lives := range moved {
		if lives {
			living = append(living, job)
		} else {
			lost = append(lost, job)
		}
	}
	slices.Sort(living)
	slices.Sort(lost)
	return living, lost, nil
}

// FenceJobs shuts out all writers of some jobs.
func FenceJobs(ctx context.Context, s store.Store, jobs []string, jobOf func(writer string) string) error {
	writers, err := List(ctx, s)
	for _, w := range writers {
		if slices.Contains(jobs, jobOf(w)) {
			err = errors.Join(err, Fence(ctx, s, w))
		}
	}
	return err
}
