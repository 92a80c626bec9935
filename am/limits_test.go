package am

import (
	"testing"
	"time"

	"holdfast/am/core"
	"holdfast/proto"
)

// What the options say of elastic jobs reaches core.
func TestHowLongAnElasticJobWaits(t *testing.T) {
	for _, c := range []struct {
		name              string
		spec              *proto.JobSpec
		start, lost, grow time.Duration
	}{
		{"nothing is said", &proto.JobSpec{}, 30 * time.Second, 30 * time.Second, 0},
		{"a time", &proto.JobSpec{ElasticWaitMs: new(int64(60_000)), ElasticGrowMs: 120_000}, time.Minute, time.Minute, 2 * time.Minute},
		{"none", &proto.JobSpec{ElasticWaitMs: new(int64(0))}, 0, 0, 0},
		{"spares", &proto.JobSpec{Spares: 1}, 30 * time.Second, 0, 0},
		{"spares and a time", &proto.JobSpec{Spares: 1, ElasticWaitMs: new(int64(60_000))}, time.Minute, time.Minute, 0},
	} {
		got := core.New(nil, 0, 0, Config{Spec: c.spec}.limits(1)).Limits()
		if got.QuorumWait != c.start || got.LossWait != c.lost || got.Grow != c.grow {
			t.Errorf("%s: it waits for %v at its start and for %v after a loss, and grows after %v; want %v, %v, %v", c.name, got.QuorumWait, got.LossWait, got.Grow, c.start, c.lost, c.grow)
		}
	}
}

// TestNothingWaitsForCheckpointsThatCannotCome: a job without a checkpoint directory has none.
func TestNothingWaitsForCheckpointsThatCannotCome(t *testing.T) {
	for _, c := range []struct {
		checkpoints []*proto.CheckpointSpec
		want        time.Duration
	}{
		{[]*proto.CheckpointSpec{{Path: "./train_logs"}}, 30 * time.Second},
		{nil, 0},
	} {
		spec := &proto.JobSpec{Checkpoints: c.checkpoints}
		if got := core.New(nil, 0, 0, Config{Spec: spec}.limits(1)).Limits().Save; got != c.want {
			t.Errorf("with %d checkpoint directories, a task that is to move waits %s for a checkpoint, want %s", len(c.checkpoints), got, c.want)
		}
	}
}

// A job is restarted when it stalls, unless its spec says that this is only told.
func TestStallsAreActedOn(t *testing.T) {
	for ms, want := range map[int64]time.Duration{600_000: 10 * time.Minute, 0: -1} {
		c := Config{Spec: &proto.JobSpec{RestartStalledMs: ms}}
		if got := c.limits(1).Stall; got != want {
			t.Errorf("with %d ms the limit is %v, want %v", ms, got, want)
		}
	}
	if l := core.New(nil, 0, 0, core.Limits{}).Limits(); l.Stall != 10*time.Minute || l.StallWarning != 2*time.Minute {
		t.Errorf("the usual limits are %v, and %v until it is told", l.Stall, l.StallWarning)
	}
}
