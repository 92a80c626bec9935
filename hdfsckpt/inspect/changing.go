package inspect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/hdfsckpt/store"
)

// changeTimeout bounds a change of a directory.
const changeTimeout = 10 * time.Minute

// errChanged is returned where a plan is not the one that was agreed to.
var errChanged = errors.New("the checkpoints have changed since the plan was made; nothing was done: look at the new plan")

// IsChanged reports whether an error says that the checkpoints are not those any longer that a
// plan was made for.
func IsChanged(err error) bool { return errors.Is(err, errChanged) }

// Plan plans a change of a directory, by a listing of its own.
func (b *Browser) Plan(ctx context.Context, dir int, planner Planner) (Plan, error) {
	d, err := b.directory(dir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var plan Plan
	err = b.use(ctx, d, func(s store.Store) (err error) {
		plan, err = planner(ctx, s)
		return err
	})
	return plan, err
}

// Execute plans a change anew, and carries it out if it is the one that was agreed to: agreed
// reports whether it is, by its ID. Changes of a directory are made one at a time. ctx ends the
// wait, but not the change. The plan is nil if there is none.
func (b *Browser) Execute(ctx context.Context, dir int, planner Planner, agreed func(id string) bool) (Plan, error) {
	d, err := b.directory(dir)
	if err != nil {
		return nil, err
	}
	type outcome struct {
		plan Plan
		err  error
	}
	ended := make(chan outcome, 1)
	b.running.Add(1)
	go func() {
		defer b.running.Done()
		ctx, cancel := context.WithTimeout(b.ctx, changeTimeout)
		defer cancel()
		d.changing.Lock()
		defer d.changing.Unlock()
		plan, err := b.Plan(ctx, dir, planner)
		if err == nil && !agreed(plan.ID()) {
			err = errChanged
		}
		if err == nil {
			err = b.use(ctx, d, func(s store.Store) error { return Execute(ctx, []Planned{{plan, s}}, Watch{}) })
			d.mu.Lock()
			d.changes++ // whatever has been done, what was listed before is not so any longer
			d.last, d.safe, d.safeOld = result{}, nil, time.Time{}
			d.mu.Unlock()
		}
		ended <- outcome{plan, err}
	}()
	select {
	case o := <-ended:
		return o.plan, o.err
	case <-ctx.Done():
		return nil, fmt.Errorf("the change takes long, and goes on: look at the checkpoints again in a while: %w", ctx.Err())
	}
}
