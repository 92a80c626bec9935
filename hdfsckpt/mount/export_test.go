package mount

import (
	"testing"
	"time"

	"holdfast/hdfsckpt/mount/area"
)

// Remembered tells how many inodes, open files and files being written are
// remembered.
func (f *FS) Remembered() (nodes, handles, works int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.nodes), len(f.handles), len(f.works)
}

// StagesLive sets how long a directory for new files is used.
func StagesLive(t testing.TB, d time.Duration) {
	former := area.StageLife
	area.StageLife = d
	t.Cleanup(func() { area.StageLife = former })
}
