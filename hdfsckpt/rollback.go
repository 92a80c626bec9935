package hdfsckpt

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/retain"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
)

// RollbackPlan points a pointer at an older checkpoint. Nothing is removed.
type RollbackPlan struct {
	To    format.Checkpoint
	Newer []format.Checkpoint // stay, and are not restored from
	dir   []format.Checkpoint
}

// PlanRollback finds the whole checkpoint of a step. Where several directories have
// one, dir says in which; empty where only one has. One of those that are retained
// (retain.List) is taken where no other is of that step, and restored.
func PlanRollback(list []format.Checkpoint, dir string, step int64) (RollbackPlan, error) {
	var found, retained []format.Checkpoint
	var have []string
	for _, c := range list {
		name, isRetained := c.Original()
		if dir != "" && path.Dir(name) != dir {
			continue
		}
		if c.Whole() {
			have = append(have, name)
		}
		switch {
		case c.Step != step:
		case isRetained && c.Whole():
			retained = append(retained, c)
		case !isRetained:
			found = append(found, c)
		}
	}
	if len(retained) > 0 && !slices.ContainsFunc(found, func(c format.Checkpoint) bool { return c.Whole() }) {
		found = retained
	}
	switch {
	case len(found) == 0:
		return RollbackPlan{}, fmt.Errorf("there is no checkpoint of step %d; complete are: %s", step, strings.Join(have, ", "))
	case len(found) > 1:
		var names []string
		for _, c := range found {
			names = append(names, c.Name)
		}
		return RollbackPlan{}, fmt.Errorf("several checkpoints are of step %d, say in which directory: %s", step, strings.Join(names, ", "))
	case !found[0].Whole():
		return RollbackPlan{}, fmt.Errorf("%s is %s: %s; complete are: %s", found[0].Name, found[0].State, found[0].Why, strings.Join(have, ", "))
	case found[0].Pointer() == nil:
		return RollbackPlan{}, fmt.Errorf("%s cannot be rolled back to: a program with checkpoints of its own takes the newest; move the newer ones out of the directory", found[0].Name)
	}
	plan := RollbackPlan{To: found[0]}
	name, _ := plan.To.Original()
	for _, c := range list {
		if _, isRetained := c.Original(); !isRetained && c.Kind == plan.To.Kind && path.Dir(c.Name) == path.Dir(name) {
			plan.dir = append(plan.dir, c)
			if c.Step > step {
				plan.Newer = append(plan.Newer, c)
			}
		}
	}
	return plan, nil
}

// JobsWriting returns the jobs that have not ended their writing to a store: they are alive, or
// were lost. jobOf returns the job of a writer.
func JobsWriting(ctx context.Context, s store.Store, jobOf func(writer string) string) ([]string, error) {
	all, err := writers.List(ctx, s)
	jobs := []string{}
	for _, w := range all {
		if job := jobOf(w); !slices.Contains(jobs, job) {
			jobs = append(jobs, job)
		}
	}
	return jobs, err
}

// WaitForWriters is how long NobodyWrites waits.
const WaitForWriters = writers.LostAfter

// NobodyWrites returns an error if a job that writes to a store is alive: what that saves next
// is what tasks would go on from after a rollback. It waits up to WaitForWriters for a sign of
// life of those that have not ended their writing.
func NobodyWrites(ctx context.Context, s store.Store, jobOf func(writer string) string) error {
	alive, _, err := writers.OtherJobs(ctx, s, "", jobOf, WaitForWriters)
	if err == nil && len(alive) > 0 {
		err = fmt.Errorf("cannot roll %s back while %s writes to it: tasks would go on from what that saves next; end it (yarn-submit kill %s), and roll back then", s.URI(), strings.Join(alive, ", "), alive[0])
	}
	return err
}

// Execute points the pointer at the plan's checkpoint.
func (p RollbackPlan) Execute(ctx context.Context, s store.Store) error {
	if name, isRetained := p.To.Original(); isRetained {
		if err := retain.Restore(ctx, s, p.To); err != nil {
			return err
		}
		p.To.Name, p.To.Former = name, ""
		p.dir = append(p.dir, p.To)
	}
	dir, pointer := path.Dir(p.To.Name), p.To.Pointer()
	file := path.Join(dir, pointer.PointerFile())
	before, err := pointer.ReadPointer(ctx, s, dir)
	if err != nil {
		return err
	}
	if before.Foreign || before.Err != nil && len(before.Text) > 0 {
		known, err := pointer.KnownPointers(ctx, s)
		if err != nil {
			return err
		}
		if before.Foreign || !known[dir] {
			return fmt.Errorf("cannot point %s at %s: there is a file by that name that is not the program's pointer (%w); move it away, and roll back again", file, p.To.Name, before.Err)
		}
	}
	if err := pointer.WritePointer(ctx, s, dir, before, p.dir, &p.To); err != nil {
		return fmt.Errorf("cannot point %s at %s: %w", file, p.To.Name, err)
	}
	return nil
}
