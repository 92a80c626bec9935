package hdfs

import (
	"container/list"
	"sync"
	"time"

	"github.com/klauspost/reedsolomon"

	"holdfast/internal/hadoop/hdfs/budget"
	"holdfast/internal/hadoop/hdfs/transfer"
)

// Shared is what the clients of one process have in common: memory for the files
// that they have open, what was read of them, and what any client has found out about
// DataNodes.
type Shared struct {
	memory *budget.Memory
	cache  cache
	// silent are the DataNodes that did not answer lately, slow those that were much
	// slower than others of the same block: they are asked last.
	silent, slow transfer.Silent

	mu     sync.Mutex
	coders map[policy]reedsolomon.Encoder // by codec and numbers of units
}

// openFiles is the memory, in bytes, for all files that a process has open, to read
// or to write.
const openFiles = 48 << 20

// NewShared returns what the clients of one process share.
func NewShared() *Shared { return newShared(openFiles) }

func newShared(memory int64) *Shared {
	s := &Shared{coders: map[policy]reedsolomon.Encoder{}}
	s.memory = budget.New(memory, func() { s.relieve(time.Now()) })
	return s
}

// Held returns how many bytes the open files of all clients hold.
func (s *Shared) Held() int64 { return s.memory.Held() }

// relieve frees what is idle, as long as memory is short. No Reader's lock may be
// held.
func (s *Shared) relieve(now time.Time) {
	for s.memory.Short() {
		p := s.cache.next(now)
		if p == nil {
			return
		}
		p.owner.evict(p)
	}
}

// cache orders the pieces that the Readers of all clients hold, so that the least recently
// used ones are dropped when memory is short: open files that are idle take no memory from
// those that are read or written.
type cache struct {
	mu sync.Mutex
	// The least recently used first: pieces that were read, and those that were only
	// fetched ahead and may still be read.
	read, ahead list.List
}

// cachePosition is the position of a piece in the cache.
type cachePosition struct {
	list    *list.List // nil: nowhere
	element *list.Element
	since   time.Time
}

// How long a piece is kept at least after its last use, so that the rest of it can be read, or
// what was fetched ahead.
const (
	readAlone  = 250 * time.Millisecond
	aheadAlone = 2 * time.Second
)

// touch makes a piece the most recently used one.
func (c *cache) touch(p *piece) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.take(p)
	p.position.list = &c.ahead
	if p.read {
		p.position.list = &c.read
	}
	p.position.element, p.position.since = p.position.list.PushBack(p), time.Now()
}

// forget takes a piece out.
func (c *cache) forget(p *piece) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.take(p)
}

func (c *cache) take(p *piece) {
	if p.position.list != nil {
		p.position.list.Remove(p.position.element)
		p.position = cachePosition{}
	}
}

// next takes out the piece that is to go first, nil if there is none at this time.
func (c *cache) next(now time.Time) *piece {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range []struct {
		list  *list.List
		alone time.Duration
	}{{&c.read, readAlone}, {&c.ahead, aheadAlone}} {
		if e := l.list.Front(); e != nil {
			if p := e.Value.(*piece); now.Sub(p.position.since) >= l.alone {
				c.take(p)
				return p
			}
		}
	}
	return nil
}

// evict drops a piece, unless it was dropped already or is in use: then it returns to the cache
// when it is released.
func (r *Reader) evict(p *piece) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pieces[p.index] == p && p.users == 0 {
		r.drop(p)
	}
}
