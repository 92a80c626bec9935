package container

import (
	"os"
	"runtime/debug"
	"time"

	"holdfast/container/proctree"
)

const (
	// trimAbove is how much anonymous memory an agent may keep after a burst of reads
	// and writes: it is missing to the task.
	trimAbove = 9 << 20
	trimEvery = 5 * time.Second
)

// trimmer returns memory that a burst has left behind to the operating system. The runtime
// would take minutes.
type trimmer struct{ last time.Time }

func (t *trimmer) trim(now time.Time) {
	if now.Sub(t.last) >= trimEvery && proctree.Anonymous(os.Getpid()) > trimAbove {
		debug.FreeOSMemory() // a few milliseconds, with a heap this small
		t.last = now
	}
}
