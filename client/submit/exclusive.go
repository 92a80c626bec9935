package submit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"holdfast/client"
	"holdfast/client/cluster"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
	"holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

// Notify reports something to the person who waits for a submission: one line, without
// a newline. It may be called concurrently.
type Notify func(note string)

// opener opens a store that exists.
type opener func(ctx context.Context, uri string) (store.Store, error)

// checkExclusive refuses a checkpoint directory that another live job writes to, or one
// in which or below which such a directory lies, unless it is to be shared: each job would
// take the other's unfinished saves for torn checkpoints. Jobs that are known to have ended
// (over), and those that send no heartbeat for writers.LostAfter, are fenced off; before it
// waits for heartbeats, it says so through notify.
func checkExclusive(ctx context.Context, s store.Store, c *proto.CheckpointSpec, open opener, over func(ctx context.Context, job string) bool, notify Notify) error {
	living, err := liveWriters(ctx, s, over, notify)
	if err != nil {
		return fmt.Errorf("cannot tell who writes to the checkpoint directory %s: %w", c.Uri, err)
	}
	const remedy = "wait for its end, name another directory, or have both write there with --checkpoint %s=%s,share=true"
	switch {
	case c.Share:
		return nil
	case len(living) > 0:
		return client.Usagef("the job %s writes to the checkpoint directory %s: "+remedy, strings.Join(living, ", "), c.Uri, c.Path, c.Uri)
	}
	near, err := overlapping(ctx, s, c.Uri)
	if err != nil {
		return fmt.Errorf("cannot tell who writes below the checkpoint directory %s: %w", c.Uri, err)
	}
	for _, uri := range near {
		living, err := liveAt(ctx, uri, open, over, notify)
		if err != nil {
			return fmt.Errorf("cannot tell who writes to %s, which overlaps the checkpoint directory %s: %w", uri, c.Uri, err)
		}
		if len(living) > 0 {
			return client.Usagef("the job %s writes to %s, which overlaps the checkpoint directory %s: "+remedy, strings.Join(living, ", "), uri, c.Uri, c.Path, c.Uri)
		}
	}
	return nil
}

// overlapping returns the URIs of the directories above a store, and of the stores below it
// that have writers.
func overlapping(ctx context.Context, s store.Store, uri string) ([]string, error) {
	dir, at := uri, func(dir string) string { return dir }
	if !path.IsAbs(uri) {
		u, err := url.Parse(uri)
		if err != nil {
			return nil, err
		}
		dir, at = u.Path, func(dir string) string { return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: dir}).String() }
	}
	var near []string
	for above := path.Clean(dir); above != "/"; {
		above = path.Dir(above)
		near = append(near, at(above))
	}
	below, err := writers.Nested(ctx, s)
	for name := range below {
		near = append(near, at(path.Join(dir, name)))
	}
	return near, err
}

// liveAt is liveWriters for the store at a URI; none where this user may not see them.
func liveAt(ctx context.Context, uri string, open opener, over func(ctx context.Context, job string) bool, notify Notify) ([]string, error) {
	s, err := open(ctx, uri)
	if err == nil {
		defer s.Close()
		var living []string
		if living, err = liveWriters(ctx, s, over, notify); err == nil || len(living) > 0 {
			return living, nil
		}
	}
	if store.Vanished(err) || errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	return nil, err
}

// liveWriters returns the live jobs that write to a store, after it has fenced off the
// others.
func liveWriters(ctx context.Context, s store.Store, over func(ctx context.Context, job string) bool, notify Notify) ([]string, error) {
	all, err := writers.List(ctx, s)
	if err != nil {
		return nil, err
	}
	var ended, unsure []string
	for _, w := range all {
		job := proto.WritersJob(w)
		switch {
		case slices.Contains(ended, job) || slices.Contains(unsure, job):
		case over(ctx, job):
			ended = append(ended, job)
		default:
			unsure = append(unsure, job)
		}
	}
	if err := writers.FenceJobs(ctx, s, ended, proto.WritersJob); err != nil {
		return nil, err
	}
	if len(unsure) > 0 {
		notify(fmt.Sprintf("%s has not ended its writing to the checkpoint directory %s: it runs, or was lost without a word; waiting for a sign of its life, until %s at the latest",
			strings.Join(unsure, ", "), s.URI(), time.Now().Add(writers.LostAfter).Format(time.TimeOnly)))
	}
	living, lost, err := writers.OtherJobs(ctx, s, "", proto.WritersJob, writers.LostAfter)
	if err != nil {
		return nil, err
	}
	return living, writers.FenceJobs(ctx, s, lost, proto.WritersJob)
}

// ended returns a function that reports whether, according to YARN, a job has ended.
func ended(c *cluster.Cluster) func(ctx context.Context, job string) bool {
	return func(ctx context.Context, job string) bool {
		id, err := yarn.ParseApplicationID(job)
		if err != nil {
			return false
		}
		r, err := c.RM.Report(ctx, id)
		return err == nil && r.State.Done()
	}
}
