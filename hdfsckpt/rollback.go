package hdfsckpt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/retain"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
)

// RollbackPlan has programs go on from an older checkpoint, or from a newer one that a rollback
// has moved aside. Nothing is removed. Where a pointer names the checkpoint that programs
// restore, it is pointed at that one, and newer ones stay. Elsewhere programs take what is
// newest, and newer ones are moved aside: rollback_moves.go.
type RollbackPlan struct {
	To format.Checkpoint
	// Beside are the others of its step, where there is no pointer: the optimizer's file beside
	// the model's.
	Beside  []format.Checkpoint
	Newer   []format.Checkpoint // stay, and are not restored from
	Moves   []Move              // in the order in which they are made
	Restore []Aside             // were moved aside and are restored, To and what is Beside it last
	// Copies are names that get a copy of To, as programs look for the last checkpoint there.
	Copies []string

	pointer format.Pointer // nil: programs take what is newest
	series  string         // To's (Checkpoint.SeriesDir)
	dir     []format.Checkpoint
	relist  bool // the list of a format.Lister does not end with To yet
}

// impossible is why there is no plan that does as was asked for.
type impossible struct{ error }

func (i impossible) Unwrap() error { return i.error }

// IsImpossible reports whether an error of PlanRollback says that what was asked for cannot be
// done with the checkpoints that there are.
func IsImpossible(err error) bool { return errors.As(err, new(impossible)) }

// PlanRollback finds the whole checkpoint of a step. Where several directories have one, dir
// says in which; empty where only one has. Where none is in its place, one that is retained
// (retain.Restorable) is taken, or one that a rollback has moved aside, and restored. It changes
// nothing, but that after a rollback that was broken off what is retained lies where it is looked
// for.
func PlanRollback(ctx context.Context, s store.Store, dir string, step int64) (RollbackPlan, error) {
	list, err := List(ctx, s)
	if err != nil {
		return RollbackPlan{}, err
	}
	aside, err := asideEntries(ctx, s)
	if err != nil {
		return RollbackPlan{}, err
	}
	if err := giveBackRetained(ctx, s, aside); err != nil && !errors.Is(err, fs.ErrPermission) { // who may only read sees what there is
		return RollbackPlan{}, err
	}
	retained, err := retain.Restorable(ctx, s)
	if err != nil {
		return RollbackPlan{}, err
	}
	if aside, err = rolledBack(ctx, s, aside, list); err != nil {
		return RollbackPlan{}, err
	}
	found, err := findTargets(slices.Concat(list, retained), aside, dir, step)
	if err != nil {
		return RollbackPlan{}, impossible{err}
	}
	plan := RollbackPlan{series: found[0].series}
	for i, t := range found {
		if i == 0 {
			plan.To = t.Checkpoint
		} else {
			plan.Beside = append(plan.Beside, t.Checkpoint)
		}
		if t.aside != nil {
			plan.Restore = append(plan.Restore, *t.aside)
		}
	}
	if plan.pointer, err = usedPointer(ctx, s, plan.To.Kind, plan.series); err != nil {
		return RollbackPlan{}, err
	}
	if plan.pointer == nil {
		err := plan.planMoves(ctx, s, list, aside)
		return plan, err
	}
	for _, c := range list {
		if c.Kind == plan.To.Kind && path.Dir(c.Name) == plan.series {
			plan.dir = append(plan.dir, c)
			if c.Step > step {
				plan.Newer = append(plan.Newer, c)
			}
		}
	}
	return plan, nil
}

// rolledBack returns those entries that rollbacks have made of what is there, in the entry or in
// its place again.
func rolledBack(ctx context.Context, s store.Store, all []Aside, list []format.Checkpoint) ([]Aside, error) {
	var some []Aside
	for _, a := range all {
		if a.Rollback == nil {
			continue
		}
		is := len(a.there) > 0 || a.isInPlace(list)
		if !is && listerOf(a.Kind) != nil { // in its place, and not in the list
			var err error
			if is, err = store.Exists(ctx, s, a.parts()[0].Name); err != nil {
				return nil, err
			}
		}
		if is {
			some = append(some, a)
		}
	}
	return some, nil
}

// usedPointer returns the pointer of a format by which programs go in a directory; nil if the
// format has none, or its programs have never written one there.
func usedPointer(ctx context.Context, s store.Store, kind format.Kind, dir string) (format.Pointer, error) {
	for _, p := range formats.Pointers() {
		if p.Traits().Kind != kind {
			continue
		}
		at, err := p.ReadPointer(ctx, s, dir)
		if err != nil {
			return nil, err
		}
		if !at.Missing {
			return p, nil
		}
		known, err := p.KnownPointers(ctx, s)
		if err != nil || !known[dir] {
			return nil, err
		}
		return p, nil
	}
	return nil, nil
}

// rollbackTarget is a checkpoint that a rollback may go back to.
type rollbackTarget struct {
	format.Checkpoint
	series string // as Checkpoint.SeriesDir, in its place
	aside  *Aside // nil: it is in its place, or retained
}

// preference is less for those that are gone back to before others of the same step.
func (t *rollbackTarget) preference() int {
	_, retained := t.Original()
	switch {
	case t.aside != nil:
		return 2
	case !t.Whole():
		return 3
	case retained:
		return 1
	}
	return 0
}

// findTargets returns the checkpoint of a step, and what is beside it where there may be several.
func findTargets(list []format.Checkpoint, aside []Aside, dir string, step int64) ([]rollbackTarget, error) {
	var all []rollbackTarget
	for _, c := range list {
		there := c
		there.Name, _ = c.Original()
		all = append(all, rollbackTarget{c, there.SeriesDir(), nil})
	}
	for i, a := range aside {
		moved := func(o rollbackTarget) bool { return o.aside != nil && o.Name == a.Name }
		if c := a.checkpoint(); c.Whole() && !(len(a.there) == 0 && a.isInPlace(whole(list))) {
			all = append(slices.DeleteFunc(all, moved), rollbackTarget{c, a.Rollback.Series, &aside[i]})
		}
	}
	var have []string
	all = slices.DeleteFunc(all, func(t rollbackTarget) bool {
		name, _ := t.Original()
		in := dir == "" || dir == t.series || dir == path.Dir(name)
		if in && t.aside != nil {
			have = append(have, name+" (moved aside)")
		} else if in && t.Whole() {
			have = append(have, name)
		}
		return !in || t.NamedStep() == format.NoStep || t.NamedStep() != step
	})
	if len(all) == 0 {
		return nil, fmt.Errorf("there is no checkpoint of step %d; %s", step, completeOnes(have, dir))
	}
	slices.SortStableFunc(all, func(a, b rollbackTarget) int { return a.preference() - b.preference() })
	best := all[0].preference()
	all = slices.DeleteFunc(all, func(t rollbackTarget) bool {
		return t.preference() != best && !(best == 0 && t.aside != nil && isBeside(t.aside, all, aside))
	})
	var names []string
	several := false
	for _, t := range all {
		name, _ := t.Original()
		names = append(names, name)
		several = several || t.series != all[0].series || t.Kind != all[0].Kind && hasPointer(t.Kind) || hasPointer(all[0].Kind) && len(all) > 1
	}
	switch {
	case several:
		return nil, fmt.Errorf("several checkpoints are of step %d, say in which directory: %s", step, strings.Join(names, ", "))
	case !all[0].Whole():
		return nil, fmt.Errorf("%s is %s: %s; %s", all[0].Name, all[0].State, all[0].Why, completeOnes(have, dir))
	}
	return all, nil
}

// completeOnes says which checkpoints there are to go back to, in dir if that is not empty.
func completeOnes(have []string, dir string) string {
	switch {
	case len(have) > 0:
		return "complete are: " + strings.Join(have, ", ")
	case dir != "":
		return "there are no complete checkpoints below " + dir
	}
	return "there are no complete checkpoints"
}

// isBeside reports whether a checkpoint goes with one in its place that the same rollback had moved,
// and that was restored by one that was broken off then.
func isBeside(a *Aside, inPlace []rollbackTarget, aside []Aside) bool {
	return !slices.ContainsFunc(inPlace, func(t rollbackTarget) bool { return t.Name == a.Name && t.preference() == 0 }) &&
		slices.ContainsFunc(aside, func(o Aside) bool {
			return len(o.there) == 0 && o.Step == a.Step && o.Rollback.Series == a.Rollback.Series && o.Rollback.To == a.Rollback.To
		})
}

// whole returns those of a list that can be restored from.
func whole(list []format.Checkpoint) []format.Checkpoint {
	return slices.DeleteFunc(slices.Clone(list), func(c format.Checkpoint) bool { return !c.Whole() })
}

func hasPointer(k format.Kind) bool {
	return slices.ContainsFunc(formats.Pointers(), func(p format.Pointer) bool { return p.Traits().Kind == k })
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
// life of those that have not ended their writing, and returns those that have given none.
func NobodyWrites(ctx context.Context, s store.Store, jobOf func(writer string) string) (lost []string, err error) {
	alive, lost, err := writers.OtherJobs(ctx, s, "", jobOf, WaitForWriters)
	if err == nil && len(alive) > 0 {
		err = writesTo(s, alive)
	}
	return lost, err
}

// NobodyElseWrites returns an error if a job writes to a store that is none of those which
// NobodyWrites has found lost: it has begun since.
func NobodyElseWrites(ctx context.Context, s store.Store, jobOf func(writer string) string, lost []string) error {
	all, err := JobsWriting(ctx, s, jobOf)
	if err != nil {
		return err
	}
	if begun := slices.DeleteFunc(all, func(job string) bool { return job == "" || slices.Contains(lost, job) }); len(begun) > 0 {
		return writesTo(s, begun)
	}
	return nil
}

func writesTo(s store.Store, alive []string) error {
	return fmt.Errorf("cannot roll %s back while %s writes to it: tasks would go on from what that saves next; end it (yarn-submit kill %s), and roll back then", s.URI(), strings.Join(alive, ", "), alive[0])
}

// Needed reports whether there is anything to do: without a pointer, programs may go on from To
// as it is.
func (p *RollbackPlan) Needed() bool {
	_, isRetained := p.To.Original()
	return p.pointer != nil || isRetained || p.relist || len(p.Moves)+len(p.Restore)+len(p.Copies) > 0
}

// Bytes is how many are moved aside.
func (p *RollbackPlan) Bytes() int64 {
	n := int64(0)
	for _, m := range p.Moves {
		n += m.Size
	}
	return n
}

// Check returns why the plan cannot be carried out. It changes nothing.
func (p RollbackPlan) Check(ctx context.Context, s store.Store) error {
	change := append([]format.Checkpoint{p.To}, p.Beside...)
	for _, m := range p.Moves {
		change = append(change, m.Checkpoint)
	}
	if err := mayChange(ctx, s, change); err != nil {
		return fmt.Errorf("cannot roll back in %s: %w", s.URI(), err)
	}
	if p.pointer == nil {
		return p.unchanged(ctx, s)
	}
	name, _ := p.To.Original()
	_, err := p.readPointer(ctx, s, path.Dir(name))
	return err
}

// Execute has programs go on from the plan's checkpoint. by is who has asked for that.
func (p RollbackPlan) Execute(ctx context.Context, s store.Store, by string) error {
	if p.pointer == nil {
		return p.makeNewest(ctx, s, by)
	}
	if err := p.putInPlace(ctx, s); err != nil {
		return err
	}
	if len(p.Restore) > 0 {
		if err := forgetRestored(ctx, s); err != nil {
			return err
		}
	}
	p.dir = append(p.dir, p.To)
	dir := path.Dir(p.To.Name)
	before, err := p.readPointer(ctx, s, dir)
	if err != nil {
		return err
	}
	if err := p.pointer.WritePointer(ctx, s, dir, before, p.dir, &p.To); err != nil {
		return fmt.Errorf("cannot point %s at %s: %w", path.Join(dir, p.pointer.PointerFile()), p.To.Name, err)
	}
	return nil
}

// readPointer reads the pointer in a directory. It fails if that is not the program's to write.
func (p *RollbackPlan) readPointer(ctx context.Context, s store.Store, dir string) (format.Pointed, error) {
	before, err := p.pointer.ReadPointer(ctx, s, dir)
	if err != nil || !before.Foreign && (before.Err == nil || len(before.Text) == 0) {
		return before, err
	}
	known, err := p.pointer.KnownPointers(ctx, s)
	if err != nil || !before.Foreign && known[dir] {
		return before, err
	}
	why := before.Err
	if before.Foreign {
		why = errors.New("it is a directory or a large file, or cannot be read")
	}
	name, _ := p.To.Original()
	return before, fmt.Errorf("cannot point %s at %s: there is something by that name that is not the program's pointer (%w); move it away, and roll back again", path.Join(dir, p.pointer.PointerFile()), name, why)
}

// putInPlace restores what is retained or was moved aside, and names it as it is then.
func (p *RollbackPlan) putInPlace(ctx context.Context, s store.Store) error {
	targets := []*format.Checkpoint{&p.To}
	for i := range p.Beside {
		targets = append(targets, &p.Beside[i])
	}
	for _, c := range targets {
		name, isRetained := c.Original()
		if !isRetained {
			continue
		}
		if err := retain.Restore(ctx, s, *c); err != nil {
			return err
		}
		c.Name, c.Former = name, ""
	}
	for i := range p.Restore {
		if err := p.Restore[i].restore(ctx, s); err != nil {
			return err
		}
	}
	return nil
}
