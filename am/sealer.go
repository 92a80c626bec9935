package am

import (
	"context"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/hdfsckpt"
	"holdfast/proto"
)

const (
	// settle is the wait for more of a save after a sign that it may be complete.
	settle = 300 * time.Millisecond
	// readLimit bounds, in bytes, what is read of one checkpoint to seal it:
	// files whose checksums nobody computed, as in checkpoints from before the job.
	readLimit = 256 << 20
)

// sealer writes manifests for checkpoints that have become complete. One
// goroutine, run, does it; the loop only tells it what was committed.
type sealer struct {
	job   string
	specs []*proto.CheckpointSpec
	open  func(ctx context.Context, uri string) (hdfsckpt.Store, error)
	log   *logrus.Entry
	wake  chan struct{}

	mu         sync.Mutex
	queue      []*proto.Committed
	generation int
	all        bool // look at every directory
}

func newSealer(cfg Config) *sealer {
	return &sealer{job: cfg.ID, specs: cfg.Spec.Checkpoints, open: cfg.OpenStore, log: cfg.Log, wake: make(chan struct{}, 1)}
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
	dirs := map[string]*sums{}
	for _, c := range s.specs {
		dirs[c.Path] = newSums()
	}
	for last := false; !last; {
		select {
		case <-ctx.Done():
			return
		case <-done:
			last = true
		case <-s.wake:
			select {
			case <-ctx.Done():
				return
			case <-done:
			case <-time.After(settle):
			}
		}
		s.mu.Lock()
		queue, generation, all := s.queue, s.generation, s.all
		s.queue, s.all = nil, false
		s.mu.Unlock()
		look := map[string]bool{}
		for _, c := range queue {
			if dirs[c.Path] == nil {
				continue
			}
			for _, f := range c.Files {
				dirs[c.Path].take(f)
				look[c.Path] = look[c.Path] || completes(f.Name)
			}
		}
		for _, c := range s.specs {
			if !look[c.Path] && !all {
				continue
			}
			if err := s.seal(ctx, c.Uri, dirs[c.Path], generation); err != nil && ctx.Err() == nil {
				s.log.WithError(err).Warnf("cannot seal checkpoints in %s; they are tried again at the next save", c.Uri)
			}
		}
	}
}

// completes tells whether a file may be the last of a save: TensorFlow's index
// or state file, a plain checkpoint's marker.
func completes(name string) bool {
	base := path.Base(name)
	return base == hdfsckpt.StateFile || base == hdfsckpt.Committed || strings.HasSuffix(base, ".index")
}

// seal seals what is complete and not sealed yet.
func (s *sealer) seal(ctx context.Context, uri string, known *sums, generation int) error {
	store, err := s.open(ctx, uri)
	if err != nil {
		return err
	}
	defer store.Close()
	list, err := hdfsckpt.Checkpoints(ctx, store)
	if err != nil {
		return err
	}
	for _, c := range list {
		if c.State != hdfsckpt.Complete || unread(c, known.known) > readLimit {
			continue
		}
		if _, err := hdfsckpt.Seal(ctx, store, c, hdfsckpt.Meta{Job: s.job, Generation: int64(generation)}, known.known); err != nil {
			return err
		}
		s.log.Debugf("sealed %s in %s", c.Name, uri)
	}
	return nil
}

// unread is how many bytes sealing a checkpoint would have to read.
func unread(c hdfsckpt.Checkpoint, known map[string]hdfsckpt.Sum) int64 {
	var n int64
	for _, f := range c.Files {
		if k, ok := known[f.Name]; !ok || k.Size != f.Size {
			n += f.Size
		}
	}
	return n
}
