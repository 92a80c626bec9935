package hdfs

import "time"

// When a reader has to wait for a slow DataNode, it reads from the DataNodes of the other
// replicas as well: up to maxLanes lanes, each with a connection of its own, fetch stripes
// of the file at the same time. A lane that has nothing to do takes over half of what
// another one has left, so the reader gets the speed of all lanes together. A DataNode that
// is much slower than the others is abandoned.
const (
	stripeSize = 16          // pieces
	maxLanes   = 4           // connections
	trialSize  = 64          // pieces fetched over one connection before it is judged
	trialTime  = time.Second // the same as a time, if that comes first
	fastEnough = 300 << 20   // bytes per second; above, more connections do not pay off
	judgedBy   = 4           // pieces of a lane before it is compared with the others
	muchSlower = 4           // a DataNode that takes so many times as long is abandoned
	tolerable  = 25 << 20    // bytes per second; a DataNode that is faster is never abandoned
)

// trial is a measurement of one connection.
type trial struct {
	pieces int // fetched ahead
	waited int // of these, the pieces that a read waited for
	took   time.Duration
}

// observe records the fetching of a piece ahead, and begins to use lanes if one connection
// is too slow. r.mu is held.
func (r *Reader) observe(p *piece, took time.Duration) {
	if len(r.lanes) > 1 {
		return
	}
	t := &r.trial
	t.pieces++
	t.took += took
	if p.late {
		t.waited++
	}
	if t.pieces < trialSize && t.took < trialTime || r.src.policy != nil { // a block group's cells are read from several anyway
		return
	}
	_, nodes := r.src.at(p.index*pieceSize, 0)
	if 2*t.waited > t.pieces && t.took > time.Duration(t.pieces)*pieceSize*time.Second/fastEnough && len(nodes) > 1 {
		r.lanes = make([]lane, min(maxLanes, len(nodes)))
	}
	*t = trial{}
}

// lane fetches stripes over one connection. Reader.mu guards it.
type lane struct {
	running   bool
	next, end int64 // the pieces that it still has to fetch
	trial     trial // with its present DataNode
}

// fetchStripes starts fetching the stripes after piece i, which is being read.
// r.mu is held.
func (r *Reader) fetchStripes(i int64) {
	n := int64(len(r.lanes))
	if i < r.frontier-(n+1)*stripeSize || i >= r.frontier {
		r.frontier = i + 1 // the reader has moved to another place
	}
	r.horizon = min((i/stripeSize+n)*stripeSize, r.count())
	for k := range r.lanes {
		if l := &r.lanes[k]; !l.running {
			if p := r.nextPiece(l); p != nil {
				l.running = true
				r.wg.Go(func() { r.runLane(k, p) })
			}
		}
	}
}

// nextPiece returns the next piece for a lane: of its stripe, of the next stripe, or of the
// second half of what another lane has left. It is nil if there is none. r.mu is held.
func (r *Reader) nextPiece(l *lane) *piece {
	for !r.closed {
		for l.next < l.end {
			i := l.next
			l.next++
			if r.pieces[i] == nil {
				return r.add(i)
			}
		}
		if r.frontier < r.horizon {
			l.next, l.end = r.frontier, min((r.frontier/stripeSize+1)*stripeSize, r.horizon)
			r.frontier = l.end
			continue
		}
		var most *lane
		for k := range r.lanes {
			if o := &r.lanes[k]; o != l && o.next < o.end && (most == nil || o.end-o.next > most.end-most.next) {
				most = o
			}
		}
		if most == nil {
			return nil
		}
		l.next, l.end = most.next+(most.end-most.next)/2, most.end
		most.end = l.next
	}
	return nil
}

// runLane fetches p and the pieces after it, until there are none. When a DataNode fails, the
// stream tries another; if all fail, the lane ends, and the next read starts it again.
func (r *Reader) runLane(k int, p *piece) {
	s := &fileStream{s: r.src, lane: k}
	defer func() { s.close() }()
	for {
		if at := p.index * pieceSize; s.pos != at {
			s.close()
			s.pos = at
		}
		r.mu.Lock()
		s.limit = min(r.src.size, max(p.index+1, r.lanes[k].end)*pieceSize)
		r.mu.Unlock()
		began := time.Now()
		r.fetch(s, p, nil)
		r.mu.Lock()
		l := &r.lanes[k]
		l.trial.pieces++
		l.trial.took += time.Since(began)
		leave := r.tooSlow(l)
		if leave {
			l.trial = trial{}
		}
		failed := p.err != nil
		if failed {
			l.next = l.end
			p = nil
		} else {
			p = r.nextPiece(l)
		}
		l.running = p != nil
		r.mu.Unlock()
		if leave && s.from != nil {
			r.src.markSlow(s)
			s.close()
		}
		if p == nil {
			return
		}
	}
}

// tooSlow reports whether a lane's DataNode is to be abandoned. r.mu is held.
func (r *Reader) tooSlow(l *lane) bool {
	if l.trial.pieces < judgedBy || l.trial.took < time.Duration(l.trial.pieces)*pieceSize*time.Second/tolerable {
		return false
	}
	mine := l.trial.took / time.Duration(l.trial.pieces)
	for k := range r.lanes {
		o := &r.lanes[k]
		if o != l && o.trial.pieces >= judgedBy && mine > muchSlower*o.trial.took/time.Duration(o.trial.pieces) {
			return true
		}
	}
	return false
}
