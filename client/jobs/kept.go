package jobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"holdfast/client/cluster"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

// keptRead bounds the directories that are looked into where a list has no limit: each means
// to read a file.
const keptRead = 1000

// listKept lists the jobs that have directories below one of a store, and are not known
// already: the newest so many, or keptRead if limit is 0. Jobs whose state cannot be read, or
// was never saved, are left out.
func listKept(ctx context.Context, s store.Store, dir string, known map[string]bool, limit int) ([]*proto.JobSummary, error) {
	entries, err := s.List(ctx, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the jobs in %s/%s: %w", s.URI(), dir, err)
	}
	entries = slices.DeleteFunc(entries, func(e store.Info) bool { return !e.IsDir() || !isID(e.Name) || known[e.Name] })
	slices.SortFunc(entries, func(a, b store.Info) int { return b.ModTime.Compare(a.ModTime) })
	if limit == 0 {
		limit = keptRead
	}
	found := make([]*proto.JobSummary, min(len(entries), limit))
	var g errgroup.Group
	g.SetLimit(stepsAtOnce)
	for i := range found {
		g.Go(func() error {
			j := inHistory(s, dir, entries[i].Name)
			if status, err := j.keptStatus(ctx); err == nil {
				found[i] = &proto.JobSummary{
					Id: j.ID, Name: status.Name, User: status.User, State: status.State, Why: status.Why, Step: status.Step,
					StartedUnixMs: status.StartedUnixMs, EndedUnixMs: status.EndedUnixMs,
				}
			}
			return nil
		})
	}
	_ = g.Wait() // none returns an error
	return slices.DeleteFunc(found, func(e *proto.JobSummary) bool { return e == nil }), ctx.Err()
}

// inHistory returns a job of which its directory is all that is known: dir/id of a store, which
// Close closes.
func inHistory(s store.Store, dir, id string) *Job {
	return &Job{ID: id, home: s, dir: path.Join(dir, id), history: true}
}

// keptStatus returns the state that the job's directory has, as that of a job that is over.
func (j *Job) keptStatus(ctx context.Context) (*proto.JobStatus, error) {
	s, err := j.readStatus(ctx)
	if err == nil && !s.State.Done() {
		finalize(s, proto.JobState_JOB_STATE_FAILED, "this is the state that was saved last, which does not say how the job ended")
	}
	return s, err
}

// isID reports whether a directory can be that of a job, by its name.
func isID(name string) bool {
	id, err := yarn.ParseApplicationID(name)
	return err == nil && id.String() == name || strings.HasPrefix(name, LocalPrefix)
}

// OpenHistory returns a job that has a directory in one of ended jobs, which a URI or a local
// path names. It is fs.ErrNotExist if the job has none there.
func OpenHistory(ctx context.Context, uri, id string) (*Job, error) {
	if !isID(id) || path.Base(id) != id {
		return nil, fmt.Errorf("%q is no job's id: %w", id, fs.ErrNotExist)
	}
	s, err := cluster.OpenDirectory(ctx, uri)
	if err != nil {
		return nil, err
	}
	j := inHistory(s, ".", id)
	if _, err := s.Stat(ctx, j.dir); err != nil {
		s.Close()
		return nil, fmt.Errorf("find the job %s in %s: %w", id, uri, err)
	}
	return j, nil
}
