package container

import (
	"os"
	"runtime/debug"
	"time"

	"holdfast/container/proctree"
)

const (
	// trimAbove is how much memory of its own an agent may keep after a burst
	// of reads and writes: what it holds, its task lacks.
	trimAbove = 9 << 20
	trimEvery = 5 * time.Second
)

// trimmer gives memory back to the system that a burst has left behind. The
// runtime would do it too, over minutes.
type trimmer struct{ last time.Time }

func (t *trimmer) trim(now time.Time) {
	if now.Sub(t.last) >= trimEvery && proctree.Anonymous(os.Getpid()) > trimAbove {
		debug.FreeOSMemory() // a few milliseconds, with a heap this small
		t.last = now
	}
}
