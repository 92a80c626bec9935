package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
	"holdfast/proto"
)

// aliveFor is how long another job counts as alive after it was seen to be.
const aliveFor = time.Minute

// otherJobs returns the other jobs that are alive and write to a store. Those that were
// lost without removing their writers are fenced, which notes say. Once this job has
// ended, the others are not observed for that, and all count as alive.
func (p *Preparer) otherJobs(ctx context.Context, store store.Store) (jobs []string, notes []string, err error) {
	all, err := writers.List(ctx, store)
	if err != nil {
		return nil, nil, err
	}
	unsure := false
	for _, w := range all {
		if job := proto.WritersJob(w); job != p.cfg.Job && !slices.Contains(jobs, job) {
			jobs = append(jobs, job)
			unsure = unsure || time.Since(p.lastAlive(store, job)) > aliveFor
		}
	}
	if !unsure || p.hasEnded() {
		return jobs, nil, nil
	}
	alive, lost, err := writers.OtherJobs(ctx, store, p.cfg.Job, proto.WritersJob, writers.LostAfter)
	if err != nil {
		return nil, nil, err
	}
	p.mu.Lock()
	for _, job := range alive {
		p.alive[store.URI()+" "+job] = time.Now()
	}
	p.mu.Unlock()
	if len(lost) > 0 {
		notes = append(notes, "fenced jobs that were lost and could still write here: "+strings.Join(lost, ", "))
		err = writers.FenceJobs(ctx, store, lost, proto.WritersJob)
	}
	return alive, notes, err
}

// describeNested says which directories in a store are left alone because other jobs write
// to them, by their writers.
func (p *Preparer) describeNested(nested map[string][]string) (notes []string) {
	for _, dir := range slices.Sorted(maps.Keys(nested)) {
		var jobs []string
		for _, w := range nested[dir] {
			if job := proto.WritersJob(w); job != p.cfg.Job && !slices.Contains(jobs, job) {
				jobs = append(jobs, job)
			}
		}
		if len(jobs) > 0 {
			notes = append(notes, fmt.Sprintf("another job writes to %s, and what it may not have completed there is left alone: %s", dir, strings.Join(jobs, ", ")))
		}
	}
	return notes
}

func (p *Preparer) lastAlive(store store.Store, job string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.alive[store.URI()+" "+job]
}

// Finish is called once, when the job has ended and nothing of it is to write any longer.
// It fences the containers whose agents have not left in order, since they may still be
// alive, removes the job's heartbeat, and leaves the directories safe to start from, of which
// the notes are as those of Prepare. succeeded says that the program has saved all that it
// wanted to.
func (p *Preparer) Finish(ctx context.Context, succeeded bool) (notes []string) {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	return slices.Concat(p.each(func(c *proto.CheckpointSpec) ([]string, error) {
		if err := p.finish(ctx, c.Uri, succeeded); err != nil {
			p.cfg.Log.WithError(err).Warnf("what is left of this job's writers in %s stays", c.Uri)
		}
		return p.prepare(ctx, c, writers.Nobody, nil)
	}))
}

func (p *Preparer) finish(ctx context.Context, uri string, succeeded bool) error {
	store, err := p.cfg.OpenStore(ctx, uri)
	if err != nil {
		return err
	}
	defer store.Close()
	err = p.removeWriters(ctx, store)
	if succeeded {
		err = errors.Join(err, formats.SavesEnded(ctx, store))
	}
	return err
}

// removeWriters removes the master's own writer and fences all others of the job.
func (p *Preparer) removeWriters(ctx context.Context, ckptStore store.Store) error {
	all, err := writers.List(ctx, ckptStore)
	for _, w := range all {
		switch job, container := proto.Writer(w); {
		case job != p.cfg.Job:
		case container == proto.MasterContainer, container == proto.SubmissionContainer:
			err = errors.Join(err, store.RemoveDir(ctx, ckptStore, writers.Dir(w)))
		default:
			err = errors.Join(err, writers.Fence(ctx, ckptStore, w))
		}
	}
	return err
}
