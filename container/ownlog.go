package container

import (
	"context"
	"math/rand/v2"
	"time"

	"holdfast/internal/ownlog"
)

const (
	// firstCopy is the least time after which an agent's log is first copied, and
	// firstSpread how much longer it may take: the agents of a large job begin together.
	firstCopy   = 5 * time.Second
	firstSpread = 10 * time.Second
	// copyEvery is the time between two copies.
	copyEvery = 10 * time.Second
)

// copyLog copies this process's log into the job's directory. The caller stops it before
// that is closed.
func (a *agent) copyLog() *ownlog.Copy {
	return ownlog.Start(ownlog.Options{
		Append: func(ctx context.Context, text []byte) error { return a.dir.append(ctx, a.cfg.OwnLog, text) },
		First:  firstCopy + rand.N(firstSpread), Every: copyEvery,
	})
}
