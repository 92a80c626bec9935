// Package retain retains checkpoints that a program removes or replaces, so that at least
// one complete checkpoint older than the newest of its series remains to go back to.
//
// Its files are moved, one by one, each by one rename, into a backup entry:
//
//	.holdfast/retained/CHECKPOINT/record.json    its name and files, and how it was lost
//	.holdfast/retained/CHECKPOINT/files/FILE     FILE as in the checkpoint
//	.holdfast/retained/CHECKPOINT/manifest.json  if it was sealed
//
// CHECKPOINT is its name as store.EntryName writes it. At each moment what is in the
// entry and what is still visible make up the whole checkpoint, where what is in the
// entry counts. An entry is made in the area of the writer that begins it (writers.Dir), and
// gets its place in one step; what is no longer retained, and manifests, are moved into the area
// before they are removed. So a writer that was fenced off has no file retained, and no entry removed, any
// longer. Whether files are a whole checkpoint is asked of its format, over a
// view of the store in which nothing but these files lies (view).
package retain

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"syscall"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/manifest"
	"holdfast/hdfsckpt/store"
)

// enough is how many complete checkpoints of a series must stay for another to be
// removed for good: the newest, and an older one.
const enough = 2

// Concerns reports whether a file, by its name, is a part of a checkpoint that may have to
// be retained: then Replacing must be called before it is replaced, and Removing before it
// is removed. Of one process, calls for one directory must not overlap.
func Concerns(file string) bool {
	return len(formats.OwnersOf(file)) > 0
}

// Area returns the directory of a writer in a store (writers.Dir), which exists until the writer is
// fenced off. It is called for what makes use of it; an error is returned as it is.
type Area func(ctx context.Context) (dir string, err error)

// errOvertaken: another writer has begun to retain the checkpoint, or has ended that, meanwhile.
var errOvertaken = errors.New("another writer retains it")

// mostTries is how often a change is tried that other writers overtake. Of ranks that save over a
// checkpoint together, the first retains it for all.
const mostTries = 10

// tries calls change until no other writer has overtaken it.
func tries(change func() error) (err error) {
	for range mostTries {
		if err = change(); !errors.Is(err, errOvertaken) {
			break
		}
	}
	return err
}

// Replacing is called before a writer puts another file in the place of one. Where that would
// spoil a complete checkpoint, its files are retained: the marker first, so that old
// and new files are never taken for one.
func Replacing(ctx context.Context, s store.Store, area Area, file string) error {
	if err := tries(func() error { return replacing(ctx, s, area, file) }); err != nil {
		return fmt.Errorf("retaining what %s had: %w", file, err)
	}
	return nil
}

func replacing(ctx context.Context, s store.Store, area Area, file string) error {
	owners := formats.OwnersOf(file)
	if len(owners) == 0 {
		return nil
	}
	i, err := s.Stat(ctx, file)
	if store.Vanished(err) { // the usual case: nothing is there
		return nil
	}
	if err != nil || i.IsDir() {
		return err
	}
	l := &lookup{s: s, area: area}
	for i, owner := range owners {
		b, err := l.open(ctx, owner)
		if err != nil {
			return err
		}
		if continues, err := b.continuesReplacing(ctx, file); err != nil {
			return err
		} else if continues {
			return b.takeAfterMarker(ctx, file)
		}
		if !slices.ContainsFunc(owners[i:], func(o format.Owner) bool { return o.InPlace }) {
			continue // whatever it is a part of
		}
		c, err := b.holding(ctx, file)
		if err != nil {
			return err
		}
		if c == nil {
			continue
		}
		if !owner.InPlace || !c.Whole() { // a program that only changes a file must find the others
			return nil
		}
		return b.replace(ctx, c, file)
	}
	return nil
}

// replace begins to retain a whole checkpoint of which a file is replaced.
func (b *backup) replace(ctx context.Context, c *format.Checkpoint, file string) error {
	if err := b.begin(ctx, replaced, c); err != nil {
		return err
	}
	if err := b.takeAfterMarker(ctx, file); err != nil || file != c.Marker || c.IsDir() {
		return err
	}
	// The new one may have other shards: then its files do not replace the old.
	for _, f := range c.Files {
		if _, ours := b.position(f.Name); ours && f.Name != file {
			if err := b.take(ctx, f.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// NotReplaced is called when what Replacing was called for has failed: a file that is a
// checkpoint by itself, and was retained, gets its name back, unless something has it.
func NotReplaced(ctx context.Context, s store.Store, file string) error {
	owner, ok := ownerNamed(file, file)
	if !ok {
		return nil
	}
	b, err := (&lookup{s: s}).open(ctx, owner)
	if err != nil || b.How != replaced {
		return err
	}
	if there, err := store.Exists(ctx, s, file); err != nil || there {
		return err
	}
	if has, err := b.has(ctx, file); err != nil || !has {
		return err
	}
	return b.restore(ctx, false)
}

// Replaced is called after a file has got a name that was free, of a checkpoint for which
// Replacing was called before. Once the new checkpoint is complete, what is left of the
// old one, because the new one has fewer files, is retained with the rest of it.
func Replaced(ctx context.Context, s store.Store, file string) error {
	if err := completed(ctx, s, file); err != nil {
		return fmt.Errorf("retaining what is left of the checkpoint that %s completed anew: %w", file, err)
	}
	return nil
}

func completed(ctx context.Context, s store.Store, file string) error {
	l := &lookup{s: s}
	for _, owner := range formats.OwnersOf(file) {
		if !owner.InPlace {
			continue
		}
		b, err := l.open(ctx, owner)
		if err == nil && b.How == replaced && b.Marker != "" && file == b.name(b.Marker) {
			err = b.takeExtra(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// takeExtra moves what is left of a checkpoint into the entry if its marker is there, and the one
// that replaces it is whole.
func (b *backup) takeExtra(ctx context.Context) error {
	if has, err := b.has(ctx, b.name(b.Marker)); err != nil || !has {
		return err
	}
	c, err := b.look(ctx, visible)
	if err != nil || c == nil || !c.Whole() {
		return err
	}
	for _, f := range c.Extra {
		lacks, err := b.lacks(ctx, f.Name)
		if err == nil && lacks {
			err = b.take(ctx, f.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Removing is called before a writer removes a file. It reports whether the file is retained,
// and so has left its name already.
func Removing(ctx context.Context, s store.Store, area Area, file string) (retained bool, err error) {
	err = tries(func() error {
		retained, err = removing(ctx, s, area, file)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("retaining %s: %w", file, err)
	}
	return retained, nil
}

func removing(ctx context.Context, s store.Store, area Area, file string) (bool, error) {
	owners := formats.OwnersOf(file)
	if len(owners) == 0 {
		return false, nil
	}
	i, err := s.Stat(ctx, file)
	if store.Vanished(err) || err == nil && i.IsDir() {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	l := &lookup{s: s, area: area}
	for _, owner := range owners {
		b, err := l.open(ctx, owner)
		if err != nil {
			return false, err
		}
		if continues, err := b.continuesRemoving(ctx, file); err != nil {
			return false, err
		} else if continues {
			return true, b.take(ctx, file)
		}
		c, err := b.holding(ctx, file)
		if err != nil {
			return false, err
		}
		if c != nil {
			return b.remove(ctx, c, file)
		}
	}
	return false, nil
}

// remove begins to retain a checkpoint of which a file is removed, if it has to be.
func (b *backup) remove(ctx context.Context, c *format.Checkpoint, file string) (bool, error) {
	if !c.Whole() {
		if file == c.Marker {
			return false, b.discard(ctx, manifest.Path(c.Name))
		}
		return false, nil
	}
	if c.Name != b.Name {
		// Whether it has always lain alone in its directory shows the manifest: others may
		// just have been removed.
		m, _, err := manifest.Read(ctx, b.s, manifest.Path(c.Name))
		if err != nil || m == nil || !c.Agrees(m) {
			return false, err
		}
	}
	last, err := b.isLast(ctx, c)
	if err != nil {
		return false, err
	}
	if !last {
		return false, b.discard(ctx, manifest.Path(c.Name))
	}
	if err := b.begin(ctx, removed, c); err != nil {
		return false, err
	}
	return true, b.take(ctx, file)
}

// isLast reports whether a whole checkpoint that is removed has to be retained: so few others of
// its series are visible, or none that was saved after it. If one is retained already that was
// saved after it, that stays instead, unless the program has gone back behind it since, and has
// saved a lower step. All others of the series that were removed before are removed for good, and
// what was retained by its own name.
func (b *backup) isLast(ctx context.Context, c *format.Checkpoint) (bool, error) {
	former, err := b.removedBefore(ctx)
	if err != nil {
		return false, err
	}
	this := savedOf(c)
	latest := this
	for _, r := range former {
		if r.Name == b.Name && !bytes.Equal(r.text, b.text) {
			return false, errOvertaken
		}
		if r.saved.after(latest) {
			latest = r.saved
		}
	}
	others, err := b.others(ctx, latest)
	if err != nil {
		return false, err
	}
	needed := func(x saved) bool {
		return len(others) < enough || !slices.ContainsFunc(others, func(o saved) bool { return !x.after(o) })
	}
	wentBack := func(x saved) bool {
		return slices.ContainsFunc(others, func(o saved) bool { return o.Time.After(x.Time) && o.Step <= x.Step })
	}
	var last *backup
	for _, r := range former {
		if r.Name == b.Name || !r.saved.after(this) || last != nil && !r.saved.after(last.saved) || !needed(r.saved) || wentBack(r.saved) {
			continue
		}
		if is, err := r.look(ctx, visible|retained); err != nil {
			return false, err
		} else if is != nil && is.Whole() {
			last = r
		}
	}
	for _, r := range former {
		if r == last {
			continue
		}
		if err := r.clear(ctx); err != nil {
			return false, err
		}
	}
	return last == nil && needed(this), nil
}

// removedBefore returns the entry of the checkpoint, and those of others of its series that were
// removed. Those without a step in their names are one series in a directory, as a program may
// name each of them anew.
func (b *backup) removedBefore(ctx context.Context) ([]*backup, error) {
	all, err := entries(ctx, b.s, b.area)
	return slices.DeleteFunc(all, func(o *backup) bool {
		return o.Name != b.Name && (o.How != removed || o.owner.Series != b.owner.Series || o.owner.Series == "" && path.Dir(o.Name) != path.Dir(b.Name))
	}), err
}

// others returns the other complete checkpoints of the series that are visible: enough, and as
// many as it takes to find one that was not saved before latest. It goes by the times in the
// listings, so that it does not look into all of a long series.
func (b *backup) others(ctx context.Context, latest saved) (found []saved, err error) {
	if b.owner.Series == "" {
		return nil, nil
	}
	dirs, err := b.seriesDirs(ctx)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{b.Name: true}
	later := false
	for _, dir := range dirs {
		tooOld := func(i store.Info) bool { return len(found) >= enough && i.ModTime.Before(latest.Time) }
		if tooOld(dir) {
			continue
		}
		entries, err := b.list(ctx, dir.Name)
		if err != nil {
			return nil, err
		}
		for _, e := range slices.Backward(slices.SortedStableFunc(slices.Values(entries), func(a, b store.Info) int { return a.ModTime.Compare(b.ModTime) })) {
			o, ok := b.sibling(path.Join(dir.Name, e.Name), e.IsDir())
			if !ok || seen[o.Checkpoint] || tooOld(e) {
				continue
			}
			seen[o.Checkpoint] = true
			sibling := &backup{lookup: b.lookup, owner: o, record: record{Name: o.Checkpoint}}
			c, err := sibling.look(ctx, visible)
			if err != nil {
				return nil, err
			}
			if c == nil || !c.Whole() {
				continue
			}
			found = append(found, savedOf(c))
			if later = later || !latest.after(savedOf(c)); later && len(found) >= enough {
				return found, nil
			}
		}
	}
	return found, nil
}

// sibling returns the checkpoint of the series that a name belongs to.
func (b *backup) sibling(name string, isDir bool) (o format.Owner, ok bool) {
	if isDir {
		o = b.owner
		o.Checkpoint = name
		return o, format.SeriesOf(name) == o.Series
	}
	all := formats.OwnersOf(name)
	i := slices.IndexFunc(all, func(o format.Owner) bool { return o.Series == b.owner.Series })
	if i < 0 {
		return o, false
	}
	return all[i], true
}

// seriesDirs returns the directories in which checkpoints of the series lie, those of the highest
// steps first. Where that is not one alone, they have the times of those that are named after steps.
func (b *backup) seriesDirs(ctx context.Context) ([]store.Info, error) {
	own, series := strings.Split(path.Dir(b.Name), "/"), strings.Split(path.Dir(b.owner.Series), "/")
	if len(own) != len(series) {
		return []store.Info{{Name: path.Dir(b.Name)}}, nil
	}
	dirs := []store.Info{{Name: "."}}
	for i, base := range series {
		var below []store.Info
		for _, dir := range dirs {
			if own[i] == base {
				dir.Name = path.Join(dir.Name, base)
				below = append(below, dir)
				continue
			}
			entries, err := b.list(ctx, dir.Name)
			if err != nil {
				return nil, err
			}
			for _, e := range entries {
				if e.IsDir() && format.IsStepDir(e.Name) && format.Shape(e.Name) == base {
					e.Name = path.Join(dir.Name, e.Name)
					below = append(below, e)
				}
			}
		}
		dirs = below
	}
	slices.SortFunc(dirs, func(a, b store.Info) int { return cmp.Or(len(b.Name)-len(a.Name), strings.Compare(b.Name, a.Name)) }) // as numbers
	return dirs, nil
}

// List lists the retained checkpoints that are whole, the newest last. Their names are
// those of the places where they lie; Former has the names that they had.
func List(ctx context.Context, s store.Store) ([]format.Checkpoint, error) {
	return list(ctx, s, false)
}

// Restorable is List with those that are whole only together with what is visible of them: they
// were being removed, replaced or restored. These files are named as they lie.
func Restorable(ctx context.Context, s store.Store) ([]format.Checkpoint, error) {
	return list(ctx, s, true)
}

func list(ctx context.Context, s store.Store, together bool) ([]format.Checkpoint, error) {
	all, err := entries(ctx, s, nil)
	if err != nil {
		return nil, err
	}
	var list []format.Checkpoint
	for _, b := range all {
		c, err := b.look(ctx, retained)
		whole := err == nil && c != nil && c.Whole()
		if err == nil && !whole && together {
			c, err = b.lookTogether(ctx)
		}
		if err != nil {
			return nil, err
		}
		if c == nil || !c.Whole() {
			continue
		}
		m, unread, err := manifest.Read(ctx, s, b.manifest())
		if err != nil {
			return nil, err
		}
		if unread != nil {
			c.Unsealed(unread)
		}
		if m != nil && c.Agrees(m) {
			for i := range m.Files {
				m.Files[i].Name = b.at(m.Files[i].Name)
			}
			c.State, c.Manifest = format.Sealed, m
			if c.Step == format.NoStep { // what lies beside it does not say it any longer
				c.Step = m.Step
			}
		}
		c.Former, c.Marker = c.Name, ""
		c.Name = b.at(c.Name)
		for i := range c.Files {
			f := &c.Files[i]
			has := whole
			if !whole {
				if has, err = b.has(ctx, f.Name); err != nil {
					return nil, err
				}
			}
			if has {
				f.Name = b.at(f.Name)
			}
		}
		list = append(list, *c)
	}
	format.Sort(list)
	return list, nil
}

// lookTogether returns the checkpoint of what is retained and what is visible, unless that is one
// by itself.
func (b *backup) lookTogether(ctx context.Context) (*format.Checkpoint, error) {
	c, err := b.look(ctx, visible)
	if err != nil || c != nil && c.Whole() {
		return nil, err
	}
	return b.look(ctx, visible|retained)
}

// Names returns the names of the checkpoints of which something is retained.
func Names(ctx context.Context, s store.Store) (map[string]bool, error) {
	all, err := entries(ctx, s, nil)
	names := map[string]bool{}
	for _, b := range all {
		names[b.checkpoint()] = true
	}
	return names, err
}

// Forget removes for good what is retained of a checkpoint of that name, if anything is: it is
// called before the one that has the name now is removed for good.
func Forget(ctx context.Context, s store.Store, name string) error {
	b, err := named(ctx, s, name)
	if err != nil || b == nil {
		return err
	}
	return b.clear(ctx)
}

// IsWhole reports whether something is retained of a checkpoint of that name, and it is whole
// together with what is visible of it.
func IsWhole(ctx context.Context, s store.Store, name string) (bool, error) {
	b, err := named(ctx, s, name)
	if err != nil || b == nil {
		return false, err
	}
	c, err := b.look(ctx, visible|retained)
	return err == nil && c != nil && c.Whole(), err
}

// named opens the entry of the checkpoint that had a name in lists; nil if there is none.
func named(ctx context.Context, s store.Store, name string) (*backup, error) {
	for _, checkpoint := range []string{name, path.Dir(name)} { // it may be alone in its directory
		b := &backup{lookup: &lookup{s: s}, entry: EntryDir(checkpoint)}
		if err := b.read(ctx); err != nil {
			return nil, err
		}
		if b.How != "" && b.checkpoint() == name {
			return b, nil
		}
	}
	return nil, nil
}

// Restore moves a retained checkpoint, as List lists it, back to its place. A checkpoint
// that has its name meanwhile is replaced.
func Restore(ctx context.Context, s store.Store, c format.Checkpoint) error {
	all, err := entries(ctx, s, nil)
	if err != nil {
		return err
	}
	for _, b := range all {
		if b.checkpoint() == c.Former {
			if err := b.restore(ctx, true); err != nil {
				return fmt.Errorf("cannot restore %s: %w", b.Name, err)
			}
			return nil
		}
	}
	return fmt.Errorf("cannot restore %s: it is not retained: %w", c.Name, syscall.ENOENT)
}

// RestoreNamed restores the checkpoint of that name if it is retained, whole. It reports
// whether it was.
func RestoreNamed(ctx context.Context, s store.Store, name string) (bool, error) {
	all, err := entries(ctx, s, nil)
	if err != nil {
		return false, err
	}
	for _, b := range all {
		if b.Name != name {
			continue
		}
		if c, err := b.look(ctx, visible|retained); err != nil || c == nil || !c.Whole() {
			return false, err
		}
		if err := b.restore(ctx, true); err != nil {
			return false, fmt.Errorf("restoring %s: %w", b.Name, err)
		}
		return true, nil
	}
	return false, nil
}

// RestoreNewest restores the newest checkpoint of a format that is retained from a
// directory. It returns its name; empty if there is none.
func RestoreNewest(ctx context.Context, s store.Store, kind format.Kind, dir string) (string, error) {
	all, err := entries(ctx, s, nil)
	if err != nil {
		return "", err
	}
	var best *backup
	var newest *format.Checkpoint
	for _, b := range all {
		if path.Dir(b.Name) != dir {
			continue
		}
		c, err := b.look(ctx, visible|retained)
		if err != nil {
			return "", err
		}
		if c != nil && c.Kind == kind && c.Whole() && (newest == nil || c.Step > newest.Step) {
			best, newest = b, c
		}
	}
	if best == nil {
		return "", nil
	}
	return best.Name, best.restore(ctx, true)
}
