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
	"time"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/manifest"
	"holdfast/hdfsckpt/store"
)

const (
	dir          = store.OwnDir + "/retained"
	recordFile   = "record.json"
	filesDir     = "files"
	manifestFile = "manifest.json"
)

// how a checkpoint was lost.
type how string

const (
	removed  how = "removed"
	replaced how = "replaced"
)

// record is what is written of a backup entry before anything is moved into it.
type record struct {
	Name string `json:"name"`
	How  how    `json:"how"`
	// Files are those that made up the checkpoint, relative to it if it is a directory,
	// else to the directory that it lies in.
	Files  []string `json:"files"`
	Marker string   `json:"marker,omitempty"` // one of them
	Dir    bool     `json:"directory,omitempty"`
	// Alone is the file that was the checkpoint, one of Files, where it lay alone in the
	// directory Name; else empty.
	Alone string `json:"alone,omitempty"`
	// ID tells entries of one checkpoint apart. In records of former versions it is missing.
	ID string `json:"id,omitempty"`
	saved
}

// saved is when a checkpoint was saved: its last file, and the step in its name. In records of
// former versions it is missing.
type saved struct {
	Time time.Time `json:"time,omitzero"`
	Step int64     `json:"step,omitempty"`
}

func savedOf(c *format.Checkpoint) saved { return saved{c.Time, c.NamedStep()} }

// after reports whether it was saved after another one: of two of the same time the one with the
// higher step was.
func (a saved) after(b saved) bool {
	return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Step, b.Step)) > 0
}

// checkpoint is the name that the checkpoint had in lists.
func (r *record) checkpoint() string { return path.Join(r.Name, r.Alone) }

// backup is the backup entry of a checkpoint; How is empty if there is none.
type backup struct {
	*lookup
	record
	owner format.Owner
	entry string
	text  []byte // the record as it was read; nil if there is none
}

// EntryDir is the directory of a checkpoint's backup entry. Who moves the checkpoint away moves that,
// too: Repair would take it for one whose replacement did not follow.
func EntryDir(checkpoint string) string { return path.Join(dir, store.EntryName(checkpoint)) }

// open opens the entry of a checkpoint.
func (l *lookup) open(ctx context.Context, owner format.Owner) (*backup, error) {
	b := &backup{lookup: l, owner: owner, entry: EntryDir(owner.Checkpoint)}
	if err := b.read(ctx); err != nil {
		return nil, err
	}
	b.Name = owner.Checkpoint
	return b, nil
}

// entries opens all entries of a store, for who has the area.
func entries(ctx context.Context, s store.Store, area Area) ([]*backup, error) {
	list, err := s.List(ctx, dir)
	if store.Vanished(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []*backup
	for _, e := range list {
		if !e.IsDir() {
			continue
		}
		b := &backup{lookup: &lookup{s: s, area: area}, entry: path.Join(dir, e.Name)}
		if err := b.read(ctx); err != nil {
			return nil, err
		}
		if b.How != "" {
			all = append(all, b)
		}
	}
	return all, nil
}

// read reads the record. One that cannot be read, or leads out of the store, counts as
// missing.
func (b *backup) read(ctx context.Context) error {
	text, err := recordOf(ctx, b.s, b.entry)
	if err != nil || text == nil {
		return err
	}
	var r record
	b.text = text
	if store.ParseRecord(text, &r) != nil || r.How != removed && r.How != replaced ||
		!store.IsEntryFor(path.Base(b.entry), r.Name) || slices.ContainsFunc(r.Files, func(f string) bool { return store.CheckName("look at", f) != nil }) ||
		r.Alone != "" && !slices.Contains(r.Files, r.Alone) {
		return nil
	}
	for _, f := range r.Files {
		if owner, ok := ownerNamed(r.name(f), r.Name); ok {
			b.record, b.owner = r, owner
			return nil
		}
	}
	return nil
}

// recordOf reads the record of an entry; nil if there is none.
func recordOf(ctx context.Context, s store.Store, entry string) ([]byte, error) {
	text, err := store.ReadFile(ctx, s, path.Join(entry, recordFile))
	if store.Vanished(err) {
		return nil, nil
	}
	return text, err
}

// ownerNamed returns the checkpoint of that name if a file may be a part of it.
func ownerNamed(file, checkpoint string) (format.Owner, bool) {
	all := formats.OwnersOf(file)
	i := slices.IndexFunc(all, func(o format.Owner) bool { return o.Checkpoint == checkpoint })
	if i < 0 {
		return format.Owner{}, false
	}
	return all[i], true
}

// name is the name that a file had.
func (r *record) name(file string) string {
	if r.Dir {
		return path.Join(r.Name, file)
	}
	return path.Join(path.Dir(r.Name), file)
}

// position is where a file is in the entry: relative to the checkpoint, or to the
// directory that it lies in. ours is false for a file that was not one of the
// checkpoint's.
func (r *record) position(file string) (pos string, ours bool) {
	pos = path.Base(file)
	if strings.HasPrefix(file, r.Name+"/") {
		pos = file[len(r.Name)+1:]
	}
	return pos, slices.Contains(r.Files, pos)
}

// at is where a file of the checkpoint lies when it is retained, or the checkpoint
// itself.
func (b *backup) at(file string) string {
	if file == b.Name && b.Dir {
		return path.Join(b.entry, filesDir)
	}
	pos, _ := b.position(file)
	return path.Join(b.entry, filesDir, pos)
}

func (b *backup) manifest() string { return path.Join(b.entry, manifestFile) }

// has reports whether a file is retained.
func (b *backup) has(ctx context.Context, file string) (bool, error) {
	return store.Exists(ctx, b.s, b.at(file))
}

// lacks reports whether a visible file is a part of the checkpoint that is not retained
// yet.
func (b *backup) lacks(ctx context.Context, file string) (bool, error) {
	if _, ours := b.position(file); b.How == "" || !ours {
		return false, nil
	}
	has, err := b.has(ctx, file)
	return err == nil && !has, err
}

// continuesRemoving reports whether a file that is about to be removed is a part of the
// checkpoint that is not retained yet. The entry of a replacement into which not even the
// marker was moved does not count.
func (b *backup) continuesRemoving(ctx context.Context, file string) (bool, error) {
	lacks, err := b.lacks(ctx, file)
	if err != nil || !lacks || b.How == removed {
		return lacks, err
	}
	if b.Marker == "" {
		return false, nil
	}
	return b.has(ctx, b.name(b.Marker))
}

// continuesReplacing reports whether a file that is about to be replaced is a part of the checkpoint
// that is not retained yet. The entry of a removal that was broken off before it spoilt the
// checkpoint does not count.
func (b *backup) continuesReplacing(ctx context.Context, file string) (bool, error) {
	lacks, err := b.lacks(ctx, file)
	if err != nil || !lacks || b.How == replaced {
		return lacks, err
	}
	c, err := b.holding(ctx, file)
	return err == nil && (c == nil || !c.Whole()), err
}

// begin puts the entry of a complete checkpoint in its place, instead of what was there before.
// errOvertaken if another writer has put one there since that was read.
func (b *backup) begin(ctx context.Context, h how, c *format.Checkpoint) error {
	r := record{Name: b.owner.Checkpoint, How: h, Dir: c.IsDir() || c.Name != b.owner.Checkpoint, saved: savedOf(c)}
	if c.Name != r.Name {
		r.Alone, _ = r.position(c.Name)
	}
	for _, f := range c.Files {
		if _, ok := ownerNamed(f.Name, r.Name); ok { // not a graph, say
			pos, _ := r.position(f.Name)
			r.Files = append(r.Files, pos)
		}
	}
	if c.Marker != "" {
		r.Marker, _ = r.position(c.Marker)
	}
	own, err := b.area(ctx)
	if err != nil {
		return err
	}
	made := newIn(own)
	r.ID = path.Base(made)
	for _, d := range []string{made, path.Join(made, filesDir)} { // not the area: that may have been fenced off
		if err := b.s.Mkdir(ctx, d, 0o755); err != nil {
			return err
		}
	}
	err = store.WriteRecord(ctx, b.s, path.Join(made, recordFile), r)
	if err == nil {
		err = b.place(ctx, made)
	}
	if err != nil {
		return errors.Join(err, store.RemoveOwn(store.Tidying(ctx), b.s, made))
	}
	b.record = r
	return b.move(ctx, manifest.Path(b.checkpoint()), b.manifest())
}

// place moves a new entry into its place.
func (b *backup) place(ctx context.Context, made string) error {
	err := b.s.RenameNew(ctx, made, b.entry)
	if store.Vanished(err) {
		if err = store.MkdirAll(ctx, b.s, dir, 0o755); err == nil {
			err = b.s.RenameNew(ctx, made, b.entry)
		}
	}
	if !errors.Is(err, syscall.EEXIST) {
		return err
	}
	if err := b.clear(ctx); err != nil {
		return err
	}
	if err = b.s.RenameNew(ctx, made, b.entry); errors.Is(err, syscall.EEXIST) {
		err = errOvertaken
	}
	return err
}

// newIn makes a name in an area.
func newIn(area string) string {
	return path.Join(area, strings.TrimPrefix(store.TemporaryFor("retained"), ".")) // not a temporary file's
}

// moveIn moves what is in the way into the area, as far as it is there, and returns where it is then.
func (l *lookup) moveIn(ctx context.Context, name string) (string, error) {
	own, err := l.area(ctx)
	if err != nil {
		return "", err
	}
	to := newIn(own)
	err = l.s.Rename(ctx, name, to)
	if store.Vanished(err) {
		if i, statErr := l.s.Stat(ctx, own); statErr == nil && i.IsDir() {
			return "", nil
		}
	}
	return to, err
}

// discard removes a file of the store's own, if it is there.
func (l *lookup) discard(ctx context.Context, name string) error {
	to, err := l.moveIn(ctx, name)
	if err == nil && to != "" {
		err = l.s.Remove(ctx, to)
	}
	return err
}

// takeAfterMarker moves a file into the entry, and the marker first.
func (b *backup) takeAfterMarker(ctx context.Context, file string) error {
	if marker := b.name(b.Marker); b.Marker != "" && marker != file {
		has, err := b.has(ctx, marker)
		if err == nil && !has {
			err = b.take(ctx, marker)
		}
		if err != nil && !errors.Is(err, errOvertaken) { // another has taken it
			return err
		}
	}
	return b.take(ctx, file)
}

// take moves a file into the entry, which is there: a directory for it is made below that alone.
// errOvertaken if another writer has moved the file, or a file has that place, or the entry is gone.
func (b *backup) take(ctx context.Context, file string) error {
	to := b.at(file)
	err := b.s.RenameNew(ctx, file, to)
	if store.Vanished(err) {
		if err = b.mkdir(ctx, path.Dir(to)); err == nil {
			err = b.s.RenameNew(ctx, file, to)
		}
	}
	if store.Vanished(err) || errors.Is(err, syscall.EEXIST) {
		return fmt.Errorf("%w: %w", errOvertaken, err)
	}
	return err
}

// mkdir makes a directory below that of the entry's files, and those on the way to it.
func (b *backup) mkdir(ctx context.Context, name string) error {
	if name == path.Join(b.entry, filesDir) {
		_, err := b.s.Stat(ctx, name)
		return err
	}
	err := b.s.Mkdir(ctx, name, 0o755)
	if store.Vanished(err) {
		if err = b.mkdir(ctx, path.Dir(name)); err == nil {
			err = b.s.Mkdir(ctx, name, 0o755)
		}
	}
	if errors.Is(err, syscall.EEXIST) {
		return nil
	}
	return err
}

// move renames what may not be there.
func (b *backup) move(ctx context.Context, from, to string) error {
	if err := b.s.Rename(ctx, from, to); err != nil && !store.Vanished(err) {
		return err
	}
	return nil
}

// clear removes the entry. Who has an area moves it there first. errOvertaken if another writer has
// put one in its place since it was read. Otherwise the marker goes first, so that what is left is
// never listed as whole.
func (b *backup) clear(ctx context.Context) error {
	if b.area != nil {
		return b.clearOwn(ctx)
	}
	if b.Marker != "" {
		if err := b.s.Remove(ctx, b.at(b.name(b.Marker))); err != nil && !store.Vanished(err) {
			return err
		}
	}
	if err := store.RemoveOwn(ctx, b.s, b.entry); err != nil {
		return err
	}
	b.forget()
	return nil
}

func (b *backup) clearOwn(ctx context.Context) error {
	if err := b.isAsRead(ctx, b.entry); err != nil {
		return err
	}
	to, err := b.moveIn(ctx, b.entry)
	if err != nil || to == "" {
		return err
	}
	if err := b.isAsRead(ctx, to); err != nil { // in between
		return errors.Join(err, b.s.RenameNew(ctx, to, b.entry))
	}
	b.forget()
	return store.RemoveOwn(ctx, b.s, to)
}

// isAsRead returns errOvertaken if the record that lies in a directory is not the one that was read.
func (b *backup) isAsRead(ctx context.Context, entry string) error {
	now, err := recordOf(ctx, b.s, entry)
	if err == nil && !bytes.Equal(now, b.text) {
		err = errOvertaken
	}
	return err
}

// clearEmptied removes the entry if no file is in it. It stays as it is if one comes into it meanwhile, of
// a writer that was fenced off while it moved that: nothing comes into it any longer once the
// directory of its files is gone (mkdir).
func (b *backup) clearEmptied(ctx context.Context) error {
	switch err := store.RemoveEmpty(ctx, b.s, path.Join(b.entry, filesDir)); {
	case errors.Is(err, syscall.ENOTEMPTY):
		return nil
	case err != nil && !store.Vanished(err):
		return err
	}
	return b.clear(ctx)
}

// forget has the entry be none.
func (b *backup) forget() { b.How, b.Files, b.Marker, b.Alone, b.text = "", nil, "", "", nil }

// retainedFiles are those in the entry, relative to its directory of files: links, too, which
// lead nowhere from there.
func (b *backup) retainedFiles(ctx context.Context) ([]store.Info, error) {
	var all []store.Info
	list := func(ctx context.Context, dir string) ([]store.Info, error) { return store.ListAll(ctx, b.s, dir) }
	err := walk(ctx, list, path.Join(b.entry, filesDir), "", &all)
	return all, err
}

// walk adds all files of a directory, by their names relative to it.
func walk(ctx context.Context, listed func(ctx context.Context, dir string) ([]store.Info, error), dir, below string, all *[]store.Info) error {
	list, err := listed(ctx, path.Join(dir, below))
	if store.Vanished(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range list {
		e.Name = path.Join(below, e.Name)
		if !e.IsDir() {
			*all = append(*all, e)
		} else if err := walk(ctx, listed, dir, e.Name, all); err != nil {
			return err
		}
	}
	return nil
}
