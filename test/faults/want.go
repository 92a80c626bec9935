package faults

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"holdfast/proto"
	"holdfast/test/testcluster"
)

// grower runs the tasks' program, and can be made to take memory; the name is
// that of its file.
//
//go:embed grow.py
var grower []byte

const growerName = "grow.py"

// Other jobs are submitted to a queue of their own, whose share is what the first
// queue's leaves of the cluster.
const (
	firstShare  = 40   // percent
	nodeMB      = 4096 // of each of three
	otherTasks  = 6
	otherTaskMB = 1024
)

// growWorker has a worker use more memory than its container has, for which the
// NodeManager ends it.
func growWorker(j *job, s *proto.JobStatus) (hit, error) {
	t := anyTask(j.rng, s, "worker")
	if len(processes(int(t.Pid))) == 0 {
		return missing(t.Task), nil
	}
	h := hit{what: fmt.Sprintf("%s on %s, process %d", t.Task, t.Node, t.Pid), gone: processes(int(t.AgentPid), int(t.Pid))}
	before := len(s.Incidents)
	h.heal = func(ctx context.Context) error { return j.taken(ctx, before) }
	err := os.WriteFile(fmt.Sprintf("/proc/%d/cwd/grow", t.Pid), nil, 0o600)
	if errors.Is(err, os.ErrNotExist) { // it has ended meanwhile
		err = nil
	}
	return h, err
}

// preempt has a job in another queue ask for all of that queue's share, of which
// the job uses a part; it ends once it has got some of it.
func preempt(j *job, s *proto.JobStatus) (hit, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	other, err := j.user().Run(ctx, "--name", "other", "--queue", testcluster.OtherQueue,
		"--worker", strconv.Itoa(otherTasks), "--worker-memory", strconv.Itoa(otherTaskMB)+"m", "--", "sleep", "1000")
	before := len(s.Incidents)
	return hit{what: "a container, for " + other, heal: func(ctx context.Context) error {
		err := j.taken(ctx, before)
		_, e := j.user().Call(ctx, "kill", other)
		return errors.Join(err, e)
	}}, err
}

// taken waits until the job has lost something since it had had so many incidents.
func (j *job) taken(ctx context.Context, before int) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	for {
		if s, err := j.status(ctx); err == nil && len(s.Incidents) > before {
			return nil
		}
		if !wait(ctx, 200*time.Millisecond) {
			return errors.New("the cluster has taken nothing from the job")
		}
	}
}

// prepare writes what jobs need into the home of their user.
func (o Options) prepare() error {
	return os.WriteFile(o.grower(), grower, 0o600)
}

func (o Options) grower() string { return filepath.Join(o.Home, growerName) }
