package faults

import (
	"context"
	"errors"
	"time"

	"holdfast/proto"
	"holdfast/test/testcluster"
)

// noticed is how long it takes until another NameNode takes over.
const noticed = time.Second

// onNameNode strikes at the NameNode that serves. Where there is another, that one
// takes over, and the struck one is on standby once it is healed.
func onNameNode(do daemonStrike) func(*job, *proto.JobStatus) (hit, error) {
	return func(j *job, s *proto.JobStatus) (hit, error) {
		if !j.Standby {
			return onDaemon(do, "nn")(j, s)
		}
		struck, other := j.Cluster.ActiveNameNode(), j.Cluster.Daemon("nn1")
		if struck == other {
			other = j.Cluster.Daemon("nn")
		}
		h, err := onRunning(do)(j, struck)
		if h.missed {
			return h, err
		}
		h.what, h.hold = struck.Name()+", "+other.Name()+" takes over", noticed
		h.heal = j.takingOver(other, struck)
		return h, err
	}
}

// takingOver has a NameNode take over, and the other one started anew on standby,
// which is what fencing makes of one that hangs.
func (j *job) takingOver(next, struck *testcluster.Daemon) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, callLimit)
		defer cancel()
		err := j.Cluster.Activate(ctx, next.Name())
		if struck.Running() {
			wait(ctx, paused-noticed)
		}
		return errors.Join(err, struck.Restart(ctx))
	}
}
