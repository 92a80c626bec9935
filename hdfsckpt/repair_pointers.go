package hdfsckpt

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/retain"
	"holdfast/hdfsckpt/store"
)

// pointing sees that a format's pointers in a store name what they should.
type pointing struct {
	s store.Store
	format.Pointer
	nested func(name string) bool // of another store
}

// look is what a directory is judged by: its pointer, and the format's checkpoints in
// the store as they were after that was read.
type look struct {
	before format.Pointed
	list   []format.Checkpoint
}

// lookAround looks at directories for which that is to be done at once.
func (p *pointing) lookAround(ctx context.Context, dirs []string) (map[string]look, error) {
	looks := map[string]look{}
	for _, dir := range dirs {
		before, err := p.ReadPointer(ctx, p.s, dir)
		if err != nil {
			return nil, err
		}
		looks[dir] = look{before: before}
	}
	// Whatever the store's own rule leaves out.
	list, err := format.Search{Rule: format.Rule{Format: p.Traits().Kind}}.List(ctx, p.s, formats.All)
	list = slices.DeleteFunc(list, func(c format.Checkpoint) bool { return c.Kind != p.Traits().Kind })
	for dir, l := range looks {
		l.list = list
		looks[dir] = l
	}
	return looks, err
}

// all looks at every directory in which a pointer may be.
func (p *pointing) all(ctx context.Context) ([]Pointed, error) {
	known, looks, err := p.everywhere(ctx, nil)
	if err != nil {
		return nil, err
	}
	var all []Pointed
	for _, dir := range slices.Sorted(maps.Keys(looks)) {
		pointed, err := p.repair(ctx, dir, looks[dir], known[dir])
		if err != nil {
			return all, err
		}
		if pointed != nil {
			all = append(all, *pointed)
		}
	}
	return all, nil
}

// everywhere looks around in every directory in which a pointer may be: those with
// checkpoints, those where one is known to have been, some more, and the root, where it may
// be all that is left. The store is listed once where all checkpoints are in its root, as
// most often, and twice where there are more directories, however many: each list costs a
// look into every index, and somebody waits to start.
func (p *pointing) everywhere(ctx context.Context, more []string) (known map[string]bool, looks map[string]look, err error) {
	if known, err = p.KnownPointers(ctx, p.s); err != nil {
		return nil, nil, err
	}
	if looks, err = p.lookAround(ctx, []string{"."}); err != nil {
		return nil, nil, err
	}
	dirs := slices.AppendSeq(append(more, "."), maps.Keys(known))
	for _, c := range looks["."].list {
		dirs = append(dirs, path.Dir(c.Name))
	}
	dirs = slices.DeleteFunc(dirs, p.nested)
	slices.Sort(dirs)
	if dirs = slices.Compact(dirs); len(dirs) > 1 {
		looks, err = p.lookAround(ctx, dirs)
	}
	return known, looks, err
}

// restoreNamed sees to the checkpoints that pointers name which are not changed: one that was
// removed and is retained is restored.
func (p *pointing) restoreNamed(ctx context.Context, report *Report) error {
	removed, err := retain.Names(ctx, p.s)
	if err != nil {
		return err
	}
	var more []string
	for name := range removed {
		more = append(more, path.Dir(name))
	}
	_, looks, err := p.everywhere(ctx, more)
	if err != nil {
		return err
	}
	for _, dir := range slices.Sorted(maps.Keys(looks)) {
		l := looks[dir]
		if !l.before.Named() || l.before.Target == "" {
			continue
		}
		list := in(l.list, dir)
		name := path.Join(dir, l.before.Target)
		i := slices.IndexFunc(list, func(c format.Checkpoint) bool { return c.Name == name })
		if i >= 0 && (list[i].Whole() || list[i].State == format.Unchecked) {
			continue
		}
		back, err := retain.RestoreNamed(ctx, p.s, name)
		if err != nil {
			return err
		}
		if back {
			report.Named = append(report.Named, name)
			continue
		}
		lost := Lost{Pointer: path.Join(dir, p.PointerFile()), Name: l.before.Target, Why: "is not there", URI: p.s.URI()}
		if i >= 0 {
			lost.Why = "is not whole: " + list[i].Why
		}
		kept, err := retain.List(ctx, p.s)
		if err != nil {
			return err
		}
		for _, c := range kept {
			if c.Kind == p.Traits().Kind && path.Dir(c.Former) == dir {
				list = append(list, c)
			}
		}
		lost.Other = format.NewestComplete(list)
		report.Lost = append(report.Lost, lost)
	}
	return nil
}

// in returns those of a list that lie in a directory.
func in(list []format.Checkpoint, dir string) []format.Checkpoint {
	return slices.DeleteFunc(slices.Clone(list), func(c format.Checkpoint) bool { return path.Dir(c.Name) != dir })
}

// pointTries bounds how often a directory is judged that a running program goes on
// saving to.
const pointTries = 5

// repair sees that the pointer in a directory names what it should. A program that runs
// may write it meanwhile; then what it writes is newer. known: that the file is the
// format's is recorded.
func (p *pointing) repair(ctx context.Context, dir string, l look, known bool) (*Pointed, error) {
	for try := 1; ; try++ {
		pointed, changed, err := p.try(ctx, dir, l, known)
		if err != nil || !changed || try == pointTries {
			return pointed, err
		}
		looks, err := p.lookAround(ctx, []string{dir})
		if err != nil {
			return nil, err
		}
		l = looks[dir]
	}
}

// try is one try of repair. changed: somebody else has written the pointer meanwhile, so
// nothing was done.
func (p *pointing) try(ctx context.Context, dir string, l look, known bool) (_ *Pointed, changed bool, err error) {
	before := l.before
	list := in(l.list, dir)
	if before.Named() && !known {
		if err := p.RememberPointer(ctx, p.s, dir); err != nil {
			return nil, false, err
		}
		known = true
	}
	if !known && before.Missing {
		if known, err = p.savedFirst(ctx, dir, list); err != nil {
			return nil, false, err
		}
	}
	if !known || before.Foreign {
		return nil, false, nil
	}
	best, err := p.newest(ctx, dir, before, list)
	if err != nil {
		return nil, false, err
	}
	done := &Pointed{File: path.Join(dir, p.PointerFile())}
	switch {
	case before.Missing && best == nil:
		return nil, false, nil
	case before.Missing:
		done.Why = "it was missing"
	case before.Err != nil:
		done.Why = before.Err.Error()
	default:
		done.From = before.Target
		ok, why, err := p.restorable(ctx, dir, before, list)
		if err != nil {
			return nil, false, err
		}
		if ok {
			if best, err = p.savedSince(ctx, dir, before, list); err != nil || best == nil {
				return nil, false, err
			}
			why = fmt.Sprintf("it named %s, and %s was saved after that, and never named", path.Base(before.Target), path.Base(best.Name))
		}
		done.Why = why
	}
	now, err := p.ReadPointer(ctx, p.s, dir)
	if err != nil || !now.Same(before) {
		return nil, err == nil, err
	}
	if best == nil {
		return done, false, p.atRetained(ctx, dir, before, done)
	}
	done.To = best.Name
	return done, false, p.WritePointer(ctx, p.s, dir, before, list, best)
}

// savedFirst reports whether the only whole checkpoint of a directory is the first that a task has
// saved there, and nothing names it: its program was killed before it wrote the pointer.
func (p *pointing) savedFirst(ctx context.Context, dir string, list []format.Checkpoint) (bool, error) {
	whole := slices.DeleteFunc(slices.Clone(list), func(c format.Checkpoint) bool { return !c.Whole() })
	if len(whole) != 1 {
		return false, nil
	}
	first, err := p.IsFirst(ctx, p.s, &whole[0])
	if err != nil || !first {
		return false, err
	}
	named, err := p.NamedBeside(ctx, p.s, dir)
	return err == nil && !named[path.Base(whole[0].Name)], err
}

// newest returns the newest whole checkpoint that a pointer may name; nil if there is none. A
// directory may have several pointers, for what is saved for other ends, as the best. One of
// another series (format.Shape) than what the pointer names, or, where it names nothing, of that of
// what another one names, is taken only if there is no other.
func (p *pointing) newest(ctx context.Context, dir string, at format.Pointed, list []format.Checkpoint) (*format.Checkpoint, error) {
	shape, other := format.Shape(path.Base(at.Target)), map[string]bool{}
	if at.Target == "" {
		named, err := p.NamedBeside(ctx, p.s, dir)
		if err != nil {
			return nil, err
		}
		for name := range named {
			other[format.Shape(name)] = true
		}
	}
	own := slices.DeleteFunc(slices.Clone(list), func(c format.Checkpoint) bool {
		s := format.Shape(path.Base(c.Name))
		return at.Target != "" && s != shape || other[s]
	})
	return cmp.Or(format.NewestComplete(own), format.NewestComplete(list)), nil
}

// savedSince returns the youngest whole checkpoint that a program has saved after it wrote the
// pointer, and before it was killed; nil if there is none. A program goes on from the one that
// the pointer names, so its step is higher, its last file younger than the pointer, and its series
// the same. What another pointer names was named. A pointer that was
// written later, by whomever, names what is wanted; an earlier step that is younger was put there
// by somebody.
func (p *pointing) savedSince(ctx context.Context, dir string, at format.Pointed, list []format.Checkpoint) (*format.Checkpoint, error) {
	target := path.Base(at.Target)
	step := format.StepAfterDash(target)
	since := slices.DeleteFunc(slices.Clone(list), func(c format.Checkpoint) bool {
		return !c.Whole() || step == format.NoStep || c.Step <= step || !c.Time.After(at.Written) || format.Shape(path.Base(c.Name)) != format.Shape(target)
	})
	if len(since) == 0 { // the usual case
		return nil, nil
	}
	named, err := p.NamedBeside(ctx, p.s, dir)
	if err != nil {
		return nil, err
	}
	var best *format.Checkpoint
	for i := range since {
		if c := &since[i]; !named[path.Base(c.Name)] && (best == nil || c.Time.After(best.Time)) {
			best = c
		}
	}
	return best, nil
}

// atRetained restores the newest checkpoint that is retained; if there is none, the
// pointer is moved aside.
func (p *pointing) atRetained(ctx context.Context, dir string, before format.Pointed, done *Pointed) error {
	name, err := retain.RestoreNewest(ctx, p.s, p.Traits().Kind, dir)
	if err != nil {
		return err
	}
	if name == "" {
		a, err := moveAside(ctx, p.s, Aside{Name: done.File, Step: format.NoStep, Why: done.Why})
		if store.Vanished(err) {
			err = nil
		}
		done.Aside = a.Where
		return err
	}
	done.To = name
	to := format.Checkpoint{Name: name, State: format.Complete}
	return p.WritePointer(ctx, p.s, dir, before, []format.Checkpoint{to}, &to)
}

// restorable reports whether what a pointer names can be restored, or cannot be checked.
func (p *pointing) restorable(ctx context.Context, dir string, at format.Pointed, list []format.Checkpoint) (bool, string, error) {
	base := path.Base(at.Target)
	for _, c := range list {
		if path.Base(c.Name) == base {
			return c.Whole() || c.State == format.Unchecked, fmt.Sprintf("it named %s, which is %s: %s", base, c.State, c.Why), nil
		}
	}
	// A checkpoint of an older form (TensorFlow's V1) is one file, which cannot be judged.
	_, err := p.s.Stat(ctx, path.Join(dir, base))
	if err == nil {
		return true, "", nil
	}
	if !store.Vanished(err) {
		return false, "", err
	}
	return false, fmt.Sprintf("it named %s, which is not there", base), nil
}
