package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// worker computes gradients. Worker 0 is the chief: it saves and restores.
type worker struct {
	o     options
	chief bool
	ps    []*peer
	saved int64 // step of the newest checkpoint
	last  int64 // step of the end, once that is reached
	told  bool  // the file of --until was there
	asked time.Time
}

// retry is how long a worker waits before it asks a lost parameter server again.
const retry = 100 * time.Millisecond

// untilPause is how often a worker looks for the file of --until.
const untilPause = 200 * time.Millisecond

// work trains until all steps are taken.
func work(ctx context.Context, o options) error {
	w := &worker{o: o, chief: o.index == 0}
	for _, address := range o.ps {
		p, err := dial(address)
		if err != nil {
			return err
		}
		defer p.conn.Close()
		w.ps = append(w.ps, p)
	}
	if w.chief {
		if err := w.restore(ctx); err != nil {
			return err
		}
	}
	waiting := false
	for {
		done, err := w.step(ctx)
		switch {
		case err == nil && done:
			return w.finish(ctx)
		case err == nil:
			waiting = false
			continue
		case ctx.Err() != nil:
			return nil
		case !lost(err):
			return err
		}
		if !waiting {
			waiting = true
			fmt.Printf("worker %d waits: %v\n", o.index, err)
		}
		if w.chief {
			if err := w.restore(ctx); err != nil {
				return err
			}
			continue
		}
		// The chief may have ended with the last step saved, and then nobody
		// fills a parameter server that is lost.
		if n, err := newest(o.dir); err == nil && n >= w.limit() {
			fmt.Printf("worker %d ends: step %d is saved\n", o.index, n)
			return nil
		}
		if !pause(ctx, retry) {
			return nil
		}
	}
}

// limit is the step at which training ends.
func (w *worker) limit() int64 {
	if w.o.until == "" {
		return w.o.steps
	}
	if now := time.Now(); !w.told && now.Sub(w.asked) >= untilPause {
		_, err := os.Stat(w.o.until)
		w.asked, w.told = now, err == nil
	}
	if w.told {
		return 0 // whatever has been reached
	}
	return math.MaxInt64
}

// step takes one step, unless all are taken.
func (w *worker) step(ctx context.Context) (done bool, err error) {
	next, err := w.ps[0].call(ctx, "Next", &message{Limit: w.limit()})
	if err != nil {
		return false, err
	}
	if next.Done {
		w.last = next.Step
		return true, nil
	}
	loss := 0.0
	for i, p := range w.ps {
		now, err := p.call(ctx, "Pull", &message{})
		if err != nil {
			return false, err
		}
		delta := make([]float64, len(now.Values))
		for k, v := range now.Values {
			d := float64(i*w.o.values+k+1) - v
			loss += d * d
			delta[k] = 0.02 * d
		}
		if _, err := p.call(ctx, "Push", &message{Values: delta}); err != nil {
			return false, err
		}
	}
	if next.Step%10 == 0 || next.Step == 1 {
		fmt.Printf("step %d loss %.6f\n", next.Step, loss)
	}
	if w.chief && next.Step >= w.saved+w.o.saveSteps {
		if err := w.save(ctx, next.Step); err != nil {
			return false, err
		}
	}
	if !pause(ctx, w.o.stepTime) {
		return false, ctx.Err()
	}
	return false, nil
}

// finish saves the last step and says so.
func (w *worker) finish(ctx context.Context) error {
	if w.chief && w.saved < w.last {
		err := w.save(ctx, w.last)
		if lost(err) {
			// What was lost since the last checkpoint has to be done again.
			return work(ctx, w.o)
		}
		if err != nil {
			return err
		}
	}
	fmt.Printf("final step %d\n", w.last)
	return nil
}

// save writes a checkpoint: every shard by its parameter server, then the marker.
func (w *worker) save(ctx context.Context, step int64) error {
	for _, p := range w.ps {
		if _, err := p.call(ctx, "Save", &message{Step: step}); err != nil {
			return err
		}
	}
	if err := commit(w.o.dir, step, len(w.ps)); err != nil {
		return fmt.Errorf("committing the checkpoint of step %d: %w", step, err)
	}
	w.saved = step
	fmt.Printf("saved step %d\n", step)
	return prune(w.o.dir, w.o.keep)
}

// restore brings all parameter servers to the newest checkpoint, once all of
// them answer.
func (w *worker) restore(ctx context.Context) error {
	for {
		step, err := newest(w.o.dir)
		if err != nil {
			return err
		}
		err = w.restoreAll(ctx, step)
		if err == nil {
			w.saved = step
			if step > 0 {
				fmt.Printf("restored step %d\n", step)
			} else {
				fmt.Println("begins at step 0")
			}
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !lost(err) {
			return err
		}
		if !pause(ctx, retry) {
			return ctx.Err()
		}
	}
}

func (w *worker) restoreAll(ctx context.Context, step int64) error {
	// All have to be there before any goes back.
	for _, p := range w.ps {
		if _, err := p.call(ctx, "Pull", &message{}); err != nil && status.Code(err) != codes.FailedPrecondition {
			return err
		}
	}
	for _, p := range w.ps {
		if _, err := p.call(ctx, "Restore", &message{Step: step}); err != nil {
			return err
		}
	}
	return nil
}

// lost reports whether a parameter server is gone, or back with nothing.
func lost(err error) bool {
	if err == nil {
		return false
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.FailedPrecondition, codes.Canceled:
		return true
	}
	return false
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
