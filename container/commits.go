package container

import (
	"sync"
	"time"

	"holdfast/hdfsckpt/mount"
	"holdfast/proto"
)

// commits gathers the files that became visible, to tell of many at once.
type commits struct {
	ready chan struct{}

	mu    sync.Mutex
	files map[string][]*proto.CommittedFile // by CheckpointSpec.path
	timer bool
}

// gatherFor is how long they are gathered.
const gatherFor = 100 * time.Millisecond

func newCommits() *commits {
	return &commits{ready: make(chan struct{}, 1), files: map[string][]*proto.CommittedFile{}}
}

func (c *commits) add(path string, m mount.Commit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files[path] = append(c.files[path], &proto.CommittedFile{
		Name: m.Name, From: m.From, Size: m.Size, Crc32C: m.CRC32C, Summed: m.Summed,
	})
	if !c.timer {
		c.timer = true
		time.AfterFunc(gatherFor, func() {
			select {
			case c.ready <- struct{}{}:
			default:
			}
		})
	}
}

func (c *commits) take() []*proto.Committed {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*proto.Committed
	for path, files := range c.files {
		all = append(all, &proto.Committed{Path: path, Files: files})
	}
	clear(c.files)
	c.timer = false
	return all
}
