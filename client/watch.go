package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

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
		case ExitCode(err2) != ExitUnreachable:
			return nil, err2
		case time.Since(heard) > watchSilence:
			return nil, unreachablef("lost sight of %s, which may still run: %w; ask again with: yarn-submit status %s", j.ID, err2, j.ID)
		}
		if err := pause(ctx, quiet); err != nil {
			return nil, err
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
	for deadline := time.Now().Add(20 * time.Second); j.masterRuns() && time.Now().Before(deadline); {
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
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
		asking, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if r, err := j.cluster.rm.Report(asking, j.app); err == nil {
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

// endingLimit is how long a master may take to end its job in good order. It stops
// the tasks, seals what they saved last and leaves nothing unfinished in the stores,
// and gives up each of these itself where a store does not answer. What tasks get to
// save comes on top of that.
const endingLimit = 2 * time.Minute

// Kill ends the job in good order, or else by force. It returns once the job
// has ended, with its last state, and reports whether that was so already.
func (j *Job) Kill(ctx context.Context, why string) (last *proto.JobStatus, already bool, err error) {
	grace, asked := j.askToEnd(ctx, why)
	if asked {
		ending, cancel := context.WithTimeout(ctx, endingLimit+grace)
		defer cancel()
		s, err := j.Watch(ending, func(*proto.JobStatus) {})
		if err == nil || ctx.Err() != nil {
			return s, false, err
		}
	}
	if s, err := j.settled(ctx); err != nil || s.State.Done() {
		return s, !asked, err
	}
	if j.Local() {
		last, err = j.killLocal(ctx)
		return last, false, err
	}
	forcing, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := j.cluster.rm.Kill(forcing, j.app, why); err != nil {
		return nil, false, rmError(err)
	}
	if err := j.removeKeytab(forcing); err != nil {
		return nil, false, err
	}
	last, err = j.settled(ctx)
	return last, false, err
}

// askToEnd reports whether the job's master has heard that it is to end the job, and
// what its tasks get for that.
func (j *Job) askToEnd(ctx context.Context, why string) (grace time.Duration, heard bool) {
	finding, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	m, err := j.dial(finding)
	if err != nil {
		return 0, false
	}
	defer m.close()
	calling, cancelCall := context.WithTimeout(finding, patience)
	defer cancelCall()
	r, err := m.Kill(calling, &proto.KillRequest{Why: why})
	return time.Duration(r.GetStopGraceMs()) * time.Millisecond, err == nil
}

// killLocal ends the application master's process; the agents follow it.
func (j *Job) killLocal(ctx context.Context) (*proto.JobStatus, error) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		pid := j.masterPID()
		if pid == 0 {
			break
		}
		p, err := os.FindProcess(pid)
		if err == nil {
			err = p.Signal(sig)
		}
		if err != nil && !errors.Is(err, os.ErrProcessDone) {
			return nil, fmt.Errorf("end the application master of %s (process %d): %w", j.ID, pid, err)
		}
		if err := j.awaitExit(ctx); err != nil {
			return nil, err
		}
	}
	return j.settled(ctx)
}
