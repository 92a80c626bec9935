package hdfsckpt

import (
	"cmp"
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

// A program that saves over a checkpoint, or removes all but the newest, would
// leave nothing to go back to. So the files of the last such checkpoint are not
// lost but kept:
//
//	.holdfast/kept/CHECKPOINT/files/FILE     CHECKPOINT as entryName calls it
//	.holdfast/kept/CHECKPOINT/manifest.json  if it was sealed
//	.holdfast/kept/CHECKPOINT/name           if CHECKPOINT was cut
//
// They go there one by one, by rename. At each moment what is kept and what is
// still visible make up the whole checkpoint, where what is kept counts.
const (
	keptDir      = store.OwnDir + "/kept"
	keptManifest = "manifest.json"
	keptFiles    = "files"
	keptName     = "name"
)

// enough is how many whole checkpoints must stay in a directory for another to
// be removed for good: the newest, and an older one.
const enough = 2

// Keeps tells whether a file, by its name, is a part of a checkpoint that is
// perhaps to be kept: whoever is about to replace it calls Replacing, whoever
// is about to remove it calls Removing. Of calls for one directory there must
// be one at a time.
func Keeps(name string) bool {
	if _, _, ok := checkpointOf(name); ok {
		return true
	}
	_, ok := unitOf(name)
	return ok
}

// checkpointOf finds the checkpoint that a file belongs to.
func checkpointOf(name string) (checkpoint string, kind Kind, ok bool) {
	dir, base := path.Dir(name), path.Base(name)
	switch m := tfFile.FindStringSubmatch(base); {
	case strings.HasPrefix(name, hiddenPrefix) || store.IsTemporary(base):
		return "", "", false
	case isPlainName(path.Base(dir)):
		return dir, Plain, true
	case m == nil || m[2] == "meta" || isTemporaryPart(path.Base(dir)):
		return "", "", false
	default:
		return path.Join(dir, m[1]), TensorFlow, true
	}
}

// Replacing is told before another file is put in the place of name. Where that
// would spoil a whole checkpoint, its files are kept.
func Replacing(ctx context.Context, s store.Store, name string) error {
	checkpoint, kind, ok := checkpointOf(name)
	unit, isUnit := "", false
	if !ok {
		unit, isUnit = unitOf(name)
	}
	if !ok && !isUnit {
		return nil
	}
	i, err := s.Stat(ctx, name)
	if vanished(err) { // the usual case: nothing is there
		if isUnit {
			return publishing(ctx, s, unit)
		}
		return nil
	}
	if err != nil || i.IsDir() {
		return err
	}
	if isUnit {
		if err := replacingUnit(ctx, s, unit, name); err != nil {
			return fmt.Errorf("keeping what %s had: %w", name, err)
		}
		return nil
	}
	k, err := lookAt(ctx, s, checkpoint, kind)
	if err == nil && k.otherForm() {
		err = replacingUnit(ctx, s, checkpoint, name)
		k = nil
	}
	if err != nil {
		return fmt.Errorf("keeping what %s had: %w", name, err)
	}
	if k == nil {
		return nil
	}
	err = k.replacing(ctx, path.Base(name))
	if err != nil {
		return fmt.Errorf("keeping what %s had: %w", name, err)
	}
	return nil
}

func (k *keeping) replacing(ctx context.Context, base string) error {
	begun, err := k.continues(ctx, base)
	if err != nil || begun {
		return err
	}
	// Of a plain checkpoint, a program that saves over it removes the marker
	// first; one that only changes a file must not find the marker gone.
	if k.kind == Plain {
		return nil
	}
	whole, err := k.whole(ctx, false)
	if err != nil || !whole {
		return err
	}
	if err := k.clear(ctx); err != nil {
		return err
	}
	if err := k.keep(ctx, k.marker()); err != nil || base != k.marker() {
		return errors.Join(err, k.keep(ctx, base))
	}
	// The new one may have other shards: then its files do not replace the old.
	for _, b := range slices.Sorted(maps.Keys(k.visible)) {
		if err := k.keep(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// Removing is told before name is removed. It tells whether the file is kept,
// and so has left its name already.
func Removing(ctx context.Context, s store.Store, name string) (kept bool, err error) {
	checkpoint, kind, ok := checkpointOf(name)
	if unit, isUnit := unitOf(name); !ok && isUnit {
		if kept, err = removingUnit(ctx, s, unit, name); err != nil {
			return false, fmt.Errorf("keeping %s: %w", name, err)
		}
		return kept, nil
	}
	if !ok {
		return false, nil
	}
	k, err := lookAt(ctx, s, checkpoint, kind)
	switch {
	case err != nil:
	case k.otherForm():
		kept, err = removingUnit(ctx, s, checkpoint, name)
	default:
		kept, err = k.removing(ctx, path.Base(name))
	}
	if err != nil {
		return false, fmt.Errorf("keeping %s: %w", name, err)
	}
	return kept, nil
}

func (k *keeping) removing(ctx context.Context, base string) (bool, error) {
	if _, there := k.visible[base]; !there {
		return false, nil
	}
	if begun, err := k.continues(ctx, base); err != nil || begun {
		return begun, err
	}
	whole, err := k.whole(ctx, false)
	if err != nil {
		return false, err
	}
	if !whole {
		return false, k.unseal(ctx, base)
	}
	others, err := k.others(ctx)
	if err != nil {
		return false, err
	}
	// What was kept before is older than this one, or not needed.
	if err := k.clearOthers(ctx); err != nil {
		return false, err
	}
	if err := k.clear(ctx); err != nil {
		return false, err
	}
	if others >= enough {
		return false, k.unseal(ctx, base)
	}
	return true, k.keep(ctx, base)
}

// ListKept lists the checkpoints that are kept, the newest last. Their names are
// those of the places where they lie.
func ListKept(ctx context.Context, s store.Store) ([]Checkpoint, error) {
	slots, err := keptSlots(ctx, s)
	if err != nil {
		return nil, err
	}
	all, err := listKeptUnits(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, k := range slots {
		c := Checkpoint{Name: path.Join(k.slot, path.Base(k.name)), Kind: k.kind, Step: stepOf(k.name), State: Torn, former: k.name}
		if k.kind == Plain {
			c.Name = k.slot
		}
		for base, i := range k.kept {
			c.Files = append(c.Files, fileOf(k.slot, i))
			c.Size += i.Size
			if i.ModTime.After(c.Time) {
				c.Time = i.ModTime
			}
			if base != k.marker() {
				c.Shards++
			}
		}
		slices.SortFunc(c.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
		alone := *k
		alone.visible = nil
		whole, err := alone.whole(ctx, true)
		if err != nil {
			return nil, err
		}
		if whole {
			c.State = Complete
			if c.Manifest, err = k.manifest(ctx, &c); err != nil {
				return nil, err
			}
			if c.Manifest != nil {
				c.State = Sealed
			}
		} else {
			c.Why = "not all of it was kept"
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Checkpoint) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), a.Time.Compare(b.Time), strings.Compare(a.Name, b.Name))
	})
	return all, nil
}

// BringBack puts a kept checkpoint, as ListKept lists it, back in its place. What
// has its name meanwhile goes.
func BringBack(ctx context.Context, s store.Store, c Checkpoint) error {
	slots, err := keptSlots(ctx, s)
	if err != nil {
		return err
	}
	for _, k := range slots {
		if c.Name == k.slot || path.Dir(c.Name) == k.slot {
			if err := k.bringBack(ctx); err != nil {
				return fmt.Errorf("cannot bring %s back: %w", k.name, err)
			}
			return nil
		}
	}
	return fmt.Errorf("cannot bring %s back: it is not kept: %w", c.Name, syscall.ENOENT)
}

// FormerName is the name that a checkpoint had before it was kept; that of one
// that is not kept is its own.
func FormerName(c Checkpoint) (name string, kept bool) {
	if c.former != "" {
		return c.former, true
	}
	return c.Name, false
}
