package am

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"holdfast/am/checkpoint"
	"holdfast/am/core"
	"holdfast/am/core/action"
	"holdfast/am/core/event"
)

// earlyPrepareValid is for how long the result of preparing the store ahead of time is
// used: others may write to it while containers are being waited for.
const earlyPrepareValid = time.Minute

// preparation carries out action.PrepareStore in the background. Its fields and methods
// belong to the event loop.
type preparation struct {
	preparer *checkpoint.Preparer
	done     chan event.StorePrepared // capacity 1: core asks for one at a time
	running  sync.WaitGroup

	// launched are the containers whose agents may be alive and that are not fenced.
	launched map[string]bool
	early    *earlyPreparation // nil: there is none, or it was used
}

// earlyPreparation prepares the store while containers are still being waited for.
type earlyPreparation struct {
	began        time.Time
	done, failed []string      // its notes
	ended        chan struct{} // closed when they are there
	cancel       context.CancelFunc
}

func newPreparation(p *checkpoint.Preparer) *preparation {
	return &preparation{preparer: p, done: make(chan event.StorePrepared, 1), launched: map[string]bool{}}
}

// startEarly begins to prepare the store before core asks for that, when no task of the
// job has run yet.
func (p *preparation) startEarly(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	early := &earlyPreparation{began: time.Now(), ended: make(chan struct{}), cancel: cancel}
	p.early = early
	p.running.Go(func() {
		defer cancel()
		defer close(early.ended)
		early.done, early.failed = p.preparer.Prepare(ctx, true, false, nil)
	})
}

// start prepares the store, or waits for what startEarly has begun; done receives the
// result. One that began too long ago is ended first, and what it has done is told, too; where it
// has failed is not, as another one follows.
func (p *preparation) start(ctx context.Context, job *core.Job, a action.PrepareStore) {
	early := p.early
	p.early = nil
	lost := append(p.takeLost(job), a.Fenced...)
	p.running.Go(func() {
		var notes []string
		valid := early != nil && time.Since(early.began) <= earlyPrepareValid
		if early != nil {
			if !valid {
				early.cancel()
			}
			<-early.ended
			notes = early.done
		}
		if valid && len(lost) == 0 {
			notes = append(notes, early.failed...)
		} else {
			done, failed := p.preparer.Prepare(ctx, a.AllDown, a.Observed, lost)
			notes = slices.Concat(notes, done, failed)
		}
		p.done <- event.StorePrepared{Notes: notes}
	})
}

// takeLost returns the launched containers that the job has given up, each once.
func (p *preparation) takeLost(job *core.Job) []string {
	lost := map[string]bool{}
	for c := range p.launched {
		if _, hosted := job.Hosted(c); !hosted {
			lost[c] = true
		}
	}
	if len(lost) == 0 {
		return nil
	}
	for _, c := range job.Containers() {
		delete(lost, c)
	}
	for c := range lost {
		delete(p.launched, c)
	}
	return slices.Sorted(maps.Keys(lost))
}
