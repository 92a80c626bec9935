package checkpoint

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
	"holdfast/proto"
)

// Heartbeat sends the job's heartbeat in each directory until ctx ends. Prepare creates
// it.
func (p *Preparer) Heartbeat(ctx context.Context) {
	var wg sync.WaitGroup
	for _, c := range p.cfg.Checkpoints {
		wg.Go(func() { p.heartbeat(ctx, c.Uri) })
	}
	wg.Wait()
}

// writer is the name under which the master itself appears among a store's writers.
func (p *Preparer) writer() string { return proto.WriterName(p.cfg.Job, proto.MasterContainer) }

// createHeartbeat makes the directory whose modification time is the job's heartbeat. The
// record of the submission, in whose place it is, is removed.
func (p *Preparer) createHeartbeat(ctx context.Context, ckptStore store.Store) error {
	if p.hasEnded() {
		return nil
	}
	if err := store.MkdirAll(ctx, ckptStore, writers.Dir(p.writer()), 0o755); err != nil {
		return err
	}
	err := ckptStore.Remove(ctx, writers.Dir(proto.WriterName(p.cfg.Job, proto.SubmissionContainer)))
	if store.Vanished(err) {
		err = nil
	}
	return err
}

func (p *Preparer) heartbeat(ctx context.Context, uri string) {
	tick := time.NewTicker(writers.HeartbeatEvery)
	defer tick.Stop()
	var store store.Store
	defer func() {
		if store != nil {
			store.Close()
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var err error
		if store == nil {
			store, err = p.cfg.OpenStore(ctx, uri)
		}
		if err == nil {
			err = writers.Heartbeat(ctx, store, p.writer())
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, fs.ErrNotExist) { // it may not have been created yet
			p.cfg.Log.WithError(err).Warnf("cannot write the job's heartbeat in %s; other jobs may take it for lost", uri)
		}
	}
}
