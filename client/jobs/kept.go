package jobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	pb "google.golang.org/protobuf/proto"

	"holdfast/client/cluster"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

// keptRead is how many directories of jobs are looked into, the newest of each place.
const keptRead = 1000

// Memory remembers what the directories of jobs that are over say, so that a list that is made
// again reads only those that have changed, and those of jobs that go on. The zero value remembers nothing yet, and nil never
// does. It may be used concurrently.
type Memory struct {
	mu   sync.Mutex
	seen map[string]remembered // by URI: of a directory, or of the file with the state of a job that the ResourceManager knows
}

type remembered struct {
	changed time.Time         // the directory; of such a file, when the job ended
	summary *proto.JobSummary // nil: there is nothing to show
}

func (m *Memory) recall(uri string, changed time.Time) (r remembered, known bool) {
	if m == nil {
		return r, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r, known = m.seen[uri]
	return r, known && r.changed.Equal(changed)
}

func (m *Memory) remember(uri string, r remembered) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen == nil {
		m.seen = map[string]remembered{}
	}
	m.seen[uri] = r
}

// listKept lists the jobs that have directories below one of a store, and are not known
// already: of the keptRead newest. Jobs whose state cannot be read, or was never saved, are
// left out.
func listKept(ctx context.Context, s store.Store, dir string, known map[string]bool, memory *Memory) ([]*proto.JobSummary, error) {
	entries, err := s.List(ctx, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the jobs in %s/%s: %w", s.URI(), dir, err)
	}
	entries = slices.DeleteFunc(entries, func(e store.Info) bool { return !e.IsDir() || !isID(e.Name) || known[e.Name] })
	slices.SortFunc(entries, func(a, b store.Info) int { return b.ModTime.Compare(a.ModTime) })
	found := make([]*proto.JobSummary, min(len(entries), keptRead))
	var g errgroup.Group
	g.SetLimit(stepsAtOnce)
	for i := range found {
		g.Go(func() error {
			found[i] = inHistory(s, dir, entries[i].Name).summarize(ctx, entries[i].ModTime, memory)
			return nil
		})
	}
	_ = g.Wait() // none returns an error
	return slices.DeleteFunc(found, func(e *proto.JobSummary) bool { return e == nil }), ctx.Err()
}

// summarize returns what a list says of the job, whose directory has changed at a time; nil if
// that cannot be read.
func (j *Job) summarize(ctx context.Context, changed time.Time, memory *Memory) *proto.JobSummary {
	r, known := memory.recall(j.URI(), changed)
	if !known {
		r = remembered{changed: changed}
		status, err := j.keptStatus(ctx)
		if err == nil {
			r.summary = &proto.JobSummary{
				Id: j.ID, Name: status.Name, User: status.User, State: status.State, Why: status.Why, Step: status.Step,
				StartedUnixMs: status.StartedUnixMs, EndedUnixMs: status.EndedUnixMs,
			}
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) { // another may be gone next time
			memory.remember(j.URI(), r)
		}
	}
	return pb.CloneOf(r.summary)
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
