package hdfsckpt

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"

	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/tfbundle"
)

// keeping is a checkpoint of which something is kept, or to be kept.
type keeping struct {
	s             store.Store
	name          string
	kind          Kind
	dir           string
	entry         string                // of what is kept
	slot          string                // the files in it
	visible, kept map[string]store.Info // by base name
}

func lookAt(ctx context.Context, s store.Store, name string, kind Kind) (*keeping, error) {
	k := &keeping{s: s, name: name, kind: kind, dir: path.Dir(name), entry: path.Join(keptDir, entryName(name))}
	k.slot = path.Join(k.entry, keptFiles)
	if kind == Plain {
		k.dir = name
	}
	files := func(dir string) (map[string]store.Info, error) {
		entries, err := s.List(ctx, dir)
		if err != nil && !vanished(err) {
			return nil, err
		}
		found := map[string]store.Info{}
		for _, e := range entries {
			if of, _, ok := checkpointOf(path.Join(k.dir, e.Name)); ok && of == name && !e.IsDir() {
				found[e.Name] = e
			}
		}
		return found, nil
	}
	var err error
	if k.visible, err = files(k.dir); err != nil {
		return nil, err
	}
	k.kept, err = files(k.slot)
	return k, err
}

// keptSlots finds all that is kept.
func keptSlots(ctx context.Context, s store.Store) ([]*keeping, error) {
	entries, err := s.List(ctx, keptDir)
	if vanished(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []*keeping
	for _, e := range entries {
		name, ok, err := keptIn(ctx, s, e)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		kind := TensorFlow
		if isPlainName(path.Base(name)) {
			kind = Plain
		}
		k, err := lookAt(ctx, s, name, kind)
		if err != nil {
			return nil, err
		}
		all = append(all, k)
	}
	return all, nil
}

// keptIn returns the name of the checkpoint that an entry below keptDir stands for;
// false if it stands for none.
func keptIn(ctx context.Context, s store.Store, entry store.Info) (name string, ok bool, err error) {
	if name, ok := entryOf(entry.Name); ok || !entry.IsDir() {
		return name, ok && entry.IsDir(), nil
	}
	text, err := store.ReadFile(ctx, s, path.Join(keptDir, entry.Name, keptName))
	if vanished(err) {
		return "", false, nil
	}
	return string(text), err == nil && isEntryFor(entry.Name, string(text)), err
}

// marker is the file without which a checkpoint does not count.
func (k *keeping) marker() string {
	if k.kind == Plain {
		return Committed
	}
	return tfbundle.IndexFile(path.Base(k.name))
}

// otherForm tells whether a directory step-N is not known by its marker, but may
// be a checkpoint of another form.
func (k *keeping) otherForm() bool {
	_, _, marked := k.find(k.marker(), true)
	return k.kind == Plain && !marked
}

// find says where a file lies; what is kept comes first.
func (k *keeping) find(base string, withKept bool) (string, store.Info, bool) {
	if i, ok := k.kept[base]; ok && withKept {
		return path.Join(k.slot, base), i, true
	}
	i, ok := k.visible[base]
	return path.Join(k.dir, base), i, ok
}

// whole tells whether what is visible, or that and what is kept, is a whole
// checkpoint.
func (k *keeping) whole(ctx context.Context, withKept bool) (bool, error) {
	marker, _, ok := k.find(k.marker(), withKept)
	if !ok {
		return false, nil
	}
	if k.kind == Plain {
		return k.wholePlain(ctx, marker, withKept)
	}
	x, err := readIndex(ctx, k.s, marker)
	if vanished(err) || isContent(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for i, need := range x.ShardSizes() {
		base := tfbundle.DataFile(path.Base(k.name), i, x.Header.Shards)
		if _, info, ok := k.find(base, withKept); !ok || info.Size < need {
			return false, nil
		}
	}
	return true, nil
}

func (k *keeping) wholePlain(ctx context.Context, marker string, withKept bool) (bool, error) {
	text, err := store.ReadFile(ctx, k.s, marker)
	if vanished(err) {
		return false, nil
	}
	files := maps.Clone(k.visible)
	if files == nil {
		files = map[string]store.Info{}
	}
	if withKept {
		maps.Copy(files, k.kept)
	}
	shards := 0
	for base := range files {
		if base != Committed && !strings.HasSuffix(base, ".tmp") {
			shards++
		}
	}
	return shards >= markedShards(text), err
}

// continues goes on with keeping a checkpoint of which a part is kept already;
// false if base is not one of its files.
func (k *keeping) continues(ctx context.Context, base string) (bool, error) {
	if _, has := k.kept[base]; has || len(k.kept) == 0 {
		return false, nil
	}
	if whole, err := k.whole(ctx, false); err != nil || whole {
		return false, err
	}
	if whole, err := k.whole(ctx, true); err != nil || !whole {
		return false, err
	}
	return true, k.keep(ctx, base)
}

// keep moves a file out of sight.
func (k *keeping) keep(ctx context.Context, base string) error {
	i, ok := k.visible[base]
	if !ok {
		return nil
	}
	if err := store.MkdirAll(ctx, k.s, k.slot, 0o755); err != nil {
		return err
	}
	if k.nameIsCut() && len(k.kept) == 0 {
		if err := store.WriteFile(ctx, k.s, path.Join(k.entry, keptName), []byte(k.name), 0o644); err != nil {
			return err
		}
	}
	if err := k.s.Rename(ctx, path.Join(k.dir, base), path.Join(k.slot, base)); err != nil {
		return err
	}
	delete(k.visible, base)
	k.kept[base] = i
	if base != k.marker() {
		return nil
	}
	return k.move(ctx, manifestName(k.name), path.Join(k.entry, keptManifest))
}

// move renames what may not be there.
func (k *keeping) move(ctx context.Context, from, to string) error {
	if err := k.s.Rename(ctx, from, to); err != nil && !vanished(err) {
		return err
	}
	return nil
}

// unseal removes the manifest together with the file that makes a checkpoint
// count.
func (k *keeping) unseal(ctx context.Context, base string) error {
	if base != k.marker() {
		return nil
	}
	return Unseal(ctx, k.s, k.name)
}

// clear removes what is kept.
func (k *keeping) clear(ctx context.Context) error {
	if len(k.kept) == 0 {
		return nil
	}
	names := []string{k.marker()}
	for base := range k.kept {
		if base != k.marker() {
			names = append(names, base)
		}
	}
	for _, base := range names {
		if err := k.s.Remove(ctx, path.Join(k.slot, base)); err != nil && !vanished(err) {
			return err
		}
	}
	clear(k.kept)
	return k.removeEntry(ctx)
}

// removeEntry removes the entry once no file is in it.
func (k *keeping) removeEntry(ctx context.Context) error {
	names := []string{k.slot, path.Join(k.entry, keptManifest)}
	if k.nameIsCut() {
		names = append(names, path.Join(k.entry, keptName))
	}
	for _, name := range append(names, k.entry) {
		err := k.s.Remove(ctx, name)
		if errors.Is(err, syscall.ENOTEMPTY) {
			return nil
		}
		if err != nil && !vanished(err) {
			return err
		}
	}
	return nil
}

// nameIsCut reports whether the entry is called after a part of the checkpoint's name
// only, so that keptName has to hold the whole.
func (k *keeping) nameIsCut() bool {
	_, known := entryOf(path.Base(k.entry))
	return !known
}

// clearOthers removes what is kept of the same place's other checkpoints.
func (k *keeping) clearOthers(ctx context.Context) error {
	slots, err := keptSlots(ctx, k.s)
	if err != nil {
		return err
	}
	for _, o := range slots {
		if o.name != k.name && o.kind == k.kind && path.Dir(o.name) == path.Dir(k.name) {
			if err := o.clear(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// others counts the other whole checkpoints of the same place that are visible,
// as far as it matters.
func (k *keeping) others(ctx context.Context) (int, error) {
	entries, err := k.s.List(ctx, path.Dir(k.name))
	if err != nil {
		return 0, err
	}
	n := 0
	for _, e := range slices.Backward(entries) {
		other, isIndex := strings.CutSuffix(e.Name, ".index")
		if k.kind == Plain {
			other, isIndex = e.Name, e.IsDir() && isPlainName(e.Name)
		}
		if !isIndex || other == path.Base(k.name) {
			continue
		}
		o, err := lookAt(ctx, k.s, path.Join(path.Dir(k.name), other), k.kind)
		if err != nil {
			return 0, err
		}
		whole, err := o.whole(ctx, false)
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

// bringBack puts back what is kept, the file that makes it count last.
func (k *keeping) bringBack(ctx context.Context) error {
	if _, ours := k.kept[k.marker()]; ours {
		if err := k.s.Remove(ctx, path.Join(k.dir, k.marker())); err != nil && !vanished(err) {
			return err
		}
	}
	if err := store.MkdirAll(ctx, k.s, k.dir, 0o755); err != nil {
		return err
	}
	for _, base := range slices.Sorted(maps.Keys(k.kept)) {
		if base == k.marker() {
			continue
		}
		if err := k.move(ctx, path.Join(k.slot, base), path.Join(k.dir, base)); err != nil {
			return err
		}
	}
	if err := k.move(ctx, path.Join(k.entry, keptManifest), manifestName(k.name)); err != nil {
		return err
	}
	if err := k.move(ctx, path.Join(k.slot, k.marker()), path.Join(k.dir, k.marker())); err != nil {
		return err
	}
	return k.removeEntry(ctx)
}

// manifest is that of what is kept; nil if there is none that fits.
func (k *keeping) manifest(ctx context.Context, c *Checkpoint) (*Manifest, error) {
	m, err := readManifest(ctx, k.s, path.Join(k.entry, keptManifest))
	if err != nil || m == nil {
		return nil, err
	}
	for i := range m.Files {
		m.Files[i].Name = path.Join(k.slot, path.Base(m.Files[i].Name))
	}
	if !m.fits(c) {
		return nil, nil
	}
	return m, nil
}
