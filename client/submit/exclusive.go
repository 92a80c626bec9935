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

	"golang.org/x/sync/errgroup"

	"holdfast/client"
	"holdfast/client/cluster"
	"holdfast/client/jobs"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
	"holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

// Notify reports something to the person who waits for a submission: one line, without
// a newline. It may be called concurrently.
type Notify func(note string)

// livenessFunc returns what is known of whether a job goes on.
type livenessFunc func(ctx context.Context, job string) jobs.Liveness

// opener opens a store that exists.
type opener func(ctx context.Context, uri string) (store.Store, error)

// remedy is for a directory that another job writes to; it is formatted with the checkpoint's
// path and its URI.
const remedy = "wait for its end, name another directory, or have both write there with --checkpoint %s=%s,share=true"

// checkExclusive refuses a checkpoint directory that another live job writes to, or one
// in which or below which such a directory lies, unless it is to be shared: each job would
// take the other's unfinished saves for torn checkpoints. Jobs that are known to have ended,
// and those of which nothing is known and that send no heartbeat for writers.LostAfter, are
// fenced off; before it waits for heartbeats, it says so through notify.
func checkExclusive(ctx context.Context, s store.Store, c *proto.CheckpointSpec, open opener, livenessOf livenessFunc, notify Notify) error {
	living, err := liveWriters(ctx, s, livenessOf, notify)
	if err != nil {
		return fmt.Errorf("cannot tell who writes to the checkpoint directory %s: %w", c.Uri, err)
	}
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
		living, err := liveAt(ctx, uri, open, livenessOf, notify)
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
func liveAt(ctx context.Context, uri string, open opener, livenessOf livenessFunc, notify Notify) ([]string, error) {
	s, err := open(ctx, uri)
	if err == nil {
		defer s.Close()
		var living []string
		if living, err = liveWriters(ctx, s, livenessOf, notify); err == nil || len(living) > 0 {
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
func liveWriters(ctx context.Context, s store.Store, livenessOf livenessFunc, notify Notify) ([]string, error) {
	all, err := writers.List(ctx, s)
	if err != nil {
		return nil, err
	}
	by := map[jobs.Liveness][]string{}
	for _, w := range all {
		job := proto.WritersJob(w)
		if !slices.ContainsFunc([]jobs.Liveness{jobs.Unknown, jobs.Alive, jobs.Ended}, func(f jobs.Liveness) bool { return slices.Contains(by[f], job) }) {
			f := livenessOf(ctx, job)
			by[f] = append(by[f], job)
		}
	}
	if err := writers.FenceJobs(ctx, s, by[jobs.Ended], proto.WritersJob); err != nil {
		return nil, err
	}
	if len(by[jobs.Alive]) > 0 {
		return by[jobs.Alive], nil
	}
	if unsure := by[jobs.Unknown]; len(unsure) > 0 {
		notify(fmt.Sprintf("%s has not ended its writing to the checkpoint directory %s: it runs, or was lost without a word; waiting for a sign of its life, until %s at the latest",
			strings.Join(unsure, ", "), s.URI(), time.Now().Add(writers.LostAfter).Format(time.TimeOnly)))
	}
	living, lost, err := writers.OtherJobs(ctx, s, "", proto.WritersJob, writers.LostAfter)
	if err != nil {
		return nil, err
	}
	for _, job := range lost { // one may have been submitted meanwhile
		if livenessOf(ctx, job) == jobs.Alive {
			living = append(living, job)
		}
	}
	lost = slices.DeleteFunc(lost, func(job string) bool { return slices.Contains(living, job) })
	return living, writers.FenceJobs(ctx, s, lost, proto.WritersJob)
}

// livenessByYARN returns what YARN knows of jobs.
func livenessByYARN(c *cluster.Cluster) livenessFunc {
	return func(ctx context.Context, job string) jobs.Liveness {
		id, err := yarn.ParseApplicationID(job)
		if err != nil {
			return jobs.Unknown
		}
		l, _ := jobs.YARNLiveness(ctx, c, id) // after an error, the heartbeat tells
		return l
	}
}

// livenessOnThisMachine returns what is known of local jobs. Of one on another machine with the same
// home directory, the heartbeat tells.
func livenessOnThisMachine(_ context.Context, job string) jobs.Liveness {
	return jobs.LocalLiveness(job)
}

// claims are the records of a job in the checkpoint directories that it is going to write to.
// While it waits for the container of its application master, which removes them, there is no
// other sign of it there.
type claims struct {
	job  string
	uris []string
	open opener
}

// claimAll records a job in those of its checkpoint directories that are not to be shared and
// whose URIs of reports. It refuses one to which another job writes that checkExclusive has not
// found, and leaves no record then.
func claimAll(ctx context.Context, spec *proto.JobSpec, job string, of func(uri string) bool, open opener) (*claims, error) {
	c := &claims{job: job, open: open}
	g, claiming := errgroup.WithContext(ctx)
	for _, cp := range spec.Checkpoints {
		if cp.Share || !of(cp.Uri) {
			continue
		}
		c.uris = append(c.uris, cp.Uri)
		g.Go(func() error { return c.claim(claiming, cp) })
	}
	err := g.Wait()
	if err != nil {
		c.remove(ctx)
	}
	return c, err
}

func (c *claims) writer() string { return proto.WriterName(c.job, proto.SubmissionContainer) }

func (c *claims) claim(ctx context.Context, cp *proto.CheckpointSpec) error {
	s, err := c.open(ctx, cp.Uri)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := store.MkdirAll(ctx, s, writers.Dir(c.writer()), 0o755); err != nil {
		return fmt.Errorf("cannot claim the checkpoint directory %s: %w", cp.Uri, err)
	}
	all, err := writers.List(ctx, s)
	if err != nil {
		return fmt.Errorf("cannot tell who writes to the checkpoint directory %s: %w", cp.Uri, err)
	}
	for _, w := range all {
		if other := proto.WritersJob(w); other != c.job {
			return client.Usagef("the job %s, which was submitted at the same time, writes to the checkpoint directory %s: "+remedy, other, cp.Uri, cp.Path, cp.Uri)
		}
	}
	return nil
}

// remove removes the records of a job that does not come to be.
func (c *claims) remove(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cluster.Timeout)
	defer cancel()
	for _, uri := range c.uris {
		if s, err := c.open(ctx, uri); err == nil {
			_ = store.RemoveDir(ctx, s, writers.Dir(c.writer())) // the error that led here is the one to tell
			s.Close()
		}
	}
}
