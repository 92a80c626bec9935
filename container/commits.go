package container

import (
	"sync"
	"time"

	"holdfast/proto"
)

// commits gathers the names of files that became visible, to tell of many at
// once.
type commits struct {
	ready chan struct{}

	mu    sync.Mutex
	names map[string][]string // by CheckpointSpec.path
	timer bool
}

// gatherFor is how long names are gathered.
const gatherFor = 100 * time.Millisecond

func newCommits() *commits {
	return &commits{ready: make(chan struct{}, 1), names: map[string][]string{}}
}

func (c *commits) add(path, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names[path] = append(c.names[path], name)
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
	for path, names := range c.names {
		all = append(all, &proto.Committed{Path: path, Names: names})
	}
	clear(c.names)
	c.timer = false
	return all
}
