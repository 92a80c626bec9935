package jobs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"holdfast/client/cluster"
	"holdfast/proto"
)

// shutdownLimit is how long an application master may take to end its job: it stops the
// tasks, seals what they saved last and cleans up the stores, and has timeouts of its
// own for stores that do not answer. The stop grace of the tasks is added to it.
const shutdownLimit = 2 * time.Minute

// Kill asks the application master to end the job, or ends it by force. It returns the
// final state once the job has ended, and reports whether it had ended before.
func (j *Job) Kill(ctx context.Context, why string) (last *proto.JobStatus, already bool, err error) {
	return j.kill(ctx, why, func() {})
}

// kill is Kill; confirmed is called, one time, as soon as the job is known to end, whatever becomes of
// ctx.
func (j *Job) kill(ctx context.Context, why string, confirmed func()) (last *proto.JobStatus, already bool, err error) {
	confirmed = sync.OnceFunc(confirmed) // what was agreed to may have to be forced
	grace, accepted := j.requestShutdown(ctx, why)
	if accepted {
		confirmed()
		ending, cancel := context.WithTimeout(ctx, shutdownLimit+grace)
		defer cancel()
		s, err := j.Watch(ending, func(*proto.JobStatus) {})
		if err == nil || ctx.Err() != nil {
			return s, false, err
		}
	}
	if s, err := j.storedStatus(ctx); err != nil || s.State.Done() {
		return s, !accepted, err
	}
	if j.Local() {
		if last, err = j.killLocal(ctx); err == nil {
			confirmed()
		}
		return last, false, err
	}
	forcing, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := j.cluster.RM.Kill(forcing, j.app, why); err != nil {
		return nil, false, cluster.YARNError(err)
	}
	confirmed()
	if !j.denied() { // another user's is left to that user's next job
		if err := j.cluster.RemoveKeytab(forcing, j.home, j.ID); err != nil {
			return nil, false, err
		}
	}
	last, err = j.storedStatus(ctx)
	return last, false, err
}

// requestShutdown asks the application master to end the job. It returns the stop grace
// of the tasks, and reports whether the master has accepted.
func (j *Job) requestShutdown(ctx context.Context, why string) (grace time.Duration, lastContact bool) {
	finding, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	m, err := j.dial(finding)
	if err != nil {
		return 0, false
	}
	defer m.close()
	calling, cancelCall := context.WithTimeout(finding, cluster.Timeout)
	defer cancelCall()
	r, err := m.Kill(calling, &proto.KillRequest{Why: why, User: whoAsks(j)})
	return time.Duration(r.GetStopGraceMs()) * time.Millisecond, err == nil
}

// killLocal kills the process of the application master; the agents end with it.
func (j *Job) killLocal(ctx context.Context) (*proto.JobStatus, error) {
	if other := j.Elsewhere(); other != "" {
		return nil, fmt.Errorf("end %s, which runs on the machine %s or was lost with it: only that one can: yarn-submit kill %[1]s there; if it is gone for good, remove the job's directory %[3]s", j.ID, other, j.LocalPath())
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		m := readMaster(j.LocalPath())
		pid := m.pid
		if m.liveness(j.ID) != Alive {
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
	return j.storedStatus(ctx)
}
