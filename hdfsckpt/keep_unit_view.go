package hdfsckpt

import (
	"context"
	"path"
	"slices"
	"strings"

	"holdfast/hdfsckpt/store"
)

// look tells what is there of the unit, as a list of checkpoints would: of what is
// visible, of what is kept, or of both, where what is kept counts. nil if it is no
// checkpoint.
func (u *keptUnit) look(ctx context.Context, visible, kept bool) (*Checkpoint, error) {
	rule, err := readRule(ctx, u.s)
	if err != nil {
		return nil, err
	}
	l := &lister{s: &unitView{Store: u.s, u: u, visible: visible, kept: kept}, rule: rule, chosenFrom: true, root: path.Dir(u.Name)}
	found, err := l.list(ctx)
	if err != nil {
		return nil, err
	}
	for i := range found {
		if found[i].Name == u.Name {
			return &found[i], nil
		}
	}
	return nil, nil
}

func (u *keptUnit) whole(ctx context.Context, visible, kept bool) (bool, error) {
	c, err := u.look(ctx, visible, kept)
	return c != nil && c.Whole(), err
}

// unitView is a store in which there is nothing but one unit.
type unitView struct {
	store.Store
	u             *keptUnit
	visible, kept bool
}

func (v *unitView) inside(name string) bool {
	return name == v.u.Name || strings.HasPrefix(name, v.u.Name+"/")
}

func (v *unitView) List(ctx context.Context, dir string) ([]store.Info, error) {
	var all []store.Info
	add := func(from string) error {
		entries, err := v.Store.List(ctx, from)
		if err != nil && !vanished(err) {
			return err
		}
		for _, e := range entries {
			if dir == path.Dir(v.u.Name) && e.Name != path.Base(v.u.Name) {
				continue
			}
			if !slices.ContainsFunc(all, func(o store.Info) bool { return o.Name == e.Name }) {
				all = append(all, e)
			}
		}
		return nil
	}
	switch {
	case dir == path.Dir(v.u.Name):
		if v.kept { // a unit that is a file, or the directory of one that is not
			if err := add(path.Join(v.u.slot, unitFiles)); err != nil {
				return nil, err
			}
			if i, err := v.Store.Stat(ctx, path.Join(v.u.slot, unitFiles)); err == nil && len(all) == 0 {
				i.Name = path.Base(v.u.Name)
				all = append(all, i)
			}
		}
		if v.visible {
			if err := add(dir); err != nil {
				return nil, err
			}
		}
	case v.inside(dir):
		if v.kept {
			if err := add(v.u.keptAs(dir + "/")); err != nil {
				return nil, err
			}
		}
		if v.visible {
			if err := add(dir); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(all, func(a, b store.Info) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

func (v *unitView) Open(ctx context.Context, name string) (store.Reader, error) {
	if v.kept && v.inside(name) {
		r, err := v.Store.Open(ctx, v.u.keptAs(name))
		if !vanished(err) || !v.visible {
			return r, err
		}
	}
	return v.Store.Open(ctx, name)
}
