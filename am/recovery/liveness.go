package am

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

// vigil tells agents that hear nothing of this master that it lives, by touching
// the file of its address, and core for how long it has done so without a break
// (proto/vigil.go).
type vigil struct {
	dir   store.Store
	lease time.Duration
	log   *logrus.Entry
	news  chan unbroken // capacity 1: the latest
}

// unbroken is the time of touches without a break.
type unbroken struct{ since, until time.Time }

func newVigil(cfg Config, lease time.Duration) *vigil {
	return &vigil{dir: cfg.Dir, lease: lease, log: cfg.Log, news: make(chan unbroken, 1)}
}

// run touches the file until ctx ends.
func (v *vigil) run(ctx context.Context) {
	var last, since time.Time // the last touch was begun; the first since a break had ended
	failing := false
	for {
		begin := time.Now()
		if err := v.touch(ctx, begin); err != nil {
			if ctx.Err() != nil {
				return
			}
			if !failing {
				v.log.WithError(err).Warn("cannot touch the file of the application master's address; no agent is given up for silence until it can")
			}
			failing = true
		} else {
			if failing {
				failing = false
				v.log.Info("the file of the application master's address is touched again")
			}
			done := time.Now()
			if apart(last, done) > proto.TouchLimit(v.lease) {
				since = done
			}
			last = begin
			select {
			case <-v.news:
			default:
			}
			v.news <- unbroken{since, begin.Round(0).Add(proto.TouchLimit(v.lease))} // by the wall clock: see apart
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(begin.Add(proto.TouchEvery(v.lease)))):
		}
	}
}

// apart is the time between two moments, also where the machine has slept, which
// Go's monotonic clock does not count.
func apart(a, b time.Time) time.Duration { return max(b.Sub(a), b.Round(0).Sub(a.Round(0))) }

// touch does not wait longer than a touch may take.
func (v *vigil) touch(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, proto.TouchLimit(v.lease))
	defer cancel()
	return v.dir.Chtimes(ctx, proto.AddressFile, now, now)
}
