package hdfsckpt

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"holdfast/hdfsckpt/tfbundle"
)

// A program that saves over a checkpoint, or removes all but the newest, would
// leave nothing to go back to. So the files of the last such checkpoint are not
// lost but kept:
//
//	.holdfast/kept/CHECKPOINT/FILE           CHECKPOINT escaped as in a URL
//	.holdfast/kept/CHECKPOINT/manifest.json  if it was sealed
//
// They go there one by one, by rename. At each moment what is kept and what is
// still visible make up the whole checkpoint, where what is kept counts.
const (
	keptDir      = OwnDir + "/kept"
	keptManifest = "manifest.json"
)

// enough is how many whole checkpoints must stay in a directory for another to
// be removed for good: the newest, and an older one.
const enough = 2

// Keeps tells whether a file, by its name, is a part of a checkpoint that is
// perhaps to be kept: whoever is about to replace it calls Replacing, whoever
// is about to remove it calls Removing. Of calls for one directory there must
// be one at a time.
func Keeps(name string) bool {
	_, _, ok := checkpointOf(name)
	return ok
}

// checkpointOf finds the checkpoint that a file belongs to.
func checkpointOf(name string) (checkpoint string, kind Kind, ok bool) {
	dir, base := path.Dir(name), path.Base(name)
	switch m := tfFile.FindStringSubmatch(base); {
	case strings.HasPrefix(name, hiddenPrefix) || IsTemporary(base):
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
func Replacing(ctx context.Context, s Store, name string) error {
	checkpoint, kind, ok := checkpointOf(name)
	if !ok {
		return nil
	}
	if _, err := s.Stat(ctx, name); err != nil { // the usual case: nothing is there
		if vanished(err) {
			err = nil
		}
		return err
	}
	k, err := lookAt(ctx, s, checkpoint, kind)
	if err != nil {
		return fmt.Errorf("keeping what %s had: %w", name, err)
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
func Removing(ctx context.Context, s Store, name string) (kept bool, err error) {
	checkpoint, kind, ok := checkpointOf(name)
	if !ok {
		return false, nil
	}
	k, err := lookAt(ctx, s, checkpoint, kind)
	if err == nil {
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
func ListKept(ctx context.Context, s Store) ([]Checkpoint, error) {
	slots, err := keptSlots(ctx, s)
	if err != nil {
		return nil, err
	}
	var all []Checkpoint
	for _, k := range slots {
		c := Checkpoint{Name: path.Join(k.slot, path.Base(k.name)), Kind: k.kind, Step: stepOf(k.name), State: Torn}
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
func BringBack(ctx context.Context, s Store, c Checkpoint) error {
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

// formerName is the name that a checkpoint had before it was kept; that of one
// that is not kept is its own.
func formerName(c Checkpoint) (name string, kept bool) {
	slot := c.Name
	if c.Kind == TensorFlow {
		slot = path.Dir(slot)
	}
	if path.Dir(slot) != keptDir {
		return c.Name, false
	}
	name, err := url.PathUnescape(path.Base(slot))
	return name, err == nil
}

// keeping is a checkpoint of which something is kept, or to be kept.
type keeping struct {
	s             Store
	name          string
	kind          Kind
	dir, slot     string
	visible, kept map[string]Info // by base name
}

func lookAt(ctx context.Context, s Store, name string, kind Kind) (*keeping, error) {
	k := &keeping{s: s, name: name, kind: kind, dir: path.Dir(name), slot: path.Join(keptDir, url.PathEscape(name))}
	if kind == Plain {
		k.dir = name
	}
	files := func(dir string) (map[string]Info, error) {
		entries, err := s.List(ctx, dir)
		if err != nil && !vanished(err) {
			return nil, err
		}
		found := map[string]Info{}
		for _, e := range entries {
			if of, _, ok := checkpointOf(path.Join(k.dir, e.Name)); ok && of == name && !e.IsDir() && e.Name != keptManifest {
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
func keptSlots(ctx context.Context, s Store) ([]*keeping, error) {
	entries, err := s.List(ctx, keptDir)
	if vanished(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []*keeping
	for _, e := range entries {
		name, err := url.PathUnescape(e.Name)
		if err != nil || !e.IsDir() {
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

// marker is the file without which a checkpoint does not count.
func (k *keeping) marker() string {
	if k.kind == Plain {
		return Committed
	}
	return tfbundle.IndexFile(path.Base(k.name))
}

// find says where a file lies; what is kept comes first.
func (k *keeping) find(base string, withKept bool) (string, Info, bool) {
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
	text, err := ReadFile(ctx, k.s, marker)
	if vanished(err) {
		return false, nil
	}
	files := maps.Clone(k.visible)
	if files == nil {
		files = map[string]Info{}
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
	if err := MkdirAll(ctx, k.s, k.slot, 0o755); err != nil {
		return err
	}
	if err := k.s.Rename(ctx, path.Join(k.dir, base), path.Join(k.slot, base)); err != nil {
		return err
	}
	delete(k.visible, base)
	k.kept[base] = i
	if base != k.marker() {
		return nil
	}
	return k.move(ctx, manifestName(k.name), path.Join(k.slot, keptManifest))
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
	for _, base := range append(names, keptManifest) {
		if err := k.s.Remove(ctx, path.Join(k.slot, base)); err != nil && !vanished(err) {
			return err
		}
	}
	clear(k.kept)
	return k.removeSlot(ctx)
}

func (k *keeping) removeSlot(ctx context.Context) error {
	if err := k.s.Remove(ctx, k.slot); err != nil && !vanished(err) && !errors.Is(err, syscall.ENOTEMPTY) {
		return err
	}
	return nil
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
	if err := MkdirAll(ctx, k.s, k.dir, 0o755); err != nil {
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
	if err := k.move(ctx, path.Join(k.slot, keptManifest), manifestName(k.name)); err != nil {
		return err
	}
	if err := k.move(ctx, path.Join(k.slot, k.marker()), path.Join(k.dir, k.marker())); err != nil {
		return err
	}
	return k.removeSlot(ctx)
}

// manifest is that of what is kept; nil if there is none that fits.
func (k *keeping) manifest(ctx context.Context, c *Checkpoint) (*Manifest, error) {
	text, err := ReadFile(ctx, k.s, path.Join(k.slot, keptManifest))
	if vanished(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := &Manifest{}
	if json.Unmarshal(text, m) != nil || m.Version != 1 {
		return nil, nil
	}
	for i := range m.Files {
		m.Files[i].Name = path.Join(k.slot, path.Base(m.Files[i].Name))
	}
	if !m.fits(c) {
		return nil, nil
	}
	return m, nil
}

const (
	// stillFor is how long nothing may have happened to a checkpoint that is
	// being replaced for its program to be taken for dead while others run.
	stillFor  = 5 * time.Second
	stillPoll = 250 * time.Millisecond
)

// mend undoes replacing and removing that did not come to an end. While
// somebody may be at it (live), only what stays as it is for a while counts.
func mend(ctx context.Context, s Store, live bool) (back []string, err error) {
	slots, err := keptSlots(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, k := range slots {
		broken, err := k.broken(ctx)
		if err == nil && broken && live {
			broken, err = k.staysBroken(ctx)
		}
		if err != nil {
			return back, err
		}
		if broken {
			if err := k.bringBack(ctx); err != nil {
				return back, fmt.Errorf("bringing %s back: %w", k.name, err)
			}
			back = append(back, k.name)
			continue
		}
		whole, err := k.whole(ctx, true)
		if err == nil && !whole && !live {
			err = k.clear(ctx)
		}
		if err != nil {
			return back, err
		}
	}
	return back, nil
}

// broken tells that something visible is not whole, and would be with what is
// kept. Where nothing is visible, it was removed, unless `checkpoint` names it:
// then all of it has made room for what was to replace it.
func (k *keeping) broken(ctx context.Context) (bool, error) {
	if len(k.kept) == 0 {
		return false, nil
	}
	if len(k.visible) == 0 {
		if named, err := k.named(ctx); err != nil || !named {
			return false, err
		}
	}
	if whole, err := k.whole(ctx, false); err != nil || whole {
		return false, err
	}
	return k.whole(ctx, true)
}

// named tells whether the file `checkpoint` names it.
func (k *keeping) named(ctx context.Context) (bool, error) {
	if k.kind != TensorFlow {
		return false, nil
	}
	text, err := ReadFile(ctx, k.s, path.Join(k.dir, StateFile))
	if vanished(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	state, err := ParseState(text)
	return err == nil && path.Base(state.Current) == path.Base(k.name), nil
}

// staysBroken watches it for a while.
func (k *keeping) staysBroken(ctx context.Context) (bool, error) {
	tick := time.NewTicker(stillPoll)
	defer tick.Stop()
	since := time.Now()
	for time.Since(since) < stillFor {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-tick.C:
		}
		now, err := lookAt(ctx, k.s, k.name, k.kind)
		if err != nil {
			return false, err
		}
		if !maps.EqualFunc(now.visible, k.visible, sameInfo) || !maps.EqualFunc(now.kept, k.kept, sameInfo) {
			since = time.Now()
		}
		*k = *now
		if broken, err := k.broken(ctx); err != nil || !broken {
			return false, err
		}
	}
	return true, nil
}

func sameInfo(a, b Info) bool {
	return a.Size == b.Size && a.ModTime.Equal(b.ModTime) && a.Inode == b.Inode
}

// bringBackNewest puts back the newest checkpoint that is kept of a directory.
// It tells its name; "" if there is none.
func bringBackNewest(ctx context.Context, s Store, dir string) (string, error) {
	slots, err := keptSlots(ctx, s)
	if err != nil {
		return "", err
	}
	var best *keeping
	for _, k := range slots {
		if k.kind != TensorFlow || path.Dir(k.name) != dir {
			continue
		}
		whole, err := k.whole(ctx, true)
		if err != nil {
			return "", err
		}
		if whole && (best == nil || stepOf(k.name) > stepOf(best.name)) {
			best = k
		}
	}
	if best == nil {
		return "", nil
	}
	return best.name, best.bringBack(ctx)
}
