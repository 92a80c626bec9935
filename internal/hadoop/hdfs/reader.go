package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"
)

const (
	pieceSize  = 256 << 10
	aheadCount = 16 // pieces that a runner may be ahead
	keepCount  = 24 // pieces kept; more with several lanes
	keepShort  = 2  // pieces kept when memory is short
)

// Reader reads a file as it was when it was opened.
type Reader struct {
	src  *source
	life context.Context
	end  context.CancelFunc
	wg   sync.WaitGroup

	mu     sync.Mutex
	pieces map[int64]*piece
	clock  int64
	run    *runner // the one that reads ahead, or nil
	idle   *fileStream
	trial  trial
	closed bool

	lanes    []lane // connections to use at once; none: one, the runner's
	frontier int64  // the first piece that no lane has taken on
	horizon  int64  // pieces before it are to be fetched
}

// piece is a part of the file that was fetched, or is being fetched. Reader.mu
// guards used, read, users and late.
type piece struct {
	index    int64
	ready    chan struct{} // closed once data or err is set
	data     []byte
	err      error
	used     int64 // clock of the last use
	read     bool  // not only fetched ahead
	users    int   // who copy from data, or wait for it
	late     bool  // somebody waited for it
	owner    *Reader
	position cachePosition // in the cache, once it is fetched
}

// buffers are for whole pieces.
var buffers = sync.Pool{New: func() any { return new([pieceSize]byte) }}

func (s *Shared) newBuffer(n int64) []byte {
	s.memory.Add(int(n))
	if n < pieceSize { // at a file's end, and all of a small file
		return make([]byte, n)
	}
	return buffers.Get().(*[pieceSize]byte)[:]
}

// free returns the buffer for reuse: it must not be referenced any longer.
func (p *piece) free() {
	p.owner.shared().memory.Add(-len(p.data))
	if len(p.data) == pieceSize {
		buffers.Put((*[pieceSize]byte)(p.data))
	}
	p.data = nil
}

// runner fetches pieces one after the other, up to but not including target.
type runner struct{ next, target int64 }

// Open opens a file for reading.
func (c *Client) Open(ctx context.Context, name string) (*Reader, error) {
	src, err := c.open(ctx, name)
	if err != nil {
		return nil, err
	}
	if src.cipher, err = c.zones.Cipher(ctx, name, src.encryption); err != nil {
		return nil, Wrap("open", name, err)
	}
	r := &Reader{src: src, pieces: map[int64]*piece{}}
	r.life, r.end = context.WithCancel(context.Background())
	return r, nil
}

func (r *Reader) shared() *Shared { return r.src.c.shared }

// Size returns the file's length when it was opened.
func (r *Reader) Size() int64 { return r.src.size }

// Close closes connections; reads that are under way fail.
func (r *Reader) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.end()
	r.wg.Wait()
	if r.idle != nil {
		r.idle.close()
		r.idle = nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pieces {
		r.drop(p)
	}
	return nil
}

var errClosed = fmt.Errorf("the file is closed: %w", syscall.EBADF)

// ReadAt may be called from many goroutines.
func (r *Reader) ReadAt(b []byte, off int64) (int, error) {
	if off < 0 {
		return 0, Wrap("read", r.src.path, syscall.EINVAL)
	}
	n := 0
	for n < len(b) {
		if off >= r.src.size {
			return n, io.EOF
		}
		p, err := r.get(off / pieceSize)
		if err != nil {
			return n, Wrap("read", r.src.path, err)
		}
		k := copy(b[n:], p.data[off%pieceSize:])
		r.release(p)
		n += k
		off += int64(k)
	}
	return n, nil
}

// get returns a piece, fetching it if necessary. The caller must release it.
func (r *Reader) get(i int64) (*piece, error) {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil, errClosed
	}
	p := r.pieces[i]
	if p == nil {
		p = r.begin(i)
	}
	r.clock++
	p.used, p.read = r.clock, true
	p.users++
	if len(r.lanes) > 1 && r.pieces[i-1] != nil && !r.shared().memory.Short() {
		r.fetchStripes(i)
	} else if run := r.run; run != nil && i < run.next && i+aheadCount >= run.next {
		run.target = max(run.target, min(i+1+aheadCount, r.count())) // someone follows it
	} else if next, ok := r.resume(i); ok {
		r.follow(next, i+1+aheadCount)
	}
	r.mu.Unlock()
	err := errClosed
	select {
	case <-p.ready:
		err = p.err
	case <-r.life.Done():
	}
	if err != nil {
		r.release(p)
		return nil, err
	}
	return p, nil
}

func (r *Reader) release(p *piece) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.users--
	switch {
	case p.users > 0:
	case r.pieces[p.index] != p:
		p.free()
	case p.data != nil:
		r.shared().cache.touch(p)
	}
}

// drop forgets a piece that is not being fetched. r.mu is held.
func (r *Reader) drop(p *piece) {
	delete(r.pieces, p.index)
	r.shared().cache.forget(p)
	if p.users == 0 {
		p.free()
	}
}

// resume returns which piece to fetch ahead, if nothing is being fetched, now that piece i
// is read after the one before it: the next one that was not fetched, if it is near enough.
// r.mu is held.
func (r *Reader) resume(i int64) (next int64, ok bool) {
	if r.run != nil || r.pieces[i-1] == nil {
		return 0, false
	}
	next = i + 1
	for next < i+1+aheadCount/2 && r.pieces[next] != nil && !r.shared().memory.Short() {
		next++
	}
	return next, next < r.count() && r.pieces[next] == nil
}

func (r *Reader) count() int64 { return (r.src.size + pieceSize - 1) / pieceSize }

// begin starts fetching a piece that is missing: by a runner if the piece before it is
// there or it is the first one, else on its own. r.mu is held.
func (r *Reader) begin(i int64) *piece {
	if r.run == nil && (i == 0 || r.pieces[i-1] != nil) {
		target := i + 1
		if i > 0 && len(r.lanes) < 2 { // one that was read before shows that reading goes on
			target = i + aheadCount
		}
		r.follow(i, target)
		return r.pieces[i]
	}
	p := r.add(i)
	r.wg.Go(func() {
		s := &fileStream{s: r.src, pos: i * pieceSize, limit: min(r.src.size, (i+1)*pieceSize)}
		r.fetch(s, p, nil)
		s.close()
	})
	return p
}

// follow starts a runner at piece i. r.mu is held.
func (r *Reader) follow(i, target int64) {
	r.run = &runner{next: i, target: min(target, r.count())}
	s := r.idle
	r.idle = nil
	if s == nil || s.pos != i*pieceSize {
		if s != nil {
			s.close()
		}
		s = &fileStream{s: r.src, pos: i * pieceSize}
	}
	s.limit = r.src.size
	if i == 0 && s.block == nil { // maybe only a look at the beginning
		s.limit = min(r.src.size, pieceSize)
	}
	p := r.pieces[i]
	if p == nil {
		p = r.add(i)
	}
	run := r.run
	r.wg.Go(func() { r.runAhead(s, run, p) })
}

// runAhead fetches pieces until the runner's target; p is the first.
func (r *Reader) runAhead(s *fileStream, run *runner, p *piece) {
	for {
		began := time.Now()
		r.fetch(s, p, nil)
		r.mu.Lock()
		r.observe(p, time.Since(began))
		run.next++
		for run.next < run.target && r.pieces[run.next] != nil { // somebody else's
			run.next++
		}
		far := r.shared().memory.Short() && !p.read // nobody waits for it yet
		if p.err != nil || run.next >= run.target || far || r.closed || len(r.lanes) > 1 {
			r.run = nil
			if p.err == nil && !r.closed {
				s.releaseIdle()
				r.idle = s
			} else {
				s.close()
			}
			r.mu.Unlock()
			return
		}
		p = r.add(run.next)
		if s.pos != run.next*pieceSize {
			s.close()
			s.pos = run.next * pieceSize
		}
		s.limit = r.src.size
		r.mu.Unlock()
	}
}

// add adds a piece that is being fetched, and drops the least recently used ones: those
// that were read before those that were only fetched ahead. r.mu is held.
func (r *Reader) add(i int64) *piece {
	keep := max(keepCount, (len(r.lanes)+1)*stripeSize)
	if r.shared().memory.Short() {
		keep = keepShort
	}
	for len(r.pieces) >= keep {
		var oldest *piece
		for _, p := range r.pieces {
			select {
			case <-p.ready:
			default:
				continue // being fetched
			}
			if oldest == nil || p.read && !oldest.read || p.read == oldest.read && p.used < oldest.used {
				oldest = p
			}
		}
		if oldest == nil {
			break
		}
		r.drop(oldest)
	}
	r.clock++
	p := &piece{index: i, ready: make(chan struct{}), used: r.clock, owner: r}
	r.pieces[i] = p
	return p
}

// fetch reads a piece over s, or fails it with err. A piece that failed is dropped.
func (r *Reader) fetch(s *fileStream, p *piece, err error) {
	r.shared().memory.Relieve()
	data := r.shared().newBuffer(min(pieceSize, r.src.size-p.index*pieceSize))
	if err == nil {
		if err = s.readFull(r.life, data); err == nil {
			r.src.cipher.XOR(data, p.index*pieceSize)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p.data, p.late = data, p.users > 0
	if err != nil {
		p.err = err
		if errors.Is(err, context.Canceled) {
			p.err = errClosed
		}
		delete(r.pieces, p.index)
		p.free()
	} else {
		r.shared().cache.touch(p)
	}
	close(p.ready)
}
