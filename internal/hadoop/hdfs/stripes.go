package hdfs

import "time"

// Where a reader waits for a DataNode that is slow, because of its disk or of
// the network to it, the other replicas' DataNodes are used as well: stripes of
// the file are fetched at the same time, each over a connection of its own.
const (
	stripeSize = 16        // pieces
	maxLanes   = 4         // connections
	trialSize  = 64        // pieces over one connection, before more are used
	fastEnough = 300 << 20 // bytes a second; then connections cost more than they bring
)

// trial is what one connection was seen to do.
type trial struct {
	pieces, waited int // fetched ahead; how many of them somebody waited for
	took           time.Duration
}

// judge learns from a piece that was fetched ahead. r.mu is held.
func (r *Reader) judge(p *piece, took time.Duration) {
	t := &r.trial
	t.pieces++
	t.took += took
	if p.users > 0 {
		t.waited++
	}
	if t.pieces < trialSize {
		return
	}
	_, nodes := r.src.at(p.index*pieceSize, 0)
	if t.waited > trialSize/2 && t.took > trialSize*pieceSize*time.Second/fastEnough && len(nodes) > 1 {
		r.lanes = min(maxLanes, len(nodes))
	}
	*t = trial{}
}

// spread sees that the stripes after piece i, which is being read, are fetched.
// r.mu is held.
func (r *Reader) spread(i int64) {
	for stripe := i / stripeSize; stripe < i/stripeSize+int64(r.lanes); stripe++ {
		var todo []*piece
		for j := max(i+1, stripe*stripeSize); j < min((stripe+1)*stripeSize, r.count()); j++ {
			if r.pieces[j] == nil {
				todo = append(todo, r.add(j))
			}
		}
		if len(todo) > 0 {
			r.wg.Go(func() { r.fetchStripe(todo, int(stripe%int64(r.lanes))) })
		}
	}
}

// fetchStripe fetches pieces in order. What a connection fails at is tried on
// others by the stream; if all fail, so do the pieces that are left.
func (r *Reader) fetchStripe(todo []*piece, lane int) {
	end := min(r.src.size, (todo[len(todo)-1].index+1)*pieceSize)
	s := &fileStream{s: r.src, limit: end, lane: lane}
	defer s.close()
	var err error
	for _, p := range todo {
		if at := p.index * pieceSize; s.pos != at {
			s.close()
			s.pos = at
		}
		r.fetch(s, p, err)
		err = p.err
	}
}
