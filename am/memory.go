package am

import (
	"context"
	"runtime/debug"
	"time"
)

// SaveMemory makes Go's collector run at a third of the usual heap growth: a master's memory
// grows with the number of tasks, and little of it changes.
func SaveMemory() { debug.SetGCPercent(33) }

// trimInterval is how often memory that a burst has left behind, such as the start of
// many tasks, is returned to the operating system. The runtime would take minutes.
const trimInterval = 20 * time.Second

// Trim returns unused memory to the operating system every trimInterval, until ctx ends.
func Trim(ctx context.Context) {
	tick := time.NewTicker(trimInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			debug.FreeOSMemory()
		}
	}
}
