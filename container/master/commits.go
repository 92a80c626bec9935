package master

import (
	"slices"
	"sync"
	"time"

	pb "google.golang.org/protobuf/proto"

	"holdfast/hdfsckpt/mount"
	"holdfast/proto"
)

// Commits gathers the files that became visible, to tell of many at once, and
// keeps what was told until it is known to have been heard.
type Commits struct {
	Ready chan struct{} // has an element when there is something to take

	mu    sync.Mutex
	fresh []commit
	told  []commit
	timer bool
}

type commit struct {
	path string // CheckpointSpec.path
	file *proto.CommittedFile
	told time.Duration // when, since boot
}

const (
	gatherFor = 100 * time.Millisecond
	// commitsLimit bounds what is kept; the AM reads the oldest files itself if
	// it has to seal them.
	commitsLimit = 10000
	// committedSize is, in bytes, about the most that one message tells: one that
	// is too large for gRPC ends the stream, and would do so again on the next.
	committedSize = 256 << 10
)

// NewCommits has none.
func NewCommits() *Commits { return &Commits{Ready: make(chan struct{}, 1)} }

// Add takes in a file that became visible below a CheckpointSpec.path.
func (c *Commits) Add(path string, m mount.Commit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fresh = append(c.fresh, commit{path: path, file: &proto.CommittedFile{
		Name: m.Name, From: m.From, Size: m.Size, Crc32C: m.CRC32C, HasCrc32C: m.Summed,
		Inode: m.ID.Inode, ModifiedUnixNs: m.ID.Modified,
	}})
	if n := len(c.fresh) - commitsLimit; n > 0 {
		c.fresh = c.fresh[n:]
	}
	if !c.timer {
		c.timer = true
		time.AfterFunc(gatherFor, func() {
			select {
			case c.Ready <- struct{}{}:
			default:
			}
		})
	}
}

// Take gives what has not been told, in messages of a bounded size.
func (c *Commits) Take() []*proto.Committed {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer = false
	var all []*proto.Committed
	now, size := sinceBoot(), 0
	for _, f := range c.fresh {
		n := pb.Size(f.file)
		if len(all) == 0 || all[len(all)-1].Path != f.path || size+n > committedSize {
			all, size = append(all, &proto.Committed{Path: f.path}), 0
		}
		size += n
		last := all[len(all)-1]
		last.Files = append(last.Files, f.file)
		f.told = now
		c.told = append(c.told, f)
	}
	c.fresh = nil
	return all
}

// Acknowledged forgets what was told before a moment.
func (c *Commits) Acknowledged(before time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = slices.DeleteFunc(c.told, func(f commit) bool { return f.told <= before })
}

// Requeue makes what may not have been heard be told once more.
func (c *Commits) Requeue() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fresh = append(c.told, c.fresh...)
	c.told = nil
}
