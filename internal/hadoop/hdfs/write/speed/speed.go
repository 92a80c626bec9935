// Package speed finds out which DataNodes make writing slow.
//
// A block is written at the speed of the slowest DataNode of its pipeline. Which one that
// is can be derived only from several blocks: each DataNode is at least as fast as the
// fastest block that it took part in. After a slow block, its DataNodes that are not known
// to be fast are excluded from the next blocks, as long as the NameNode has enough others.
package speed

import (
	"cmp"
	"slices"
	"sync"
	"time"

	wire "holdfast/internal/hadoop/wire/hdfs"
)

const (
	sampleSize = 8 << 20 // bytes of a block, from which on its speed counts
	poorSpeed  = 8 << 20 // bytes a second; then any other DataNodes may be better
	slowFactor = 4       // times slower than the best is slow
	speedLives = 5 * time.Minute
)

// Nodes are the speeds of the DataNodes of recent blocks. Its methods may be
// called from any goroutine, and the zero value is ready.
type Nodes struct {
	mu   sync.Mutex
	seen []speed
}

type speed struct {
	info *wire.DatanodeInfoProto
	best float64 // bytes a second
	at   time.Time
}

// Note records a block's speed, in bytes a second, and the DataNodes of its pipeline.
func (s *Nodes) Note(nodes []*wire.DatanodeInfoProto, rate float64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(now)
next:
	for _, n := range nodes {
		for i := range s.seen {
			if o := &s.seen[i]; o.info.GetId().GetDatanodeUuid() == n.GetId().GetDatanodeUuid() {
				o.best, o.at = max(o.best, rate), now
				continue next
			}
		}
		s.seen = append(s.seen, speed{n, rate, now})
	}
}

// drop removes old records. s.mu is held.
func (s *Nodes) drop(now time.Time) {
	fresh := s.seen[:0]
	for _, o := range s.seen {
		if now.Sub(o.at) < speedLives {
			fresh = append(fresh, o)
		}
	}
	s.seen = fresh
}

// Slow returns the DataNodes to be excluded, the slowest first.
func (s *Nodes) Slow(now time.Time) []*wire.DatanodeInfoProto {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(now)
	best := 0.0
	for _, o := range s.seen {
		best = max(best, o.best)
	}
	slices.SortFunc(s.seen, func(a, b speed) int { return cmp.Compare(a.best, b.best) })
	var slow []*wire.DatanodeInfoProto
	for _, o := range s.seen {
		if o.best < poorSpeed || slowFactor*o.best < best {
			slow = append(slow, o.info)
		}
	}
	return slow
}

// Sample measures the speed of a pipeline, without the time in which nothing was in
// flight. It is not for several goroutines at once.
type Sample struct {
	began, since time.Time // since: when there was something under way; zero: there is nothing
	from         int64     // bytes of the block that were acked before
	busy         time.Duration
}

// Start begins a measurement after so many bytes of the block have been acked. busy: something
// is in flight.
func (s *Sample) Start(from int64, busy bool) {
	*s = Sample{began: time.Now(), from: from}
	if busy {
		s.since = s.began
	}
}

// Work is called when something is in flight.
func (s *Sample) Work() {
	if s.since.IsZero() {
		s.since = time.Now()
	}
}

// Pause is called when nothing is.
func (s *Sample) Pause() {
	if !s.since.IsZero() {
		s.busy += time.Since(s.since)
		s.since = time.Time{}
	}
}

// Speed returns bytes per second; ok is false if too little was written, or the writer
// itself was slow.
func (s *Sample) Speed(acked int64) (rate float64, ok bool) {
	s.Pause()
	n := acked - s.from
	if n < sampleSize || s.busy <= 0 || 2*s.busy < time.Since(s.began) {
		return 0, false
	}
	return float64(n) / s.busy.Seconds(), true
}
