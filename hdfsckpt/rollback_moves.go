package hdfsckpt

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/retain"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
)

// A program without a pointer takes the checkpoint with the highest step, the youngest file, or
// the one that is called the last. So a rollback moves what is newer aside, the oldest first:
// until the last is moved, the program goes on from where it would have before. Then what is
// called the last becomes a copy of the one that is gone back to, and a list (format.Lister) has
// it at its end. What was moved aside is recorded with the checkpoint that was gone back to, so
// that going back to one of a later step restores that, with what lies between.
//
// A rollback that is broken off loses nothing, and is gone on with by planning and executing it
// again. Each checkpoint is moved in one step, but for those of several files: of these the
// marker is moved first, and the record of what has been moved says what is still to be.

// Move is a checkpoint that a rollback moves aside.
type Move struct {
	format.Checkpoint
	parts  []AsidePart
	sealed []string // the names of checkpoints in it that have manifests
	begun  *Aside   // it was being moved when a rollback was broken off
}

// stagingDir is where a copy is made that gets its name when it is complete.
const stagingDir = store.OwnDir + "/rollback"

// checkpoint is what was moved by a rollback; the zero value for others.
func (a *Aside) checkpoint() format.Checkpoint {
	r := a.Rollback
	if r == nil {
		return format.Checkpoint{}
	}
	return format.Checkpoint{Name: a.Name, Kind: a.Kind, Step: a.Step, Time: r.Time, Size: a.Size, Shards: r.Shards, State: r.State}
}

// planMoves plans what is moved and restored so that To is the newest of its series. aside are
// the entries of rollbacks, with those of which all is in its place again (isInPlace).
func (p *RollbackPlan) planMoves(ctx context.Context, s store.Store, list []format.Checkpoint, aside []Aside) error {
	isTarget, youngest := map[string]bool{}, p.To.Time
	for _, c := range append([]format.Checkpoint{p.To}, p.Beside...) {
		isTarget[c.Name] = !slices.ContainsFunc(p.Restore, func(a Aside) bool { return a.Name == c.Name })
		if c.Time.After(youngest) {
			youngest = c.Time
		}
	}
	nested, err := writers.Nested(ctx, s)
	if err != nil {
		return err
	}
	for _, c := range list {
		if c.SeriesDir() != p.series || c.Name == "." || !p.rivals(c.Kind) || isTarget[c.Name] || p.restoresInto(&c) ||
			slices.ContainsFunc(p.Restore, func(a Aside) bool { return a.isRestOf(&c) || len(a.there) == 0 && a.isInPlace([]format.Checkpoint{c}) }) {
			continue
		}
		moved, err := p.moves(&c, youngest)
		if err != nil {
			return err
		}
		if within := storeWithin(&c, nested); moved && within != "" {
			return impossible{fmt.Errorf("%s would be moved aside, and %s in it is a checkpoint directory of its own: move one of the two away, and roll back again", c.Name, within)}
		}
		if moved {
			p.add(c)
		}
	}
	if err := p.addBegun(ctx, s, aside); err != nil {
		return err
	}
	if err := p.restoreMore(ctx, s, aside); err != nil {
		return err
	}
	if err := p.copyAgain(ctx, s, aside); err != nil {
		return err
	}
	slices.SortStableFunc(p.Moves, func(a, b Move) int { return cmp.Or(p.order(&a)-p.order(&b), cmp.Compare(a.NamedStep(), b.NamedStep())) })
	text, err := p.relisted(ctx, s)
	p.relist = text != nil
	return err
}

// restoresInto reports whether a file of a checkpoint is, with what is retained, what is gone back
// to.
func (p *RollbackPlan) restoresInto(c *format.Checkpoint) bool {
	return slices.ContainsFunc(append([]format.Checkpoint{p.To}, p.Beside...), func(to format.Checkpoint) bool {
		return to.Former == c.Name && slices.ContainsFunc(to.Files, func(f format.File) bool { return !strings.HasPrefix(f.Name, store.OwnDir+"/") })
	})
}

// moves reports whether a program may take a checkpoint of the series instead of To, or it is in
// To's place. youngest is the time of what is gone back to.
func (p *RollbackPlan) moves(c *format.Checkpoint, youngest time.Time) (bool, error) {
	_, isRetained := p.To.Original()
	step := c.NamedStep()
	switch {
	case step > p.To.Step:
		return true, nil
	case step == p.To.Step && isRetained || step == p.To.Step && len(p.Restore) > 0:
		return true, nil // it is not whole, or would have been chosen
	case step == p.To.Step && c.Certain && c.IsDir():
		return true, nil // as before tasks start in any case
	case step == p.To.Step:
		return false, impossible{fmt.Errorf("%s is %s: %s; %s of the same step is complete, but a program that takes both fails: move the one that is not away, and roll back again", c.Name, c.State, c.Why, p.To.Name)}
	case step != format.NoStep || c.Kind != p.To.Kind && !slices.ContainsFunc(p.Beside, func(b format.Checkpoint) bool { return c.Kind == b.Kind }):
		return false, nil
	case format.IsLast(path.Base(c.Name)) && p.copies(c.IsDir()):
		same := c.Size == p.To.Size && c.Time.Equal(p.To.Time)
		if !same {
			p.Copies = append(p.Copies, c.Name)
		}
		return !same, nil
	}
	return c.Time.After(youngest), nil
}

// order is in which group it is moved: what is in the way of what is restored first, and
// what programs look for by its name last.
func (p *RollbackPlan) order(m *Move) int {
	step := m.NamedStep()
	switch {
	case step == p.To.Step:
		return 0
	case step != format.NoStep:
		return 1
	case !slices.Contains(p.Copies, m.Name):
		return 2
	}
	return 3
}

// rivals reports whether programs may take checkpoints of a format instead of To.
func (p *RollbackPlan) rivals(kind format.Kind) bool {
	if hasPointer(p.To.Kind) {
		return kind == p.To.Kind
	}
	return !hasPointer(kind)
}

// copies reports whether a copy of To can take the place of what is a directory, or one file.
func (p *RollbackPlan) copies(isDir bool) bool {
	toDir, one := p.To.IsDir(), len(p.To.Files) == 1
	for _, a := range p.Restore {
		if parts := a.parts(); a.Name == p.To.Name {
			one = len(parts) == 1
			toDir = one && parts[0].Dir && parts[0].Name == a.Name
		}
	}
	return len(p.Beside) == 0 && isDir == toDir && (one || toDir)
}

// add adds a checkpoint to what is moved: a directory with all that is in it, where it is one,
// or is alone in one that is named after its step.
func (p *RollbackPlan) add(c format.Checkpoint) {
	m := Move{Checkpoint: c}
	switch dir := path.Dir(c.Name); {
	case dir != c.SeriesDir():
		m.parts = []AsidePart{{Name: dir, Dir: true}}
	case c.IsDir() || len(c.Files) == 0:
		m.parts = []AsidePart{{Name: c.Name, Dir: true}}
	default:
		for _, f := range slices.Concat(c.Files, c.Extra) {
			m.parts = append(m.parts, AsidePart{Name: f.Name, Size: f.Size, ModTime: f.ModTime})
		}
		first := cmp.Or(c.Marker, c.Name)
		slices.SortStableFunc(m.parts, func(a, b AsidePart) int {
			switch first {
			case a.Name:
				return -1
			case b.Name:
				return 1
			}
			return 0
		})
	}
	if c.Manifest != nil {
		m.sealed = []string{c.Name}
	}
	for i := range p.Moves {
		if o := &p.Moves[i]; o.parts[0] == m.parts[0] { // two in one directory
			o.sealed = append(o.sealed, m.sealed...)
			o.Size += m.Size
			return
		}
	}
	p.Moves = append(p.Moves, m)
}

// isRestOf reports whether all that is there of a checkpoint is of one that was being moved.
func (a *Aside) isRestOf(c *format.Checkpoint) bool {
	return a.Name == c.Name && !slices.ContainsFunc(slices.Concat(c.Files, c.Extra), func(f format.File) bool {
		return !slices.ContainsFunc(a.parts(), func(p AsidePart) bool {
			return p.Name == f.Name && !a.there[p.Name] && p.Size == f.Size && p.ModTime.Equal(f.ModTime)
		})
	})
}

// addBegun has checkpoints moved on of which a rollback that was broken off has moved some files.
func (p *RollbackPlan) addBegun(ctx context.Context, s store.Store, aside []Aside) error {
	for i := range aside {
		a := &aside[i]
		if len(a.there) == 0 || a.Rollback.Series != p.series || !p.rivals(a.Kind) || a.Step <= p.To.Step && a.Step != format.NoStep ||
			slices.ContainsFunc(p.Restore, func(b Aside) bool { return b.entry == a.entry }) {
			continue
		}
		left := false
		for _, part := range a.parts() {
			if a.there[part.Name] || part.Dir {
				continue
			}
			err := part.unchanged(ctx, s)
			if err != nil && !store.Vanished(err) {
				return err
			}
			left = left || err == nil
		}
		if !left {
			continue
		}
		m := Move{Checkpoint: a.checkpoint(), begun: a}
		p.Moves = append(slices.DeleteFunc(p.Moves, func(o Move) bool { return a.isRestOf(&o.Checkpoint) }), m)
	}
	return nil
}

// isOlder reports whether what the rollback that has moved To has moved, too, is older than it.
func (p *RollbackPlan) isOlder(a *Aside) bool {
	if a.Step == format.NoStep {
		return !format.IsLast(path.Base(a.Name)) && !a.Rollback.Time.After(p.To.Time)
	}
	return a.Step > a.Rollback.ToStep && a.Step < p.To.Step
}

// restoreMore restores, with To, what the same rollback has moved that is older than it.
func (p *RollbackPlan) restoreMore(ctx context.Context, s store.Store, aside []Aside) error {
	var with *RolledBack // that moved To, which was restored before if it is in its place
	for _, a := range aside {
		if a.Name == p.To.Name && a.Step == p.To.Step && (len(a.there) == 0 || slices.ContainsFunc(p.Restore, func(b Aside) bool { return b.entry == a.entry })) {
			with = a.Rollback
		}
	}
	if with == nil {
		return nil
	}
	var more []Aside
	for _, a := range slices.Backward(aside) {
		r := a.Rollback
		if r.Series != with.Series || r.To != with.To || !p.isOlder(&a) || slices.ContainsFunc(more, func(o Aside) bool { return o.Name == a.Name }) {
			continue
		}
		free := true
		for _, part := range a.parts() {
			there, err := store.Exists(ctx, s, part.Name)
			if err != nil {
				return err
			}
			free = free && (!there || !a.there[part.Name])
		}
		if free {
			more = append(more, a)
		}
	}
	slices.SortFunc(more, func(a, b Aside) int { return cmp.Compare(a.Step, b.Step) })
	p.Restore = append(more, p.Restore...)
	return nil
}

// isInPlace reports whether one of some checkpoints in their places is the one that was moved.
func (a *Aside) isInPlace(list []format.Checkpoint) bool {
	return slices.ContainsFunc(list, func(c format.Checkpoint) bool {
		return a.Name == c.Name && a.Kind == c.Kind && a.Size == c.Size && a.Rollback.Time.Equal(c.Time)
	})
}

// copyAgain has copies made of what rollbacks have moved and then not come to.
func (p *RollbackPlan) copyAgain(ctx context.Context, s store.Store, aside []Aside) error {
	for _, a := range aside {
		r := a.Rollback
		if r.Series != p.series || a.Kind != p.To.Kind || a.Step != format.NoStep || !format.IsLast(path.Base(a.Name)) ||
			!p.copies(r.Parts[0].Dir) || slices.Contains(p.Copies, a.Name) {
			continue
		}
		there, err := store.Exists(ctx, s, a.Name)
		if err != nil {
			return err
		}
		if !there {
			p.Copies = append(p.Copies, a.Name)
		}
	}
	return nil
}

// makeNewest carries the moves out. It fails if there is something else by then that programs
// would take.
func (p *RollbackPlan) makeNewest(ctx context.Context, s store.Store, by string) error {
	if err := p.unchanged(ctx, s); err != nil {
		return err
	}
	if err := store.RemoveOwn(ctx, s, stagingDir); err != nil {
		return err
	}
	name, _ := p.To.Original()
	to := &RolledBack{To: name, ToStep: p.To.Step, By: by}
	inTheWay := slices.IndexFunc(p.Moves, func(m Move) bool { return p.order(&m) > 0 })
	if inTheWay < 0 {
		inTheWay = len(p.Moves)
	}
	for _, m := range p.Moves[:inTheWay] {
		if err := p.moveOne(ctx, s, m, to); err != nil {
			return err
		}
	}
	if err := p.putInPlace(ctx, s); err != nil {
		return err
	}
	moves := p.Moves[inTheWay:]
	for len(moves) > 0 && !slices.Contains(p.Copies, moves[0].Name) {
		if err := p.moveOne(ctx, s, moves[0], to); err != nil {
			return err
		}
		moves = moves[1:]
	}
	for _, c := range p.Copies {
		i := slices.IndexFunc(moves, func(m Move) bool { return m.Name == c })
		var former *Move
		if i >= 0 {
			former = &moves[i]
		}
		if err := p.copyTo(ctx, s, c, former, to); err != nil {
			return err
		}
	}
	if text, err := p.relisted(ctx, s); err != nil {
		return err
	} else if text != nil {
		if err := store.WriteFile(ctx, s, path.Join(p.series, listerOf(p.To.Kind).ListFile()), text, 0o644); err != nil {
			return err
		}
	}
	if err := forgetRestored(ctx, s); err != nil {
		return err
	}
	again, err := PlanRollback(ctx, s, p.series, p.To.Step)
	if err == nil && again.Needed() {
		err = fmt.Errorf("something was saved beside %s meanwhile, and programs may take that: roll back again", name)
	}
	return err
}

// forgetRestored drops what is left of copies, and the records of what is in its place again.
func forgetRestored(ctx context.Context, s store.Store) error {
	if err := store.RemoveOwn(ctx, s, stagingDir); err != nil {
		return err
	}
	all, err := asideEntries(ctx, s)
	for _, a := range all {
		if a.Rollback == nil || len(a.there) > 0 {
			continue
		}
		if forgetErr := a.forgetEmpty(ctx, s); forgetErr != nil && !store.Vanished(forgetErr) {
			err = errors.Join(err, forgetErr)
		}
	}
	return err
}

// unchanged returns an error if what is gone back to is not as it was when that was planned.
func (p *RollbackPlan) unchanged(ctx context.Context, s store.Store) error {
	for _, c := range append([]format.Checkpoint{p.To}, p.Beside...) {
		if err := sameFiles(ctx, s, c); err != nil {
			return err
		}
	}
	return nil
}

// sameFiles returns an error if a checkpoint in its place is not as it was listed.
func sameFiles(ctx context.Context, s store.Store, c format.Checkpoint) error {
	for _, f := range c.Files {
		i, err := s.Stat(ctx, f.Name)
		if err == nil && (i.Size != f.Size || !i.ModTime.Equal(f.ModTime)) {
			err = syscall.EBUSY
		}
		if err != nil {
			return fmt.Errorf("cannot roll back to %s: %s is not as it was when that was planned: %w", c.Name, f.Name, err)
		}
	}
	return nil
}

// moveOne moves a checkpoint aside. It is no error if it is gone.
func (p *RollbackPlan) moveOne(ctx context.Context, s store.Store, m Move, to *RolledBack) error {
	if m.begun != nil {
		if err := m.begun.take(ctx, s); err != nil && !store.Vanished(err) {
			return fmt.Errorf("cannot move the rest of %s aside: %w", m.Name, err)
		}
		return nil
	}
	r := *to
	r.State, r.Time, r.Files, r.Shards, r.Series, r.Parts, r.Sealed = m.State, m.Time, len(m.Files), m.Shards, m.SeriesDir(), m.parts, m.sealed
	if l := listerOf(p.To.Kind); l != nil {
		text, err := store.ReadFile(ctx, s, path.Join(r.Series, l.ListFile()))
		if err != nil && !store.Vanished(err) {
			return err
		}
		r.Listed = l.ListEntry(text, path.Base(m.Name))
	}
	r.WithBackup = !p.restoresFrom(retain.EntryDir(m.parts[0].Name)) && !p.restoresFrom(retain.EntryDir(m.Name))
	moved := time.Now().UTC().Truncate(time.Second)
	why := fmt.Sprintf("rolled back to %d by %s at %s", r.ToStep, r.By, moved.Format("2006-01-02 15:04:05 UTC"))
	_, err := moveAside(ctx, s, Aside{Name: m.Name, Kind: m.Kind, Step: m.NamedStep(), Why: why, Moved: moved, Size: m.Size, Rollback: &r})
	if store.Vanished(err) {
		return nil
	}
	return err
}

// restoresFrom reports whether what the rollback goes back to is retained in an entry.
func (p *RollbackPlan) restoresFrom(entry string) bool {
	return slices.ContainsFunc(append([]format.Checkpoint{p.To}, p.Beside...), func(c format.Checkpoint) bool {
		_, isRetained := c.Original()
		return isRetained && strings.HasPrefix(c.Name, entry+"/")
	})
}

// copyTo gives a copy of To another name. What has the name is moved aside when the copy is
// there. The copy has To's times: it is no younger.
func (p *RollbackPlan) copyTo(ctx context.Context, s store.Store, name string, former *Move, to *RolledBack) error {
	list, err := List(ctx, s)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(c format.Checkpoint) bool { return c.Name == to.To && c.Whole() })
	if i < 0 {
		return fmt.Errorf("cannot copy %s to %s: it is not complete any longer: %w", to.To, name, syscall.EBUSY)
	}
	staged := path.Join(stagingDir, path.Base(name))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for _, f := range list[i].Files {
		group.Go(func() error {
			c := &copyPlan{File: f, to: staged + strings.TrimPrefix(f.Name, to.To)}
			if err := copyFile(groupCtx, s, s, c, func(int64) {}); err != nil {
				return err
			}
			return s.Chtimes(groupCtx, c.to, f.ModTime, f.ModTime)
		})
	}
	err = group.Wait()
	if err == nil && former != nil {
		err = p.moveOne(ctx, s, *former, to)
	}
	if err == nil {
		err = s.RenameNew(ctx, staged, name)
	}
	if err != nil {
		return fmt.Errorf("cannot copy %s to %s: %w", to.To, name, err)
	}
	return nil
}

// listerOf returns a format whose checkpoints a file lists; nil for others.
func listerOf(kind format.Kind) format.Lister {
	for _, l := range formats.Listers() {
		if l.Traits().Kind == kind {
			return l
		}
	}
	return nil
}

// relisted is what the list is to say: To is the last in it, what is not there any longer is not
// in it, and what was restored is. It is nil if the list says so already, or there is none.
func (p *RollbackPlan) relisted(ctx context.Context, s store.Store) ([]byte, error) {
	l := listerOf(p.To.Kind)
	if l == nil {
		return nil, nil
	}
	text, err := store.ReadFile(ctx, s, path.Join(p.series, l.ListFile()))
	if store.Vanished(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := s.List(ctx, p.series)
	if err != nil {
		return nil, err
	}
	var listed []json.RawMessage
	for _, a := range p.Restore {
		if a.Rollback.Listed != nil {
			listed = append(listed, a.Rollback.Listed)
		}
	}
	gone := func(name string) bool {
		return !slices.ContainsFunc(entries, func(e store.Info) bool { return e.Name == name })
	}
	return l.Relist(text, gone, listed, path.Base(p.To.Name))
}
