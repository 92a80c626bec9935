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
// entry counts. Whether files are a whole checkpoint is asked of its format, over a
// view of the store in which nothing but these files lies (view).
package retain

import (
	"context"
	"fmt"
	"path"
	"slices"
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
// is removed. Calls for one directory must not overlap.
func Concerns(file string) bool {
	_, ok := formats.OwnerOf(file)
	return ok
}

// Replacing is called before another file is put in the place of one. Where that would
// spoil a complete checkpoint, its files are retained: the marker first, so that old
// and new files are never taken for one.
func Replacing(ctx context.Context, s store.Store, file string) error {
	if err := replacing(ctx, s, file); err != nil {
		return fmt.Errorf("retaining what %s had: %w", file, err)
	}
	return nil
}

func replacing(ctx context.Context, s store.Store, file string) error {
	owner, ok := formats.OwnerOf(file)
	if !ok {
		return nil
	}
	i, err := s.Stat(ctx, file)
	if store.Vanished(err) { // the usual case: nothing is there
		return nil
	}
	if err != nil || i.IsDir() {
		return err
	}
	b, err := open(ctx, s, owner)
	if err != nil {
		return err
	}
	if lacks, err := b.lacks(ctx, file); err != nil {
		return err
	} else if lacks {
		return b.takeAfterMarker(ctx, file)
	}
	if !owner.InPlace { // a program that only changes a file must find the others
		return nil
	}
	c, err := b.look(ctx, visible)
	if err != nil || c == nil || !c.Whole() {
		return err
	}
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
	owner, ok := formats.OwnerOf(file)
	if !ok || owner.Checkpoint != file {
		return nil
	}
	b, err := open(ctx, s, owner)
	if err != nil || b.How != replaced {
		return err
	}
	if there, err := store.Exists(ctx, s, file); err != nil || there {
		return err
	}
	if has, err := b.has(ctx, file); err != nil || !has {
		return err
	}
	return b.restore(ctx)
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
	owner, ok := formats.OwnerOf(file)
	if !ok {
		return nil
	}
	b, err := open(ctx, s, owner)
	if err != nil || b.How != replaced || b.Marker == "" || file != b.name(b.Marker) {
		return err
	}
	if has, err := b.has(ctx, file); err != nil || !has {
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

// Removing is called before a file is removed. It reports whether the file is retained,
// and so has left its name already.
func Removing(ctx context.Context, s store.Store, file string) (retained bool, err error) {
	if retained, err = removing(ctx, s, file); err != nil {
		return false, fmt.Errorf("retaining %s: %w", file, err)
	}
	return retained, nil
}

func removing(ctx context.Context, s store.Store, file string) (bool, error) {
	owner, ok := formats.OwnerOf(file)
	if !ok {
		return false, nil
	}
	i, err := s.Stat(ctx, file)
	if store.Vanished(err) || err == nil && i.IsDir() {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	b, err := open(ctx, s, owner)
	if err != nil {
		return false, err
	}
	if continues, err := b.continuesRemoving(ctx, file); err != nil {
		return false, err
	} else if continues {
		return true, b.take(ctx, file)
	}
	c, err := b.look(ctx, visible)
	switch {
	case err != nil || c == nil:
		return false, err
	case !c.Whole():
		if file == c.Marker {
			err = manifest.Remove(ctx, s, c.Name)
		}
		return false, err
	case !slices.ContainsFunc(c.Files, func(f format.File) bool { return f.Name == file }):
		return false, nil
	}
	if c.Name != b.Name {
		// Whether it has always lain alone in its directory shows the manifest: others may
		// just have been removed.
		m, _, err := manifest.Read(ctx, s, manifest.Path(c.Name))
		if err != nil || m == nil || !c.Agrees(m) {
			return false, err
		}
	}
	others, err := b.others(ctx)
	if err != nil {
		return false, err
	}
	if err := b.clearSeries(ctx); err != nil { // older than this one, or not needed
		return false, err
	}
	if others >= enough {
		return false, manifest.Remove(ctx, s, c.Name)
	}
	if err := b.begin(ctx, removed, c); err != nil {
		return false, err
	}
	return true, b.take(ctx, file)
}

// others counts the other complete checkpoints of the series that are visible, up to
// enough.
func (b *backup) others(ctx context.Context) (int, error) {
	if b.owner.Series == "" {
		return 0, nil
	}
	dir := path.Dir(b.Name)
	entries, err := b.list(ctx, dir)
	if err != nil {
		return 0, err
	}
	seen := map[string]bool{b.Name: true}
	n := 0
	for _, e := range slices.Backward(entries) {
		o, name := b.owner, path.Join(dir, e.Name)
		if e.IsDir() {
			if format.SeriesOf(name) != o.Series {
				continue
			}
			o.Checkpoint = name
		} else {
			of, ok := formats.OwnerOf(name)
			if !ok || of.Series != o.Series {
				continue
			}
			o = of
		}
		if seen[o.Checkpoint] {
			continue
		}
		seen[o.Checkpoint] = true
		sibling := &backup{lookup: b.lookup, owner: o, record: record{Name: o.Checkpoint}}
		if c, err := sibling.look(ctx, visible); err != nil {
			return 0, err
		} else if c != nil && c.Whole() {
			if n++; n == enough {
				break
			}
		}
	}
	return n, nil
}

// clearSeries removes the entry of the checkpoint, and those of others of its series
// that were removed. Those without a step in their names are one series in a directory,
// as a program may name each of them anew.
func (b *backup) clearSeries(ctx context.Context) error {
	all, err := entries(ctx, b.s)
	if err != nil {
		return err
	}
	for _, o := range all {
		if o.Name == b.Name || o.How == removed && path.Dir(o.Name) == path.Dir(b.Name) && o.owner.Series == b.owner.Series {
			if err := o.clear(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// List lists the retained checkpoints that are whole, the newest last. Their names are
// those of the places where they lie; Former has the names that they had.
func List(ctx context.Context, s store.Store) ([]format.Checkpoint, error) {
	all, err := entries(ctx, s)
	if err != nil {
		return nil, err
	}
	var list []format.Checkpoint
	for _, b := range all {
		c, err := b.look(ctx, retained)
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
			c.Files[i].Name = b.at(c.Files[i].Name)
		}
		list = append(list, *c)
	}
	format.Sort(list)
	return list, nil
}

// Names returns the names of the checkpoints of which something is retained.
func Names(ctx context.Context, s store.Store) (map[string]bool, error) {
	all, err := entries(ctx, s)
	names := map[string]bool{}
	for _, b := range all {
		names[b.checkpoint()] = true
	}
	return names, err
}

// Restore moves a retained checkpoint, as List lists it, back to its place. A checkpoint
// that has its name meanwhile is replaced.
func Restore(ctx context.Context, s store.Store, c format.Checkpoint) error {
	all, err := entries(ctx, s)
	if err != nil {
		return err
	}
	for _, b := range all {
		if b.checkpoint() == c.Former {
			if err := b.restore(ctx); err != nil {
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
	all, err := entries(ctx, s)
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
		if err := b.restore(ctx); err != nil {
			return false, fmt.Errorf("restoring %s: %w", b.Name, err)
		}
		return true, nil
	}
	return false, nil
}

// RestoreNewest restores the newest checkpoint of a format that is retained from a
// directory. It returns its name; empty if there is none.
func RestoreNewest(ctx context.Context, s store.Store, kind format.Kind, dir string) (string, error) {
	all, err := entries(ctx, s)
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
	return best.Name, best.restore(ctx)
}
