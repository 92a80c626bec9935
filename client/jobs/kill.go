package jobs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"holdfast/client/cluster"
	"holdfast/proto"
)

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
	if err := j.cluster.RM.Kill(forcing, j.app, why); err != nil {
		return nil, false, cluster.RMError(err)
	}
	if !j.foreign() { // another user's is left to that user's next job
		if err := j.cluster.RemoveKeytab(forcing, j.home, j.ID); err != nil {
			return nil, false, err
		}
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
	calling, cancelCall := context.WithTimeout(finding, cluster.Patience)
	defer cancelCall()
	r, err := m.Kill(calling, &proto.KillRequest{Why: why})
	return time.Duration(r.GetStopGraceMs()) * time.Millisecond, err == nil
}

// killLocal ends the application master's process; the agents follow it.
func (j *Job) killLocal(ctx context.Context) (*proto.JobStatus, error) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		pid := masterPID(j.LocalPath(), j.ID)
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
