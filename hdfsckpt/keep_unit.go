package hdfsckpt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"holdfast/hdfsckpt/torchfile"
)

// Checkpoints that are a file, or a directory with all that is in it, of whatever
// format, are kept as units. What the format says of a unit is asked of the same
// code that lists checkpoints, over a view of the store in which what is kept lies
// in its former place.
//
//	.holdfast/units/UNIT/unit.json      its name, and how it was lost
//	.holdfast/units/UNIT/files/FILE     what is kept of it, named as in the unit
//	.holdfast/units/UNIT/manifest.json  if it was sealed
const (
	unitsDir   = OwnDir + "/units"
	unitRecord = "unit.json"
	unitFiles  = "files"
)

// How a unit was lost.
const (
	unitRemoved  = "removed"
	unitReplaced = "replaced"
)

// keptUnit is the record of one of which something is kept.
type keptUnit struct {
	Name string `json:"name"`
	How  string `json:"how"`
	// Over: something was put in its place since, so that no more is kept of it.
	Over bool `json:"over,omitempty"`

	s    Store
	slot string
}

// unitOf finds, by a file's name alone, the checkpoint that it is or belongs to:
// the outermost directory that is called after a step, the directory of a
// distributed checkpoint, or a file of torch.save.
func unitOf(name string) (unit string, ok bool) {
	dir, base := path.Dir(name), path.Base(name)
	if strings.HasPrefix(name, hiddenPrefix) && dir != "." || IsTemporary(base) || isTemporaryPart(path.Base(dir)) {
		return "", false
	}
	for end, c := range name {
		if c == '/' && stepDir.MatchString(path.Base(name[:end])) {
			return name[:end], true
		}
	}
	_, torch := torchSuffixes[path.Ext(base)]
	switch {
	case dir != "." && isOfDistributed(base):
		return dir, true
	case torch && !neverAlone[base] && !strings.HasPrefix(base, hiddenPrefix):
		return name, true
	}
	return "", false
}

func isOfDistributed(base string) bool {
	return base == torchfile.MetadataFile || path.Ext(base) == dcpSuffix
}

func newUnit(s Store, name string) *keptUnit {
	return &keptUnit{Name: name, s: s, slot: path.Join(unitsDir, entryName(name))}
}

// read reads the record; false if nothing is kept.
func (u *keptUnit) read(ctx context.Context) (bool, error) {
	text, err := ReadFile(ctx, u.s, path.Join(u.slot, unitRecord))
	if vanished(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var record keptUnit
	if json.Unmarshal(text, &record) != nil || !isEntryFor(path.Base(u.slot), record.Name) {
		return false, nil
	}
	u.Name, u.How, u.Over = record.Name, record.How, record.Over
	return true, nil
}

func (u *keptUnit) write(ctx context.Context) error {
	text, err := json.Marshal(u)
	if err == nil {
		err = MkdirAll(ctx, u.s, u.slot, 0o755)
	}
	if err == nil {
		err = WriteFile(ctx, u.s, path.Join(u.slot, unitRecord), append(text, '\n'), 0o644)
	}
	return err
}

// keptAs is where a file of the unit lies when it is kept.
func (u *keptUnit) keptAs(name string) string {
	if name == u.Name {
		name = path.Base(name)
	}
	return path.Join(u.slot, unitFiles, strings.TrimPrefix(name, u.Name+"/"))
}

// has tells whether a file is kept.
func (u *keptUnit) has(ctx context.Context, name string) (bool, error) {
	_, err := u.s.Stat(ctx, u.keptAs(name))
	if vanished(err) {
		return false, nil
	}
	return err == nil, err
}

// keep moves a file out of sight.
func (u *keptUnit) keep(ctx context.Context, name string) error {
	to := u.keptAs(name)
	if err := MkdirAll(ctx, u.s, path.Dir(to), 0o755); err != nil {
		return err
	}
	return u.s.Rename(ctx, name, to)
}

// begin begins to keep a whole one: what was kept of it before goes.
func (u *keptUnit) begin(ctx context.Context, how string) error {
	if err := u.clear(ctx); err != nil {
		return err
	}
	u.How, u.Over = how, false
	if err := u.write(ctx); err != nil {
		return err
	}
	err := u.s.Rename(ctx, manifestName(u.Name), path.Join(u.slot, keptManifest))
	if vanished(err) {
		err = nil
	}
	return err
}

func (u *keptUnit) clear(ctx context.Context) error {
	if err := removeAll(ctx, u.s, u.slot, 0); err != nil && !vanished(err) {
		return err
	}
	return nil
}

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
	Store
	u             *keptUnit
	visible, kept bool
}

func (v *unitView) inside(name string) bool {
	return name == v.u.Name || strings.HasPrefix(name, v.u.Name+"/")
}

func (v *unitView) List(ctx context.Context, dir string) ([]Info, error) {
	var all []Info
	add := func(from string) error {
		entries, err := v.Store.List(ctx, from)
		if err != nil && !vanished(err) {
			return err
		}
		for _, e := range entries {
			if dir == path.Dir(v.u.Name) && e.Name != path.Base(v.u.Name) {
				continue
			}
			if !slices.ContainsFunc(all, func(o Info) bool { return o.Name == e.Name }) {
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
	slices.SortFunc(all, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

func (v *unitView) Open(ctx context.Context, name string) (Reader, error) {
	if v.kept && v.inside(name) {
		r, err := v.Store.Open(ctx, v.u.keptAs(name))
		if !vanished(err) || !v.visible {
			return r, err
		}
	}
	return v.Store.Open(ctx, name)
}

// replacingUnit is Replacing for a file that is there.
func replacingUnit(ctx context.Context, s Store, unit, name string) error {
	u := newUnit(s, unit)
	begun, err := u.continues(ctx, name)
	if err != nil || begun {
		return err
	}
	// A program that only changes a file of a directory must find the others.
	if unit != name && !isOfDistributed(path.Base(name)) {
		return nil
	}
	c, err := u.look(ctx, true, false)
	if err != nil || c == nil || !c.Whole() {
		return err
	}
	if err := u.begin(ctx, unitReplaced); err != nil {
		return err
	}
	if c.last != "" && c.last != name {
		if err := u.keep(ctx, c.last); err != nil {
			return err
		}
	}
	return u.keep(ctx, name)
}

// NotReplaced is told when what Replacing was told of failed: a file that is a
// checkpoint by itself, and was kept, gets its name back, if nothing has it.
func NotReplaced(ctx context.Context, s Store, name string) error {
	if unit, ok := unitOf(name); !ok || unit != name {
		return nil
	}
	u := newUnit(s, name)
	if there, err := u.read(ctx); err != nil || !there || u.How != unitReplaced {
		return err
	}
	if _, err := s.Stat(ctx, name); !vanished(err) {
		return err
	}
	if has, err := u.has(ctx, name); err != nil || !has {
		return err
	}
	return u.bringBack(ctx)
}

// continues goes on with keeping a unit of which a part is kept already.
func (u *keptUnit) continues(ctx context.Context, name string) (bool, error) {
	if there, err := u.read(ctx); err != nil || !there || u.Over {
		return false, err
	}
	if has, err := u.has(ctx, name); err != nil || has {
		return false, err
	}
	if u.How == unitReplaced {
		if whole, err := u.whole(ctx, true, false); err != nil || whole {
			return false, err
		}
	}
	return true, u.keep(ctx, name)
}

// publishing is told before a file is put where none is: what was removed of the
// unit before is of another.
func publishing(ctx context.Context, s Store, unit string) error {
	u := newUnit(s, unit)
	if there, err := u.read(ctx); err != nil || !there || u.Over || u.How != unitRemoved {
		return err
	}
	u.Over = true
	return u.write(ctx)
}

// removingUnit is Removing.
func removingUnit(ctx context.Context, s Store, unit, name string) (bool, error) {
	i, err := s.Stat(ctx, name)
	if vanished(err) || err == nil && i.IsDir() {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	u := newUnit(s, unit)
	if begun, err := u.continues(ctx, name); err != nil || begun {
		return begun, err
	}
	c, err := u.look(ctx, true, false)
	if err != nil || c == nil || !c.Whole() || path.Base(c.last) == Committed && isPlainName(path.Base(unit)) {
		return false, err // of step-N, what lies deeper is not kept
	}
	others, err := u.others(ctx)
	if err != nil {
		return false, err
	}
	// What was kept before is older than this one, or not needed.
	if err := u.clearSeries(ctx); err != nil {
		return false, err
	}
	if others >= enough {
		return false, Unseal(ctx, s, unit)
	}
	if err := u.begin(ctx, unitRemoved); err != nil {
		return false, err
	}
	return true, u.keep(ctx, name)
}

// others counts the other whole ones of the same series, as far as it matters.
func (u *keptUnit) others(ctx context.Context) (int, error) {
	entries, err := u.s.List(ctx, path.Dir(u.Name))
	if err != nil {
		return 0, err
	}
	n := 0
	for _, e := range slices.Backward(entries) {
		if e.Name == path.Base(u.Name) || shape(e.Name) != shape(path.Base(u.Name)) {
			continue
		}
		whole, err := newUnit(u.s, path.Join(path.Dir(u.Name), e.Name)).whole(ctx, true, false)
		if err != nil {
			return 0, err
		}
		if whole {
			if n++; n == enough {
				break
			}
		}
	}
	return n, nil
}

// series is what is the same of units that follow each other. Files whose names
// have no step are all of one, as a program may call each of them anew.
func (u *keptUnit) series() string {
	if base := path.Base(u.Name); digits.MatchString(base) {
		return shape(u.Name)
	}
	return path.Dir(u.Name)
}

// clearSeries removes what is kept of the unit and of others of its series that
// were removed.
func (u *keptUnit) clearSeries(ctx context.Context) error {
	all, err := keptUnits(ctx, u.s)
	for _, o := range all {
		if o.Name == u.Name || o.How == unitRemoved && o.series() == u.series() {
			err = errors.Join(err, o.clear(ctx))
		}
	}
	return err
}

// keptUnits finds all that is kept.
func keptUnits(ctx context.Context, s Store) ([]*keptUnit, error) {
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
func listKeptUnits(ctx context.Context, s Store) ([]Checkpoint, error) {
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
func mendUnits(ctx context.Context, s Store) (back []string, err error) {
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
		if err := MkdirAll(ctx, u.s, path.Dir(name), 0o755); err != nil {
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
