package hdfsckpt

import (
	"context"
	"fmt"
	"path"

	"holdfast/hdfsckpt/store"
)

// keptUnits finds all that is kept.
func keptUnits(ctx context.Context, s store.Store) ([]*keptUnit, error) {
	entries, err := s.List(ctx, unitsDir)
	if vanished(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []*keptUnit
	for _, e := range entries {
		u := &keptUnit{s: s, slot: path.Join(unitsDir, e.Name)}
		there, err := u.read(ctx)
		if err != nil {
			return nil, err
		}
		if there {
			all = append(all, u)
		}
	}
	return all, nil
}

// listKeptUnits lists those of which all is kept. Their names are those of the
// places where they lie.
func listKeptUnits(ctx context.Context, s store.Store) ([]Checkpoint, error) {
	units, err := keptUnits(ctx, s)
	if err != nil {
		return nil, err
	}
	var all []Checkpoint
	for _, u := range units {
		c, err := u.look(ctx, false, true)
		if err != nil {
			return nil, err
		}
		if c == nil || !c.Whole() {
			continue
		}
		manifest, err := readManifest(ctx, s, path.Join(u.slot, keptManifest))
		if err != nil {
			return nil, err
		}
		if manifest != nil && manifest.fits(c) {
			for i := range manifest.Files {
				manifest.Files[i].Name = u.keptAs(manifest.Files[i].Name)
			}
			c.State, c.Manifest = Sealed, manifest
		}
		for i := range c.Files {
			c.Files[i].Name = u.keptAs(c.Files[i].Name)
		}
		c.former, c.Name, c.last = u.Name, path.Join(u.slot, unitFiles), ""
		if len(c.Files) == 1 && !c.isDirOf(u.Name) {
			c.Name = c.Files[0].Name
		}
		all = append(all, *c)
	}
	return all, nil
}

// mendUnits puts back what was being removed or replaced when its program was
// lost, where that leaves something visible that is not whole.
func mendUnits(ctx context.Context, s store.Store) (back []string, err error) {
	units, err := keptUnits(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, u := range units {
		visible, err := u.look(ctx, true, false)
		if err != nil {
			return back, err
		}
		if visible != nil && visible.Whole() || u.Over || u.How == unitRemoved && !u.seen(ctx) {
			continue
		}
		if whole, err := u.whole(ctx, true, true); err != nil {
			return back, err
		} else if !whole {
			continue
		}
		if err := u.bringBack(ctx); err != nil {
			return back, fmt.Errorf("bringing %s back: %w", u.Name, err)
		}
		back = append(back, u.Name)
	}
	return back, nil
}

// seen tells whether a file of the unit is visible.
func (u *keptUnit) seen(ctx context.Context) bool {
	c := &Checkpoint{}
	l := &lister{s: u.s, ctx: ctx}
	return l.below(u.Name, 0, c) == nil && len(c.Files) > 0
}

// bringBack puts back what is kept; the file that makes it count comes last.
func (u *keptUnit) bringBack(ctx context.Context) error {
	c, err := u.look(ctx, true, true)
	if err != nil || c == nil {
		return err
	}
	names := []string{}
	for _, f := range c.Files {
		if f.Name != c.last {
			names = append(names, f.Name)
		}
	}
	if c.last != "" {
		names = append(names, c.last)
	}
	for _, name := range names {
		if has, err := u.has(ctx, name); err != nil {
			return err
		} else if !has {
			continue
		}
		if err := store.MkdirAll(ctx, u.s, path.Dir(name), 0o755); err != nil {
			return err
		}
		if err := u.s.Rename(ctx, u.keptAs(name), name); err != nil {
			return err
		}
	}
	if err := u.s.Rename(ctx, path.Join(u.slot, keptManifest), manifestName(u.Name)); err != nil && !vanished(err) {
		return err
	}
	return u.clear(ctx)
}
