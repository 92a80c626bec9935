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

// Pace at which a job is asked after while no application master answers, and
// how long a cluster may be silent before Watch gives up. A ResourceManager or
// NameNode that fails over is back within that.
const (
	watchPace    = 150 * time.Millisecond
	watchSilence = 5 * time.Minute
)

// Watch calls show with each state of the job until the job has ended, and
// returns the last one. The job goes on when ctx ends.
func (j *Job) Watch(ctx context.Context, show func(*proto.JobStatus)) (*proto.JobStatus, error) {
	heard := time.Now()
	quiet := watchPace
	for {
		last, err := j.stream(ctx, show)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if last != nil {
			if last.State.Done() {
				return last, j.awaitExit(ctx)
			}
			quiet = watchPace
		}
		s, err2 := j.settled(ctx)
		switch {
		case err2 == nil:
			heard = time.Now()
			if s.State.Done() {
				show(s)
				return s, nil
			}
			if err != nil && len(s.Tasks) > 0 && s.Why == "" && !errors.Is(err, errNoMaster) {
				s.Why = "the application master does not answer"
			}
			show(s)
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case client.ExitCode(err2) != client.ExitUnreachable:
			return nil, err2
		case time.Since(heard) > watchSilence:
			return nil, client.Unreachablef("lost sight of %s, which may still run: %w; ask again with: yarn-submit status %s", j.ID, err2, j.ID)
		}
		if !backoff.Sleep(ctx, quiet) {
			return nil, context.Cause(ctx)
		}
		quiet = min(quiet*5/4, 2*time.Second)
	}
}

// awaitExit waits until the application master of a local job that is over has
// gone, so that nothing of the job runs when a command says that it has ended.
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

// stream follows the application master's own account until it breaks off, and
// returns the last state heard.
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
		j.viaProxy(ctx, s)
		last = s
		show(s)
	}
}

// viaProxy puts the ResourceManager's proxy in place of the AM's own address.
func (j *Job) viaProxy(ctx context.Context, s *proto.JobStatus) {
	if j.Local() {
		return
	}
	j.mu.Lock()
	url, ask := j.tracking, j.tracking == "" && time.Since(j.asked) > time.Second
	if ask {
		j.asked = time.Now()
	}
	j.mu.Unlock()
	if ask {
		asking, cancel := context.WithTimeout(ctx, cluster.Patience)
		defer cancel()
		if r, err := j.cluster.RM.Report(asking, j.app); err == nil {
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
