package am

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/store"
	"holdfast/proto"
	"holdfast/runtime"
)

const (
	// settle is the wait for more of a save after a sign that it may be complete.
	settle = 300 * time.Millisecond
	// readLimit bounds, in bytes, what is read of one checkpoint to seal it:
	// files whose checksums nobody computed, as in checkpoints from before the job.
	readLimit = 256 << 20
	// saveQuiet is how long nothing is written of a checkpoint without a marker until
	// its save counts as ended: tasks that wait for that are stopped then.
	saveQuiet = 3 * time.Second
)

// sealer writes manifests for checkpoints that have become complete. One
// goroutine, run, does it; the loop only tells it what was committed.
type sealer struct {
	job   string
	specs []*proto.CheckpointSpec
	open  func(ctx context.Context, uri string) (store.Store, error)
	log   *logrus.Entry
	wake  chan struct{}
	news  chan struct{} // capacity 1: a newer checkpoint was found complete
	board *Board        // tells of the last recovery, and shows what is complete
	// newest is the step of the newest complete checkpoint, by directory; run's.
	newest map[string]int64
	quiet  time.Duration        // saveQuiet, or a test's
	still  map[string]lastFiles // by directory: what was there of the newest; run's

	mu         sync.Mutex
	queue      []*proto.Committed
	generation int
	all        bool // look at every directory
}

func newSealer(cfg Config, board *Board) *sealer {
	return &sealer{
		job: cfg.ID, specs: cfg.Spec.Checkpoints, open: cfg.OpenStore, log: cfg.Log,
		wake: make(chan struct{}, 1), news: make(chan struct{}, 1), board: board, newest: map[string]int64{},
		quiet: saveQuiet, still: map[string]lastFiles{},
	}
}

// lastFiles are those of a checkpoint that may get more, and since when.
type lastFiles struct {
	files string
	since time.Time
}

// committed takes in what an agent reports.
func (s *sealer) committed(c *proto.Committed, generation int) {
	s.mu.Lock()
	s.queue = append(s.queue, c)
	s.generation = generation
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// lookAtAll has what was committed sealed of which nobody has told this master.
func (s *sealer) lookAtAll() {
	s.mu.Lock()
	s.all = true
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run seals until ctx ends. What was committed last is sealed before it returns
// if done is closed first.
func (s *sealer) run(ctx context.Context, done <-chan struct{}) {
	opened := stores{}
	defer opened.close()
	dirs := map[string]*sums{}
	specs := map[string]*proto.CheckpointSpec{}
	for _, c := range s.specs {
		dirs[c.Path], specs[c.Path] = newSums(), c
	}
	due, changed := map[string]time.Time{}, map[string]time.Time{} // when to look into a directory, and its last change
	for last := false; !last; {
		select {
		case <-ctx.Done():
			return
		case <-done:
			last = true
		case <-s.wake:
		case <-soonest(due):
		}
		s.mu.Lock()
		queue, generation, all := s.queue, s.generation, s.all
		s.queue, s.all = nil, false
		s.mu.Unlock()
		for _, c := range queue {
			spec := specs[c.Path]
			if spec == nil {
				continue
			}
			for _, f := range c.Files {
				dirs[c.Path].take(f)
				if !runtime.MayComplete(spec, f.Name) {
					continue
				}
				changed[c.Path] = time.Now()
				if _, ok := due[c.Path]; !ok {
					due[c.Path] = changed[c.Path].Add(patience(spec))
				}
			}
		}
		if all {
			for name := range specs {
				due[name] = time.Now()
			}
		}
		for name, at := range due {
			if !last && time.Now().Before(at) {
				continue
			}
			if next := changed[name].Add(patience(specs[name])); next.After(at) { // once more
				due[name] = next
			} else {
				delete(due, name)
			}
			again, err := s.seal(ctx, opened, specs[name].Uri, dirs[name], generation)
			if err != nil && ctx.Err() == nil {
				s.log.WithError(err).Warnf("cannot seal checkpoints in %s; they are tried again at the next save", specs[name].Uri)
			}
			if at, ok := due[name]; !again.IsZero() && (!ok || again.Before(at)) {
				due[name] = again
			}
		}
	}
}

// soonest sends when the first of the times has come; never if there is none.
func soonest(due map[string]time.Time) <-chan time.Time {
	if len(due) == 0 {
		return nil
	}
	return time.After(time.Until(slices.MinFunc(slices.Collect(maps.Values(due)), time.Time.Compare)))
}

// patience is how long after a change to look: plain checkpoints may count as
// complete after a time of quiet, with a little more, as files' times are not ours.
func patience(c *proto.CheckpointSpec) time.Duration {
	if c.QuietSeconds == 0 {
		return settle
	}
	return time.Duration(c.QuietSeconds*float64(time.Second)) + time.Second
}

// stores are those that run has open, by URI: what a store knows of manifests is
// not asked again as long as it stays open.
type stores map[string]store.Store

func (o stores) get(ctx context.Context, uri string, open func(context.Context, string) (store.Store, error)) (store.Store, error) {
	if s, ok := o[uri]; ok {
		return s, nil
	}
	s, err := open(ctx, uri)
	if err == nil {
		o[uri] = s
	}
	return s, err
}

func (o stores) close() {
	for _, s := range o {
		_ = s.Close() // nothing is being written
	}
}

// seal seals what is complete and not sealed yet. again is when to look once more
// whether a save has ended; zero: there is no need to.
func (s *sealer) seal(ctx context.Context, opened stores, uri string, known *sums, generation int) (again time.Time, err error) {
	store, err := opened.get(ctx, uri, s.open)
	if err != nil {
		return again, err
	}
	list, err := hdfsckpt.Checkpoints(ctx, store)
	if err != nil {
		return again, err
	}
	if newest := hdfsckpt.NewestComplete(list); newest != nil && newest.Step > 0 {
		s.board.sealed(newest.Step)
		if again, err = s.ended(ctx, store, uri, *newest); err != nil {
			return again, err
		}
		if again.IsZero() {
			s.tell(uri, newest.Step)
		}
	}
	if err := hdfsckpt.RememberSavers(ctx, store, list); err != nil {
		return again, err
	}
	for _, c := range list {
		if c.State != hdfsckpt.Complete || unread(c, known.known) > readLimit {
			continue
		}
		if _, err := hdfsckpt.Seal(ctx, store, c, hdfsckpt.Meta{Job: s.job, Generation: int64(generation), After: s.board.lastRecovery()}, known.known); err != nil {
			return again, err
		}
		s.log.Debugf("sealed %s in %s", c.Name, uri)
	}
	return again, nil
}

// ended tells whether the save of the newest checkpoint has: zero if it has, else when
// to ask again. Where nothing says which of its files is the last, it has once
// nothing was written for a while.
func (s *sealer) ended(ctx context.Context, store store.Store, uri string, c hdfsckpt.Checkpoint) (again time.Time, err error) {
	if step, known := s.newest[uri]; known && step == c.Step || c.EndsByMarker() {
		return again, nil
	}
	files, writing, err := hdfsckpt.Unfinished(ctx, store, c)
	if err != nil {
		return again, err
	}
	now := time.Now()
	if before, ok := s.still[uri]; !ok || before.files != files || writing {
		s.still[uri] = lastFiles{files, now}
		return now.Add(s.quiet), nil
	} else if at := before.since.Add(s.quiet); now.Before(at) {
		return at, nil
	}
	delete(s.still, uri)
	return again, nil
}

// tell has the loop know that the newest checkpoint is another than before.
func (s *sealer) tell(uri string, step int64) {
	if before, known := s.newest[uri]; known && step == before {
		return
	}
	s.newest[uri] = step
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// unread is how many bytes sealing a checkpoint would have to read.
func unread(c hdfsckpt.Checkpoint, known hdfsckpt.Known) int64 {
	var n int64
	for _, f := range c.Files {
		if _, ok := known.Of(f); !ok {
			n += f.Size
		}
	}
	return n
}
