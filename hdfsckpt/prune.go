package hdfsckpt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"

	"holdfast/hdfsckpt/store"
)

// PrunePlan says what a prune will remove and why each of the others stays.
type PrunePlan struct {
	Remove []Checkpoint
	Keep   []Kept
	Bytes  int64 // freed
}

// Kept is a checkpoint that stays.
type Kept struct {
	Checkpoint
	Reason string
}

// PlanPrune keeps the whole checkpoints of the newest keep steps of each
// directory, and of the others those whose step is a multiple of every (0:
// none). A step may have several: model-40.pt and optimizer-40.pt. Torn ones that
// are older than a whole one go; what is in progress, cannot be checked or has
// no step, what `checkpoint` names, and the newest sealed one stay whatever is
// asked for.
func PlanPrune(list []Checkpoint, keep int, every int64) PrunePlan {
	var plan PrunePlan
	seen := map[string]int{}   // steps with whole ones in the directory, from the newest on
	step := map[string]int64{} // the last of these
	sealed := map[string]bool{}
	for i := len(list) - 1; i >= 0; i-- {
		c := list[i]
		place := placeOf(c)
		if c.Whole() && c.Step != NoStep && (seen[place] == 0 || c.Step != step[place]) {
			seen[place]++
			step[place] = c.Step
		}
		reason := ""
		switch {
		case c.State == InProgress:
			reason = "in progress"
		case c.State == Unchecked:
			reason = "cannot be checked"
		case c.Whole() && c.Step == NoStep:
			reason = "has no step"
		case c.Current:
			reason = "named by " + StateFile
		case c.State == Sealed && !sealed[place]:
			reason = "the newest sealed"
		case c.Whole() && seen[place] <= keep:
			reason = fmt.Sprintf("one of the newest %d", keep)
		case c.Whole() && seen[place] == 1:
			reason = "the newest complete"
		case c.Whole() && every > 0 && c.Step >= 0 && c.Step%every == 0:
			reason = fmt.Sprintf("a multiple of %d", every)
		case !c.Whole() && seen[place] == 0:
			reason = "newer than every complete one"
		}
		sealed[place] = sealed[place] || c.State == Sealed
		if reason != "" {
			plan.Keep = append(plan.Keep, Kept{c, reason})
			continue
		}
		plan.Remove = append(plan.Remove, c)
		plan.Bytes += c.Size
	}
	return plan
}

// placeOf tells which checkpoints are of one series: those of one kind in one
// directory, or in directories that are each called after a step.
func placeOf(c Checkpoint) string {
	dir := path.Dir(c.Name)
	if c.Kind == Torch && stepDir.MatchString(path.Base(dir)) {
		dir = path.Dir(dir)
	}
	return string(c.Kind) + " " + dir
}

// Execute removes what the plan says, the oldest first. Of each checkpoint the
// file that makes it count goes first, so that none looks whole while it goes.
// A checkpoint that has changed since it was listed stays.
func (p PrunePlan) Execute(ctx context.Context, s store.Store) error {
	var errs []error
	for i := len(p.Remove) - 1; i >= 0; i-- {
		c := p.Remove[i]
		if err := removeCheckpoint(ctx, s, c); err != nil {
			errs = append(errs, fmt.Errorf("cannot remove the checkpoint %s: %w", c.Name, err))
		}
	}
	return errors.Join(errs...)
}

func removeCheckpoint(ctx context.Context, s store.Store, c Checkpoint) error {
	for _, f := range c.Files {
		i, err := s.Stat(ctx, f.Name)
		if vanished(err) {
			continue
		}
		if err != nil {
			return err
		}
		if i.Size != f.Size || !i.ModTime.Equal(f.ModTime) {
			return fmt.Errorf("%s was changed meanwhile: %w", f.Name, syscall.EBUSY)
		}
	}
	if c.last != "" {
		if err := s.Remove(ctx, c.last); err != nil && !vanished(err) {
			return err
		}
	}
	for _, f := range c.Files {
		if err := s.Remove(ctx, f.Name); err != nil && !vanished(err) {
			return err
		}
	}
	for _, dir := range directories(c) {
		if err := store.RemoveDir(ctx, s, dir); err != nil && !vanished(err) {
			return err
		}
	}
	return Unseal(ctx, s, c.Name)
}

// directories are those that go with a checkpoint, the deepest first.
func directories(c Checkpoint) []string {
	if !c.isDir() {
		return nil
	}
	seen := map[string]bool{}
	for _, f := range c.Files {
		for d := path.Dir(f.Name); d != "." && (d == c.Name || strings.HasPrefix(d, c.Name+"/")); d = path.Dir(d) {
			seen[d] = true
		}
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b string) int { return strings.Compare(b, a) })
}

// RollbackPlan points `checkpoint` at an older one. Nothing is removed.
type RollbackPlan struct {
	To    Checkpoint
	Newer []Checkpoint // stay, and are not restored from
	dir   []Checkpoint
}

// PlanRollback finds the whole checkpoint of a step. Where several directories
// have one, dir says in which; "" where only one has. One of those that are kept
// (ListKept) is taken where no other is of that step, and brought back.
func PlanRollback(list []Checkpoint, dir string, step int64) (RollbackPlan, error) {
	var found, kept []Checkpoint
	var have []string
	for _, c := range list {
		place, isKept := FormerName(c)
		if dir != "" && path.Dir(place) != dir {
			continue
		}
		if c.Whole() {
			have = append(have, place)
		}
		switch {
		case c.Step != step:
		case isKept && c.Whole():
			kept = append(kept, c)
		case !isKept:
			found = append(found, c)
		}
	}
	if len(kept) > 0 && !slices.ContainsFunc(found, func(c Checkpoint) bool { return c.Whole() }) {
		found = kept
	}
	switch {
	case len(found) == 0:
		return RollbackPlan{}, fmt.Errorf("there is no checkpoint of step %d; complete are: %s: %w", step, strings.Join(have, ", "), syscall.ENOENT)
	case len(found) > 1:
		var names []string
		for _, c := range found {
			names = append(names, c.Name)
		}
		return RollbackPlan{}, fmt.Errorf("several checkpoints are of step %d, say in which directory: %s: %w", step, strings.Join(names, ", "), syscall.EINVAL)
	case !found[0].Whole():
		return RollbackPlan{}, fmt.Errorf("%s is %s: %s; complete are: %s: %w", found[0].Name, found[0].State, found[0].Why, strings.Join(have, ", "), syscall.EINVAL)
	case !found[0].PointedAt():
		return RollbackPlan{}, fmt.Errorf("%s cannot be rolled back to: a program with checkpoints of its own takes the newest; remove the newer ones: %w", found[0].Name, syscall.EINVAL)
	}
	plan := RollbackPlan{To: found[0]}
	place, _ := FormerName(plan.To)
	for _, c := range list {
		if _, isKept := FormerName(c); !isKept && c.Kind == TensorFlow && path.Dir(c.Name) == path.Dir(place) {
			plan.dir = append(plan.dir, c)
			if c.Step > step {
				plan.Newer = append(plan.Newer, c)
			}
		}
	}
	return plan, nil
}

// Execute points `checkpoint` at the plan's checkpoint.
func (p RollbackPlan) Execute(ctx context.Context, s store.Store) error {
	if name, isKept := FormerName(p.To); isKept {
		if err := BringBack(ctx, s, p.To); err != nil {
			return err
		}
		p.To.Name = name
		p.dir = append(p.dir, p.To)
	}
	dir := path.Dir(p.To.Name)
	text, err := store.ReadFile(ctx, s, path.Join(dir, StateFile))
	if err != nil && !vanished(err) {
		return err
	}
	state, err := ParseState(text)
	if err != nil && len(text) > 0 {
		known, saversErr := savers(ctx, s)
		if saversErr != nil {
			return saversErr
		}
		if !known[dir] {
			return fmt.Errorf("cannot point %s at %s: there is a file by that name that is not TensorFlow's (%w); move it away, and roll back again", path.Join(dir, StateFile), p.To.Name, err)
		}
		state = SavedState{}
	}
	if err := pointAt(ctx, s, dir, state, p.dir, &p.To); err != nil {
		return fmt.Errorf("cannot point %s at %s: %w", path.Join(dir, StateFile), p.To.Name, err)
	}
	return nil
}
