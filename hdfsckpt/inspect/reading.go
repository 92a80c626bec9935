package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/store"
)

const (
	// readerIndex and readerTensor are a Browser's Limits: many ask it, and it may run in a
	// process that has other things to do.
	readerIndex  = 8 << 20
	readerTensor = 16 << 20
	// openTimeout bounds finding the tensors of a checkpoint, summaryTimeout reading one of
	// them, and readTimeout reading all of one or two checkpoints.
	openTimeout    = 30 * time.Second
	summaryTimeout = 2 * time.Minute
	readTimeout    = 30 * time.Minute
	// bins are those of a histogram.
	bins = 40
	// resultsKept is how many results each queue remembers, for keepResult, or keepFailure where
	// there is none; changesKept bounds what one takes. A failure is kept for those who wait for
	// the result: what has failed once may not fail again.
	resultsKept = 8
	keepResult  = 15 * time.Minute
	keepFailure = 30 * time.Second
	changesKept = 2000
)

var readerLimits = Limits{Index: readerIndex, Tensor: readerTensor}

// Reading is how far a reading of data has come.
type Reading[T any] struct {
	Started     bool
	Finished    bool
	Done, Total int64  // bytes
	Before      string // what is read before it, if it has to wait; empty if it does not
	Result      T      // once Finished, unless there is an Err
	Err         error
	At          time.Time // when it was finished
}

// Percent returns how much was read.
func (r Reading[T]) Percent() int {
	if r.Total <= 0 {
		return 0
	}
	return int(min(100, 100*r.Done/r.Total))
}

// queue does one reading at a time, and remembers the results of the last ones.
type queue struct {
	mu     sync.Mutex
	recent []*reading // the newest first
}

// reading is a reading of data that goes on or has ended.
type reading struct {
	key         string
	what        string // for people
	done, total atomic.Int64
	finished    chan struct{} // closed when the next three are set
	result      any
	err         error
	at          time.Time
}

func (r *reading) ended() bool {
	select {
	case <-r.finished:
		return true
	default:
		return false
	}
}

// find returns the reading with a key. If there is none, and nothing else is being read, it
// begins one with f if start is set; otherwise it returns what is being read.
func (q *queue) find(key, what string, start bool, f func(r *reading)) (r, before *reading) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range q.recent {
		if r.key == key {
			return r, nil
		}
	}
	for _, r := range q.recent {
		if !r.ended() {
			return nil, r
		}
	}
	if !start {
		return nil, nil
	}
	r = &reading{key: key, what: what, finished: make(chan struct{})}
	q.recent = append([]*reading{r}, q.recent[:min(len(q.recent), resultsKept-1)]...)
	go f(r)
	return r, nil
}

// forget drops a result.
func (q *queue) forget(r *reading) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.recent = slices.DeleteFunc(q.recent, func(x *reading) bool { return x == r })
}

// run returns a reading of a queue, and starts it if start is set and nothing else is being read there.
// It waits for its end until ctx has ended.
func run[T any](ctx context.Context, b *Browser, q *queue, key, what string, start bool, timeout time.Duration, f func(ctx context.Context, progress Progress) (T, error)) Reading[T] {
	r, before := q.find(key, what, start, func(r *reading) {
		b.running.Add(1)
		defer b.running.Done()
		ctx, cancel := context.WithTimeoutCause(b.ctx, timeout, fmt.Errorf("it took more than %v, which is the limit here", timeout))
		defer cancel()
		r.result, r.err = f(ctx, func(done, total int64) { r.done.Store(done); r.total.Store(total) })
		if errors.Is(r.err, context.DeadlineExceeded) {
			r.err = context.Cause(ctx)
		}
		r.at = time.Now()
		close(r.finished)
		keep := keepResult
		if r.err != nil {
			keep = keepFailure
		}
		time.AfterFunc(keep, func() { q.forget(r) })
	})
	if r == nil {
		var none Reading[T]
		if before != nil {
			none.Before = before.what
		}
		return none
	}
	select {
	case <-r.finished:
	case <-ctx.Done():
	}
	state := Reading[T]{Started: true, Done: r.done.Load(), Total: r.total.Load()}
	if r.ended() {
		state.Finished, state.Err, state.At = true, r.err, r.at
		state.Result, _ = r.result.(T)
	}
	return state
}

// keyOf identifies a checkpoint as it was listed: one that has changed is another.
func keyOf(kind string, dir int, entries ...*Entry) string {
	key := fmt.Sprintf("%s %d", kind, dir)
	for _, e := range entries {
		key += fmt.Sprintf(" %q %d %d", e.Location, e.Bytes, e.Time.UnixNano())
	}
	return key
}

// Files returns the files of a checkpoint; none of one that was moved aside.
func (e *Entry) Files() []File {
	if e.of == nil {
		return nil
	}
	return Files(e.of)
}

// VerifiedBy says what Verify compares it with.
func (e *Entry) VerifiedBy() string { return VerifiedBy(e.of) }

// Marker is the file without which it does not count as complete; empty if there is none.
func (e *Entry) Marker() string { return e.of.Marker }

// CompleteWhen says when a checkpoint of its format is complete.
func (e *Entry) CompleteWhen() string { return e.of.Traits().CompleteWhen }

// HasTensors reports whether tensors of its format can be read.
func (e *Entry) HasTensors() bool { return e.of != nil && e.of.Contents() != nil }

// Checkpoint returns a checkpoint by its location, as of the last listing if that has it and is
// not old.
func (b *Browser) Checkpoint(ctx context.Context, dir int, location string) (*Entry, error) {
	d, err := b.directory(dir)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	found := d.last.found
	d.mu.Unlock()
	var e *Entry
	if found != nil && time.Since(found.At) < listingOld {
		e, _ = found.Find(location) // else it may be newer
	}
	if e == nil {
		if found, err = b.List(ctx, dir); err != nil {
			return nil, err
		}
		e, err = found.Find(location)
	}
	if err == nil && e.of == nil {
		err = missing{fmt.Sprintf("%s was moved aside, and is no checkpoint: it is in %s", e.Name, e.Aside)}
	}
	return e, err
}

// tensorList is what was found in one checkpoint.
type tensorList struct {
	key  string
	list []Tensor
	idle *time.Timer
}

// Tensors returns the tensors of a checkpoint, the largest first. Nobody may change them.
// Those of the checkpoint that was looked at last are remembered for a short while.
func (b *Browser) Tensors(ctx context.Context, dir int, e *Entry) ([]Tensor, error) {
	key := keyOf("tensors", dir, e)
	b.tensorsMu.Lock()
	last := b.tensors
	b.tensorsMu.Unlock()
	if last.key == key {
		return last.list, nil
	}
	done := b.flights.DoChan(key, func() (any, error) {
		b.running.Add(1)
		defer b.running.Done()
		ctx, cancel := context.WithTimeoutCause(b.ctx, openTimeout, fmt.Errorf("it took more than %v", openTimeout))
		defer cancel()
		var list []Tensor
		err := b.withTensors(ctx, dir, e, func(t *format.Tensors) error {
			list = DescribeTensors(t.All())
			return nil
		})
		if errors.Is(err, context.DeadlineExceeded) {
			err = context.Cause(ctx)
		}
		if err == nil {
			b.remember(key, list)
		}
		return list, err
	})
	select {
	case r := <-done:
		list, _ := r.Val.([]Tensor)
		return list, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (b *Browser) remember(key string, list []Tensor) {
	b.tensorsMu.Lock()
	defer b.tensorsMu.Unlock()
	if b.tensors.idle != nil {
		b.tensors.idle.Stop()
	}
	b.tensors = tensorList{key, list, time.AfterFunc(idleTime, func() {
		b.tensorsMu.Lock()
		defer b.tensorsMu.Unlock()
		if b.tensors.key == key {
			b.tensors = tensorList{}
		}
	})}
}

// withTensors opens the tensors of a checkpoint, when its turn has come.
func (b *Browser) withTensors(ctx context.Context, dir int, e *Entry, f func(*format.Tensors) error) error {
	d, err := b.directory(dir)
	if err != nil {
		return err
	}
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return b.use(ctx, d, func(s store.Store) error {
		t, err := format.OpenTensorsWithin(ctx, s, e.of, readerIndex)
		if err != nil {
			return err
		}
		defer t.Close()
		return f(t)
	})
}

// Summarise reads a tensor, one at a time. It waits for the result until ctx has ended.
func (b *Browser) Summarise(ctx context.Context, dir int, e *Entry, name string) Reading[Values] {
	return run(ctx, b, &b.summaries, keyOf("tensor "+name, dir, e), name, true, summaryTimeout, func(ctx context.Context, progress Progress) (v Values, err error) {
		err = b.onStore(ctx, dir, func(s store.Store) error {
			t, err := format.OpenTensorsWithin(ctx, s, e.of, readerIndex)
			if err != nil {
				return err
			}
			defer t.Close()
			x := t.Find(name)
			if x == nil {
				return missing{fmt.Sprintf("there is no tensor %s in %s", name, e.Name)}
			}
			v, err = Summarise(ctx, x, bins, readerTensor, progress)
			return err
		})
		return v, err
	})
}

// Comparison is what differs between two checkpoints.
type Comparison struct {
	Changes []Change
	Omitted int // further changes
}

// Compare compares two checkpoints of a directory; nothing else that takes long is read at the
// same time. It waits for the result until ctx has ended.
func (b *Browser) Compare(ctx context.Context, dir int, from, to *Entry) Reading[Comparison] {
	what := fmt.Sprintf("the comparison of %s and %s", from.Name, to.Name)
	return run(ctx, b, &b.long, keyOf("diff", dir, from, to), what, true, readTimeout, func(ctx context.Context, progress Progress) (c Comparison, err error) {
		err = b.onStore(ctx, dir, func(s store.Store) error {
			c.Changes, err = Compare(ctx, s, from.of, to.of, readerLimits, progress)
			return err
		})
		if n := len(c.Changes); n > changesKept {
			c = Comparison{slices.Clone(c.Changes[:changesKept]), n - changesKept}
		}
		return c, err
	})
}

// Verification is what a verification has found.
type Verification struct {
	Verified
	Omitted int // further problems
}

// All is how many problems there are.
func (v Verification) All() int { return len(v.Problems) + v.Omitted }

// Verify verifies a checkpoint; nothing else that takes long is read at the same time. Unless
// start is set, it only returns how far that has come, if it was started before. It waits for
// the result until ctx has ended.
func (b *Browser) Verify(ctx context.Context, dir int, e *Entry, start bool) Reading[Verification] {
	return run(ctx, b, &b.long, keyOf("verify", dir, e), "the verification of "+e.Name, start, readTimeout, func(ctx context.Context, progress Progress) (v Verification, err error) {
		err = b.onStore(ctx, dir, func(s store.Store) error {
			v.Verified, err = Verify(ctx, s, e.of, e.Checkpoint, progress)
			return err
		})
		if n := len(v.Problems); n > changesKept {
			v.Problems, v.Omitted = slices.Clone(v.Problems[:changesKept]), n-changesKept
		}
		return v, err
	})
}

// onStore calls f with the store of a directory.
func (b *Browser) onStore(ctx context.Context, dir int, f func(store.Store) error) error {
	d, err := b.directory(dir)
	if err != nil {
		return err
	}
	return b.use(ctx, d, f)
}
