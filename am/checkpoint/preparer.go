// Package checkpoint looks after a job's checkpoint directories on behalf of its
// application master: it prepares them before tasks start, seals checkpoints as they
// become complete, and keeps the job's heartbeat in them, by which other jobs tell that
// it is alive.
package checkpoint

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
	"holdfast/internal/backoff"
	"holdfast/proto"
	"holdfast/runtime"
)

// Config is what the package needs to know about a job.
type Config struct {
	Job         string // its ID
	Checkpoints []*proto.CheckpointSpec
	Files       []*proto.FileSpec // in the tasks' working directories
	// OpenStore opens a checkpoint directory.
	OpenStore func(ctx context.Context, uri string) (store.Store, error)
	Log       *logrus.Entry
}

const (
	// leftoverAge is how old the files of an unfinished save must be to count as
	// abandoned while tasks run that may be writing.
	leftoverAge = 10 * time.Minute
	// prepareTimeout bounds the preparation of a directory, and retryInterval is the
	// wait before another attempt within it.
	prepareTimeout = 2 * time.Minute
	retryInterval  = 2 * time.Second
)

// Preparer makes checkpoint directories safe to start tasks from. Its methods may be
// called concurrently.
type Preparer struct {
	cfg Config

	mu        sync.Mutex
	ended     bool                 // the job has: no heartbeat is created any longer
	described []string             // directories for which describeHidden has answered
	alive     map[string]time.Time // when other jobs were last seen alive, by directory and job
}

// NewPreparer returns a preparer.
func NewPreparer(cfg Config) *Preparer {
	return &Preparer{cfg: cfg, alive: map[string]time.Time{}}
}

func (p *Preparer) hasEnded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// Prepare makes every directory safe to start from, all of them concurrently. It fences
// the containers in lost first: the job has given them up, but what ran there may still
// be alive. allDown says that no task of the job runs but observers (observed), which may write for
// themselves, so that what unfinished saves have left is moved out of the way whatever its
// age. It returns notes of what was repaired, and of which directory could not be prepared: the tasks
// are started all the same, since they learn from a store that does not answer themselves.
func (p *Preparer) Prepare(ctx context.Context, allDown, observed bool, lost []string) (done, failed []string) {
	by := writers.Tasks
	switch {
	case allDown && observed:
		by = writers.Observers
	case allDown:
		by = writers.Nobody
	}
	return p.each(func(c *proto.CheckpointSpec) ([]string, error) { return p.prepare(ctx, c, by, lost) })
}

// each has something done in all directories concurrently, so that one that does not answer takes
// no time from the others. It returns notes of what f has done, and of where it has failed.
func (p *Preparer) each(f func(*proto.CheckpointSpec) (done []string, err error)) (done, failed []string) {
	doneIn, failedIn := make([][]string, len(p.cfg.Checkpoints)), make([][]string, len(p.cfg.Checkpoints))
	var wg sync.WaitGroup
	for i, c := range p.cfg.Checkpoints {
		wg.Go(func() {
			done, err := f(c)
			if len(done) > 0 {
				doneIn[i] = []string{c.Uri + ": " + strings.Join(done, "; ")}
			}
			if err != nil {
				failedIn[i] = []string{fmt.Sprintf("%s could not be made safe to start from: %v", c.Uri, err)}
			}
		})
	}
	wg.Wait()
	return slices.Concat(doneIn...), slices.Concat(failedIn...)
}

// prepare retries while the store does not answer. It returns what all tries have done.
func (p *Preparer) prepare(ctx context.Context, c *proto.CheckpointSpec, by writers.Activity, lost []string) (done []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	for {
		now, err := p.prepareOnce(ctx, c, by, lost)
		for _, what := range now {
			if !slices.Contains(done, what) {
				done = append(done, what)
			}
		}
		if err == nil || ctx.Err() != nil {
			return done, err
		}
		p.cfg.Log.WithError(err).Warnf("cannot make %s safe to start from; trying again", c.Uri)
		if !backoff.Sleep(ctx, retryInterval) {
			return done, err
		}
	}
}

func (p *Preparer) prepareOnce(ctx context.Context, c *proto.CheckpointSpec, by writers.Activity, lost []string) ([]string, error) {
	store, err := p.cfg.OpenStore(ctx, c.Uri)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	for _, container := range lost {
		if err := writers.Fence(ctx, store, proto.WriterName(p.cfg.Job, container)); err != nil {
			return nil, err
		}
	}
	rule := runtime.CheckpointRule(c)
	if err := format.SetRule(ctx, store, rule); err != nil {
		return nil, err
	}
	if err := p.createHeartbeat(ctx, store); err != nil {
		return nil, err
	}
	others, done, err := p.otherJobs(ctx, store)
	if err != nil {
		return done, err
	}
	makeSafe, age := hdfsckpt.Repair, leftoverAge
	if len(others) == 0 {
		switch by {
		case writers.Nobody:
			age = 0
		case writers.Observers:
			makeSafe = hdfsckpt.RepairObserved
		}
	}
	if p.hasEnded() {
		makeSafe = hdfsckpt.RepairAtEnd
	}
	report, err := makeSafe(ctx, store, age)
	done = append(done, report.Lines()...)
	if len(others) > 0 {
		done = append(done, "another job writes here too, and what it may not have completed is left alone: "+strings.Join(others, ", "))
	}
	done = append(done, p.describeNested(report.Nested)...)
	if err != nil {
		return done, err
	}
	hidden, err := p.describeHidden(ctx, store, c)
	return append(done, hidden...), err
}
