package hdfsckpt

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"

	"holdfast/hdfsckpt/store"
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
	unitsDir   = store.OwnDir + "/units"
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

	s    store.Store
	slot string
}

// unitOf finds, by a file's name alone, the checkpoint that it is or belongs to:
// the outermost directory that is called after a step, the directory of a
// distributed checkpoint, or a file of torch.save.
func unitOf(name string) (unit string, ok bool) {
	dir, base := path.Dir(name), path.Base(name)
	if strings.HasPrefix(name, hiddenPrefix) && dir != "." || store.IsTemporary(base) || isTemporaryPart(path.Base(dir)) {
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

func newUnit(s store.Store, name string) *keptUnit {
	return &keptUnit{Name: name, s: s, slot: path.Join(unitsDir, entryName(name))}
}

// read reads the record; false if nothing is kept.
func (u *keptUnit) read(ctx context.Context) (bool, error) {
	text, err := store.ReadFile(ctx, u.s, path.Join(u.slot, unitRecord))
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
		err = store.MkdirAll(ctx, u.s, u.slot, 0o755)
	}
	if err == nil {
		err = store.WriteFile(ctx, u.s, path.Join(u.slot, unitRecord), append(text, '\n'), 0o644)
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
	if err := store.MkdirAll(ctx, u.s, path.Dir(to), 0o755); err != nil {
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

// replacingUnit is Replacing for a file that is there.
func replacingUnit(ctx context.Context, s store.Store, unit, name string) error {
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
func NotReplaced(ctx context.Context, s store.Store, name string) error {
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
func publishing(ctx context.Context, s store.Store, unit string) error {
	u := newUnit(s, unit)
	if there, err := u.read(ctx); err != nil || !there || u.Over || u.How != unitRemoved {
		return err
	}
	u.Over = true
	return u.write(ctx)
}

// removingUnit is Removing.
func removingUnit(ctx context.Context, s store.Store, unit, name string) (bool, error) {
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
