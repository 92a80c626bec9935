package recovery

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/hdfsckpt/store"
	"holdfast/internal/backoff"
	"holdfast/proto"
)

// LivenessFile updates the modification time of the address file every
// proto.TouchInterval, so that agents that have lost their connection can tell that the
// master is alive. It reports the window over which updates succeeded without a gap, by
// which core knows when the leases of silent agents have expired (proto/lease.go).
type LivenessFile struct {
	dir     store.Store
	lease   time.Duration
	log     *logrus.Entry
	windows chan LivenessWindow // capacity 1: the latest
}

// LivenessWindow is the time over which the file was updated without a gap: since the
// first update after the latest gap, and until the time before which no agent can see the
// file untouched for too long.
type LivenessWindow struct{ Since, Until time.Time }

// NewLivenessFile returns the liveness file of a job whose agents have this lease. Run
// must be called for it to be updated.
func NewLivenessFile(dir store.Store, lease time.Duration, log *logrus.Entry) *LivenessFile {
	return &LivenessFile{dir: dir, lease: lease, log: log, windows: make(chan LivenessWindow, 1)}
}

// Windows returns a channel that receives the uninterrupted window after each update. A
// receiver that is late misses all but the latest.
func (f *LivenessFile) Windows() <-chan LivenessWindow { return f.windows }

// Run updates the file until ctx ends.
func (f *LivenessFile) Run(ctx context.Context) {
	var last, since time.Time // when the last update began; when the first one since a gap had ended
	failing := false
	for {
		begin := time.Now()
		if err := f.touch(ctx, begin); err != nil {
			if ctx.Err() != nil {
				return
			}
			if !failing {
				f.log.WithError(err).Warn("cannot update the application master's liveness file; no agent is given up for silence until it can")
			}
			failing = true
		} else {
			if failing {
				failing = false
				f.log.Info("the application master's liveness file is updated again")
			}
			done := time.Now()
			if elapsed(last, done) > proto.TouchLimit(f.lease) {
				since = done
			}
			last = begin
			select {
			case <-f.windows:
			default:
			}
			f.windows <- LivenessWindow{since, begin.Round(0).Add(proto.TouchLimit(f.lease))} // by the wall clock: see elapsed
		}
		if !backoff.Sleep(ctx, time.Until(begin.Add(proto.TouchInterval(f.lease)))) {
			return
		}
	}
}

// elapsed returns the time between two moments. It counts the time for which the machine
// was suspended, which Go's monotonic clock does not.
func elapsed(a, b time.Time) time.Duration { return max(b.Sub(a), b.Round(0).Sub(a.Round(0))) }

// touch updates the file once, within the time that an update may take.
func (f *LivenessFile) touch(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, proto.TouchLimit(f.lease))
	defer cancel()
	return f.dir.Chtimes(ctx, proto.AddressFile, now, now)
}
