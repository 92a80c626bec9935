package master

import (
	"slices"
	"sync"
	"time"

	pb "google.golang.org/protobuf/proto"

	"holdfast/hdfsckpt/mount"
	"holdfast/proto"
)

// Commits collects the files that became visible, to report many in one message,
// and retains what was sent until the AM has acknowledged it. Its methods may be
// called from many goroutines.
type Commits struct {
	Ready chan struct{} // has an element when there is something to take

	mu      sync.Mutex
	pending []commit // not sent yet
	sent    []commit // and not acknowledged
	timer   bool
}

type commit struct {
	path string               // CheckpointSpec.path
	file *proto.CommittedFile // not changed
	at   time.Duration        // when it became visible, since boot
	sent time.Duration        // when, since boot
}

const (
	collectFor = 100 * time.Millisecond
	// commitsLimit bounds what is retained; the AM reads the oldest files itself if
	// it has to seal them.
	commitsLimit = 10000
	// committedSize is, in bytes, about the size that a message is limited to: one that
	// is too large for gRPC ends the stream, and would do so again on the next.
	committedSize = 256 << 10
)

// NewCommits returns an empty collection.
func NewCommits() *Commits { return &Commits{Ready: make(chan struct{}, 1)} }

// Add adds a file that became visible below path, a CheckpointSpec.path.
func (c *Commits) Add(path string, m mount.Commit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = append(c.pending, commit{path: path, at: sinceBoot(), file: &proto.CommittedFile{
		Name: []byte(m.Name), From: []byte(m.From), Size: m.Size, Crc32C: m.CRC32C, HasCrc32C: m.Summed,
		Inode: m.ID.Inode, ModifiedUnixNs: m.ID.Modified, WritingMs: m.Writing.Milliseconds(),
	}})
	if n := len(c.pending) - commitsLimit; n > 0 {
		c.pending = c.pending[n:]
	}
	if !c.timer {
		c.timer = true
		time.AfterFunc(collectFor, func() {
			select {
			case c.Ready <- struct{}{}:
			default:
			}
		})
	}
}

// Take returns what has not been sent, in messages of a bounded size, and takes it
// for sent.
func (c *Commits) Take() []*proto.Committed {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer = false
	var all []*proto.Committed
	now, size := sinceBoot(), 0
	for _, f := range c.pending {
		file := pb.Clone(f.file).(*proto.CommittedFile)
		file.AgeMs = (now - f.at).Milliseconds()
		n := pb.Size(file)
		if len(all) == 0 || all[len(all)-1].Path != f.path || size+n > committedSize {
			all, size = append(all, &proto.Committed{Path: f.path}), 0
		}
		size += n
		last := all[len(all)-1]
		last.Files = append(last.Files, file)
		f.sent = now
		c.sent = append(c.sent, f)
	}
	c.pending = nil
	return all
}

// Acknowledged forgets what was sent no later than before, since boot.
func (c *Commits) Acknowledged(before time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = slices.DeleteFunc(c.sent, func(f commit) bool { return f.sent <= before })
}

// Requeue makes Take return again what was sent and not acknowledged.
func (c *Commits) Requeue() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = append(c.sent, c.pending...)
	c.sent = nil
}
