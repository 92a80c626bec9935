package am

import (
	"time"

	"holdfast/am/core"
	"holdfast/proto"
	"holdfast/runtime"
)

// prewarmLimit is core's Limits.Prewarm where there is something to prewarm. A busy
// machine takes that long to import TensorFlow.
const prewarmLimit = 20 * time.Second

// limits returns the limits of a job: those in the configuration, with what its spec says.
func (c Config) limits(tasks int) core.Limits {
	l := c.Limits
	// The lease of a job with very many tasks is longer, since its master could not
	// receive their heartbeats otherwise. The loss of an agent that sends nothing is
	// noticed so much later.
	if least := proto.MinLease(tasks); l.Lease == 0 && least > core.DefaultLease {
		l.Lease = least
	}
	l.LivenessFile, l.Journaled = c.Attempt > 0, c.Attempt > 0
	l.Start = milliseconds(c.Spec.StartLimitMs)
	if ms := c.Spec.StopGraceMs; ms != nil {
		l.Stop = orNone(*ms)
	}
	switch ms := c.Spec.ElasticWaitMs; {
	case ms != nil:
		l.QuorumWait = orNone(*ms)
	case c.Spec.Spares > 0: // who has lost its container and finds none there is not worth waiting for
		l.LossWait = -1
	}
	l.Grow = milliseconds(c.Spec.ElasticGrowMs)
	if l.Save == 0 && len(c.Spec.Checkpoints) == 0 {
		l.Save = -1 // no checkpoint will ever be complete
	}
	l.Stall = orNone(c.Spec.RestartStalledMs) // none: a stall is only reported
	l.StragglerTime = orNone(c.Spec.StragglerTimeMs)
	l.StragglerFactor, l.StragglerMoves = c.Spec.StragglerFactor, int(c.Spec.StragglerMoves)
	if l.Prewarm == 0 && runtime.Warm(c.Spec) {
		l.Prewarm = prewarmLimit
	}
	return l
}

// orNone is a limit of which core takes zero for the default, and less than zero for none.
func orNone(ms int64) time.Duration {
	if ms == 0 {
		return -1
	}
	return milliseconds(ms)
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// agentLease is how long agents let their tasks run without a master: not at all where no
// other master can take over.
func (m *Master) agentLease() time.Duration {
	if m.cfg.Attempt == 0 {
		return 0
	}
	return m.job.Limits().Lease
}
