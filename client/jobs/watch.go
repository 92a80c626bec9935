package jobs

import (
	"context"
	"errors"
	"time"

	"holdfast/client"
	"holdfast/client/cluster"
	"holdfast/internal/backoff"
	"holdfast/proto"
)

// The interval at which a job is polled while its application master does not answer,
// and how long nobody may answer before who follows it gives up. A ResourceManager or
// NameNode fails over within that time.
const (
	watchPace    = 150 * time.Millisecond
	silenceLimit = 5 * time.Minute
)

// Contact is for who follows a job for long: it tells for how long to go on while nobody answers,
// counted from the last answer.
type Contact struct {
	job  string
	now  func() time.Time
	last time.Time
}

// NewContact returns the contact of one who begins to follow the job.
func (j *Job) NewContact() *Contact { return newContact(j.ID, time.Now) }

func newContact(job string, now func() time.Time) *Contact {
	return &Contact{job, now, now()}
}

// Answered records an answer.
func (c *Contact) Answered() { c.last = c.now() }

// Lost returns nil if err is that nobody has answered, and to ask again is worth it; else the error
// with which to give up.
func (c *Contact) Lost(err error) error {
	switch {
	case client.ExitCode(err) != client.ExitUnreachable:
		return err
	case c.now().Sub(c.last) > silenceLimit:
		return client.Unreachablef("lost sight of %s, which may still run: %w; ask again with: yarn-submit status %s", c.job, err, c.job)
	}
	return nil
}

// Watch calls show with each state of the job until the job has ended, and returns the
// last one. The job continues if ctx ends.
func (j *Job) Watch(ctx context.Context, show func(*proto.JobStatus)) (*proto.JobStatus, error) {
	return j.watch(ctx, show, j.NewContact())
}

func (j *Job) watch(ctx context.Context, show func(*proto.JobStatus), c *Contact) (*proto.JobStatus, error) {
	interval := watchPace
	for {
		last, err := j.stream(ctx, show)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if last != nil {
			c.Answered() // until the stream broke
			if last.State.Done() {
				return last, j.awaitExit(ctx)
			}
			interval = watchPace
		}
		s, err2 := j.storedStatus(ctx)
		switch {
		case ctx.Err() != nil && err2 != nil:
			return nil, context.Cause(ctx)
		case err2 != nil:
			if err := c.Lost(err2); err != nil {
				return nil, err
			}
		default:
			c.Answered()
			if s.State.Done() {
				show(s)
				return s, nil
			}
			if err != nil && len(s.Tasks) > 0 && s.Why == "" && !errors.Is(err, errNoMaster) {
				s.Why = "the application master does not answer"
			}
			show(s)
		}
		if !backoff.Sleep(ctx, interval) {
			return nil, context.Cause(ctx)
		}
		interval = min(interval*5/4, 2*time.Second)
	}
}

// awaitExit waits until the application master of a local job that has ended has
// exited, so that no process of the job is left when a command reports the end.
func (j *Job) awaitExit(ctx context.Context) error {
	if !j.Local() {
		return nil
	}
	for deadline := time.Now().Add(20 * time.Second); j.MasterRuns() && time.Now().Before(deadline); {
		if !backoff.Sleep(ctx, 20*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// stream passes on the states that the application master sends, until the stream
// breaks, and returns the last one.
func (j *Job) stream(ctx context.Context, show func(*proto.JobStatus)) (*proto.JobStatus, error) {
	m, err := j.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer m.close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := m.Watch(ctx, &proto.StatusRequest{})
	if err != nil {
		return nil, err
	}
	var last *proto.JobStatus
	for {
		s, err := stream.Recv()
		if err != nil {
			return last, err
		}
		j.setTrackingURL(ctx, s)
		last = s
		show(s)
	}
}

// setTrackingURL replaces the application master's own address with that of the
// ResourceManager's proxy.
func (j *Job) setTrackingURL(ctx context.Context, s *proto.JobStatus) {
	if j.Local() {
		return
	}
	j.mu.Lock()
	url, ask := j.tracking, j.tracking == "" && time.Since(j.lastQueried) > time.Second
	if ask {
		j.lastQueried = time.Now()
	}
	j.mu.Unlock()
	if ask {
		querying, cancel := context.WithTimeout(ctx, cluster.Timeout)
		defer cancel()
		if r, err := j.cluster.RM.Report(querying, j.app); err == nil {
			url = r.TrackingURL
			j.mu.Lock()
			j.tracking = url
			j.mu.Unlock()
		}
	}
	if url != "" {
		s.TrackingUrl = url
	}
}
