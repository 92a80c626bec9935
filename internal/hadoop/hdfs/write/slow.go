package write

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	wire "holdfast/internal/hadoop/wire/hdfs"
)

// A block is written at the speed of the slowest DataNode of its pipeline. Which one that
// is can be derived only from several blocks: each DataNode is at least as fast as the
// fastest block that it took part in. After a slow block, its DataNodes that are not known
// to be fast are excluded from the next blocks, as long as the NameNode has enough others.
const (
	sampleSize = 8 << 20 // bytes of a block, from which on its speed counts
	poorSpeed  = 8 << 20 // bytes a second; then any other DataNodes may be better
	slowFactor = 4       // times slower than the best is slow
	speedLives = 5 * time.Minute
)

// speeds are the speeds of the DataNodes of recent blocks. Its methods may be
// called from any goroutine, and the zero value is ready.
type speeds struct {
	mu   sync.Mutex
	seen []speed
}

type speed struct {
	info *wire.DatanodeInfoProto
	best float64 // bytes a second
	at   time.Time
}

// note records a block's speed.
func (s *speeds) note(nodes []node, rate float64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(now)
next:
	for _, n := range nodes {
		for i := range s.seen {
			if o := &s.seen[i]; o.info.GetId().GetDatanodeUuid() == n.info.GetId().GetDatanodeUuid() {
				o.best, o.at = max(o.best, rate), now
				continue next
			}
		}
		s.seen = append(s.seen, speed{n.info, rate, now})
	}
}

// drop removes old records. s.mu is held.
func (s *speeds) drop(now time.Time) {
	fresh := s.seen[:0]
	for _, o := range s.seen {
		if now.Sub(o.at) < speedLives {
			fresh = append(fresh, o)
		}
	}
	s.seen = fresh
}

// slow returns the DataNodes to be excluded, the slowest first.
func (s *speeds) slow(now time.Time) []*wire.DatanodeInfoProto {
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

// sample measures the speed of a pipeline, without the time in which nothing was in
// flight. File.mu guards it.
type sample struct {
	began, since time.Time // since: when there was something under way; zero: there is nothing
	from         int64     // bytes of the block that were acked before
	busy         time.Duration
}

func (s *sample) start(from int64, busy bool) {
	*s = sample{began: time.Now(), from: from}
	if busy {
		s.since = s.began
	}
}

func (s *sample) work() {
	if s.since.IsZero() {
		s.since = time.Now()
	}
}

func (s *sample) pause() {
	if !s.since.IsZero() {
		s.busy += time.Since(s.since)
		s.since = time.Time{}
	}
}

// speed returns bytes per second; ok is false if too little was written, or the writer
// itself was slow.
func (s *sample) speed(acked int64) (rate float64, ok bool) {
	s.pause()
	n := acked - s.from
	if n < sampleSize || s.busy <= 0 || 2*s.busy < time.Since(s.began) {
		return 0, false
	}
	return float64(n) / s.busy.Seconds(), true
}

// slowAcks is how many acks in a row may have a DataNode's flag for being slow, which
// DataNodes set if dfs.pipeline.slownode is on; as
// dfs.client.mark.slownode.as.badnode.threshold.
const slowAcks = 10

// errSlow: a DataNode reports that it is slow.
var errSlow = errors.New("it reports that it is slow")

// saysSlow reads a DataNode's flag in an ack (PipelineAck.java: the status has 4 bits,
// one is reserved, ECN has 2, and then 2 are SLOW, of which 2 is the value SLOW).
func saysSlow(flag uint32) bool { return flag>>7&3 == 2 }
