package hdfs

import "time"

// Where a reader waits for a DataNode that is slow, because of its disk or of
// the network to it, the other replicas' DataNodes are used as well: lanes fetch
// stripes of the file at the same time, each over a connection of its own. A lane
// that has nothing to do takes over half of the remaining work of another one, so that
// the reader gets the speed of all together. A DataNode that is much slower than the
// others is abandoned.
const (
	stripeSize = 16          // pieces
	maxLanes   = 4           // connections
	trialSize  = 64          // pieces over one connection, before more are used
	trialTime  = time.Second // or as long as it took
	fastEnough = 300 << 20   // bytes a second; above that, more connections do not pay off
	judgedBy   = 4           // pieces of a lane, before it is compared with others
	muchSlower = 4           // times
	tolerable  = 25 << 20    // bytes a second; a DataNode that is faster is not abandoned
)

// trial is a measurement of one connection.
type trial struct {
	pieces, waited int // fetched ahead; how many of them somebody waited for
	took           time.Duration
}

// observe takes the fetching of a piece ahead into account. r.mu is held.
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
	next, end int64 // the pieces that are left of what it took on
	trial     trial // with its present DataNode
}

// fetchStripes starts fetching the stripes after piece i, which is being read.
// r.mu is held.
func (r *Reader) fetchStripes(i int64) {
	n := int64(len(r.lanes))
	if i < r.frontier-(n+1)*stripeSize || i >= r.frontier {
		r.frontier = i + 1 // reading goes on at another place
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

// nextPiece finds the next piece for a lane, nil if there is none: of its stripe, of the
// next one, or of the second half of what another lane has left. r.mu is held.
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

// runLane fetches pieces as long as there are any, beginning with p. After a failure, the
// stream tries other DataNodes; if all fail, the lane ends, and the next read tries again.
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

// tooSlow reports whether a lane's DataNode is not worth waiting for. r.mu is held.
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
