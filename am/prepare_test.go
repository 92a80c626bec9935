package am

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/am/checkpoint"
	"holdfast/am/core/action"
	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

// TestOnePreparationAtATime: one that was begun early and is too old when tasks are about to
// start is ended before another begins, and what it says is not told as a failure.
func TestOnePreparationAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		log := logrus.New()
		log.SetOutput(io.Discard)
		var open, most, opened atomic.Int32
		p := newPreparation(checkpoint.NewPreparer(checkpoint.Config{
			Job: "job_1", Checkpoints: []*proto.CheckpointSpec{{Uri: dir}}, Log: logrus.NewEntry(log),
			OpenStore: func(ctx context.Context, uri string) (store.Store, error) {
				most.Store(max(most.Load(), open.Add(1)))
				defer open.Add(-1)
				if opened.Add(1) == 1 { // the store hangs
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return store.Open(ctx, uri, nil)
			},
		}))
		p.startEarly(t.Context())
		time.Sleep(earlyPrepareValid + time.Second)
		began := time.Now()
		p.start(t.Context(), nil, action.PrepareStore{AllDown: true})
		result := <-p.done
		p.running.Wait()
		if most.Load() != 1 || opened.Load() != 2 {
			t.Errorf("%d preparations, up to %d at once", opened.Load(), most.Load())
		}
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("tasks waited %v for a preparation that was of no use", d)
		}
		if notes := strings.Join(result.Notes, "\n"); strings.Contains(notes, "could not be") {
			t.Errorf("it is said: %q", notes)
		}
	})
}

// TestAnEarlyFailureIsNotTold: a preparation that another one follows is said to have failed neither
// when it is ended between two tries nor when it has given up by then.
func TestAnEarlyFailureIsNotTold(t *testing.T) {
	for name, after := range map[string]time.Duration{"between two tries": earlyPrepareValid + time.Second, "given up": 10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				log := logrus.New()
				log.SetOutput(io.Discard)
				var away atomic.Bool
				away.Store(true)
				p := newPreparation(checkpoint.NewPreparer(checkpoint.Config{
					Job: "job_1", Checkpoints: []*proto.CheckpointSpec{{Uri: dir}}, Log: logrus.NewEntry(log),
					OpenStore: func(ctx context.Context, uri string) (store.Store, error) {
						if away.Load() {
							return nil, errors.New("the store is not there yet")
						}
						return store.Open(ctx, uri, nil)
					},
				}))
				p.startEarly(t.Context())
				time.Sleep(after)
				away.Store(false)
				p.start(t.Context(), nil, action.PrepareStore{AllDown: true})
				result := <-p.done
				p.running.Wait()
				if notes := strings.Join(result.Notes, "\n"); strings.Contains(notes, "could not be") {
					t.Errorf("of a directory that was prepared it is said: %q", notes)
				}
			})
		})
	}
}
