package hdfsckpt

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/manifest"
	"holdfast/hdfsckpt/retain"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
)

// What a broken save has left is moved aside, so that a program that resumes from the
// highest step does not take it for a checkpoint; so are the checkpoints that are newer than
// one that a person goes back to (RollbackPlan).
//
//	.holdfast/aside/TIME-RANDOM/aside.json    what it was, and why it was moved
//	.holdfast/aside/TIME-RANDOM/files/NAME    the directory or file; NAME as it was
//	.holdfast/aside/TIME-RANDOM/manifests/    of what a rollback moved, if it was sealed
//	.holdfast/aside/TIME-RANDOM/retained/     what that had replaced (package retain)
//
// The record is written first. It stays there for asideFor, and is removed by the next repair
// after that.
const (
	asideDir       = store.OwnDir + "/aside"
	asideRecord    = "aside.json"
	asideFiles     = "files"
	asideManifests = "manifests"
	asideRetained  = "retained"
	asideFor       = 30 * 24 * time.Hour
)

// Aside is something that was moved aside.
type Aside struct {
	Name  string      `json:"name"` // where it was
	Kind  format.Kind `json:"kind,omitempty"`
	Step  int64       `json:"step"` // NoStep if it is no checkpoint, or its name has none
	Why   string      `json:"why"`
	Moved time.Time   `json:"moved"`
	Size  int64       `json:"size"` // bytes
	// Parts are what is moved of a torn checkpoint of several files, each in one step and in
	// this order. Of others it is what has the name.
	Parts []AsidePart `json:"parts,omitempty"`
	// Rollback is what a rollback records, so that another can restore it; nil if something
	// else has moved it.
	Rollback *RolledBack `json:"rollback,omitempty"`
	Where    string      `json:"-"` // where it lies, relative to the store's root

	entry string
	there map[string]bool // its parts that are in the entry
}

// RolledBack is what is recorded of a checkpoint that a rollback moved aside.
type RolledBack struct {
	To     string       `json:"to"`   // the checkpoint that was gone back to
	ToStep int64        `json:"step"` // that one's
	By     string       `json:"by"`   // who has asked for it
	State  format.State `json:"state"`
	Time   time.Time    `json:"time"` // of its last file
	Files  int          `json:"files"`
	Shards int          `json:"shards"`
	Series string       `json:"series"` // where checkpoints of its series lie (Checkpoint.SeriesDir)
	// Parts are what is moved, each in one step and in this order.
	Parts []AsidePart `json:"parts"`
	// Sealed are the checkpoints in it that have manifests.
	Sealed []string `json:"sealed,omitempty"`
	// WithBackup: what it had replaced, or was to replace, is moved with it. It stays where that is
	// what was gone back to.
	WithBackup bool `json:"with_backup,omitempty"`
	// Listed is what its format's list says of it (format.Lister).
	Listed json.RawMessage `json:"listed,omitempty"`
}

// AsidePart is a file, or a directory with all that is in it.
type AsidePart struct {
	Name    string    `json:"name"`
	Dir     bool      `json:"directory,omitempty"`
	Size    int64     `json:"size,omitempty"` // of a file, as its time
	ModTime time.Time `json:"time,omitzero"`
}

// unchanged returns ENOENT if the file is not the one that is recorded. Of a link, the file that
// it led to may have been moved by now.
func (p AsidePart) unchanged(ctx context.Context, s store.Store) error {
	if p.ModTime.IsZero() { // a directory, or the name of what was moved before tasks started
		return nil
	}
	i, err := store.Lstat(ctx, s, p.Name)
	if err == nil && !i.Link && (i.IsDir() || i.Size != p.Size || !i.ModTime.Equal(p.ModTime)) {
		err = fmt.Errorf("%s is another file by now: %w", p.Name, syscall.ENOENT)
	}
	return err
}

// until is when it is removed.
func (a *Aside) until() time.Time { return a.Moved.Add(asideFor) }

// parts are what is moved.
func (a *Aside) parts() []AsidePart {
	switch {
	case a.Rollback != nil:
		return a.Rollback.Parts
	case len(a.Parts) > 0:
		return a.Parts
	}
	return []AsidePart{{Name: a.Name}}
}

// at is where a part lies in the entry.
func (a *Aside) at(part string) string { return path.Join(a.entry, asideFiles, part) }

// backup is where what it had replaced is retained.
func (a *Aside) backup() string {
	if first := a.parts()[0]; first.Dir { // in which it may be a file that lies alone
		return retain.EntryDir(first.Name)
	}
	return retain.EntryDir(a.Name)
}

// moveAside moves a file, a directory with all that is in it, or the parts of a checkpoint.
// One that is broken off in the middle of several parts can be continued (take).
func moveAside(ctx context.Context, s store.Store, a Aside) (Aside, error) {
	random := make([]byte, 4)
	rand.Read(random) // never fails
	if a.Moved.IsZero() {
		a.Moved = time.Now().UTC().Truncate(time.Second)
	}
	a.entry = path.Join(asideDir, a.Moved.Format("20060102T150405Z")+"-"+hex.EncodeToString(random))
	a.Where = a.at(a.Name)
	err := store.WriteRecord(ctx, s, path.Join(a.entry, asideRecord), a)
	if err == nil {
		err = a.take(ctx, s)
	}
	if err != nil {
		if cleanErr := a.forgetEmpty(ctx, s); cleanErr != nil && !store.Vanished(cleanErr) && !errors.Is(cleanErr, syscall.ENOTEMPTY) {
			err = errors.Join(err, cleanErr)
		}
		return a, fmt.Errorf("cannot move %s aside: %w", a.Name, err)
	}
	return a, nil
}

// take moves the parts into the entry that are not there. Of several some may be gone; ENOENT
// if all are.
func (a *Aside) take(ctx context.Context, s store.Store) error {
	gone, moved := error(nil), len(a.there) > 0
	if a.Rollback != nil && a.Rollback.WithBackup && !moved {
		err := s.Rename(ctx, a.backup(), path.Join(a.entry, asideRetained))
		if err != nil && !store.Vanished(err) {
			return err
		}
	}
	for _, p := range a.parts() {
		if a.there[p.Name] {
			continue
		}
		err := p.unchanged(ctx, s)
		if err == nil {
			err = store.MkdirAll(ctx, s, path.Dir(a.at(p.Name)), 0o755)
		}
		if err == nil {
			err = s.Rename(ctx, p.Name, a.at(p.Name))
		}
		if err != nil {
			// The answer may have been lost, and not the request.
			if there, statErr := store.Exists(ctx, s, a.at(p.Name)); statErr == nil && there {
				err = nil
			}
		}
		switch {
		case store.Vanished(err):
			gone = err
		case err != nil:
			return err
		default:
			moved = true
		}
	}
	if !moved {
		return gone
	}
	if a.Rollback != nil {
		return a.moveManifests(ctx, s, func(name string) (from, to string) {
			return manifest.Path(name), path.Join(a.entry, asideManifests, path.Base(manifest.Path(name)))
		})
	}
	return nil
}

func (a *Aside) moveManifests(ctx context.Context, s store.Store, places func(name string) (from, to string)) error {
	for _, name := range a.Rollback.Sealed {
		from, to := places(name)
		err := store.MkdirAll(ctx, s, path.Dir(to), 0o755)
		if err == nil {
			err = s.Rename(ctx, from, to)
		}
		if err != nil && !store.Vanished(err) {
			return err
		}
	}
	return nil
}

// restore moves the parts back to their places, the first of them last. The entry stays, empty:
// until it is forgotten it says that this was not moved by the program. EEXIST if something has
// the name of a part.
func (a *Aside) restore(ctx context.Context, s store.Store) error {
	err := a.moveManifests(ctx, s, func(name string) (from, to string) {
		return path.Join(a.entry, asideManifests, path.Base(manifest.Path(name))), manifest.Path(name)
	})
	if err != nil {
		return err
	}
	for _, p := range slices.Backward(a.parts()) {
		if !a.there[p.Name] {
			continue
		}
		err := store.MkdirAll(ctx, s, path.Dir(p.Name), 0o755)
		if err == nil {
			err = s.RenameNew(ctx, a.at(p.Name), p.Name)
		}
		if err != nil {
			return fmt.Errorf("cannot restore %s from %s: %w", a.Name, a.Where, err)
		}
	}
	return nil
}

// forgetEmpty removes the entry if no file is in it, and gives back what is retained. ENOTEMPTY
// otherwise.
func (a *Aside) forgetEmpty(ctx context.Context, s store.Store) error {
	if err := store.RemoveEmpty(ctx, s, path.Join(a.entry, asideFiles)); err != nil && !store.Vanished(err) {
		return err
	}
	if err := a.giveBack(ctx, s); err != nil {
		return err
	}
	return store.RemoveOwn(ctx, s, a.entry)
}

// giveBack gives back what was retained, unless something newer is by now.
func (a *Aside) giveBack(ctx context.Context, s store.Store) error {
	if a.Rollback == nil {
		return nil
	}
	err := store.MkdirAll(ctx, s, path.Dir(a.backup()), 0o755)
	if err == nil {
		err = s.RenameNew(ctx, path.Join(a.entry, asideRetained), a.backup())
	}
	if store.Vanished(err) || errors.Is(err, syscall.EEXIST) {
		return nil
	}
	return err
}

// giveBackRetained gives back what rollbacks that were broken off had moved with a checkpoint that
// they then did not move; and what former versions had moved away though it was what they were to
// go back to.
func giveBackRetained(ctx context.Context, s store.Store, aside []Aside) error {
	for _, a := range aside {
		r := a.Rollback
		if r == nil || len(a.there) > 0 && (r.WithBackup || a.Step != r.ToStep) {
			continue
		}
		if there, err := store.Exists(ctx, s, path.Join(a.entry, asideRetained)); err != nil {
			return err
		} else if !there {
			continue
		}
		if err := a.giveBack(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// ListAside lists what was moved aside, the oldest first.
func ListAside(ctx context.Context, s store.Store) ([]Aside, error) {
	all, err := asideEntries(ctx, s)
	return slices.DeleteFunc(all, func(a Aside) bool { return len(a.there) == 0 }), err
}

// asideEntries returns all entries that can be read, with those in which nothing is: what was
// moved has been taken out, or was never moved.
func asideEntries(ctx context.Context, s store.Store) ([]Aside, error) {
	entries, err := s.List(ctx, asideDir)
	if store.Vanished(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Aside
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		a, ok, err := readAside(ctx, s, path.Join(asideDir, e.Name))
		if err != nil {
			return nil, err
		}
		if ok {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b Aside) int {
		return cmp.Or(a.Moved.Compare(b.Moved), strings.Compare(a.Name, b.Name))
	})
	return all, nil
}

// readAside reads an entry; ok is false if it has no record that can be read.
func readAside(ctx context.Context, s store.Store, entry string) (a Aside, ok bool, err error) {
	text, err := store.ReadFile(ctx, s, path.Join(entry, asideRecord))
	if store.Vanished(err) {
		return a, false, nil
	}
	if err != nil {
		return a, false, err
	}
	if store.ParseRecord(text, &a) != nil || len(a.parts()) == 0 || slices.ContainsFunc(append(a.parts(), AsidePart{Name: a.Name}), func(p AsidePart) bool { return store.CheckChange("look at", p.Name) != nil }) {
		return a, false, nil
	}
	a.entry, a.there = entry, map[string]bool{}
	a.Where = a.at(a.Name)
	for _, p := range a.parts() {
		there, err := store.Exists(ctx, s, a.at(p.Name))
		if err != nil {
			return a, false, err
		}
		if there {
			a.there[p.Name] = true
		}
	}
	return a, true, nil
}

// forgetAside removes what was moved aside long ago.
func forgetAside(ctx context.Context, s store.Store) error {
	all, err := asideEntries(ctx, s)
	for _, a := range all {
		if time.Now().After(a.until()) {
			if removeErr := a.forget(ctx, s); removeErr != nil {
				err = errors.Join(err, removeErr)
			}
		}
	}
	return err
}

// forget removes the entry with all that is in it, the record last: the next repair goes on where
// this one is broken off.
func (a *Aside) forget(ctx context.Context, s store.Store) error {
	for _, dir := range []string{asideRetained, asideManifests, asideFiles} {
		if err := store.RemoveOwn(ctx, s, path.Join(a.entry, dir)); err != nil {
			return err
		}
	}
	return store.RemoveOwn(ctx, s, a.entry)
}

// moveTorn moves checkpoints aside that are torn, and certainly of their format. While tasks
// may write, those that were written to less than age ago stay, and all of them while
// anything is being written; while observers may, those to which something happens. Those of
// formats with a pointer stay: it never names them.
//
// What this user may not move is returned in left, and is no error. What is nested is of
// another store, and stays, and so does what another store lies in.
func moveTorn(ctx context.Context, s store.Store, age time.Duration, by writers.Activity, report *Report) (moved []Aside, left []error, err error) {
	list, err := torn(ctx, s, age, by)
	if err == nil && by == writers.Observers && len(list) > 0 {
		list, err = staysTorn(ctx, s, age)
	}
	if err != nil {
		return nil, nil, err
	}
	for _, c := range list {
		if report.isNested(c.Name) {
			continue
		}
		if within := storeWithin(&c, report.Nested); within != "" {
			left = append(left, fmt.Errorf("%s stays, though it is torn: %s in it is a checkpoint directory of its own", c.Name, within))
			continue
		}
		name, err := withItsDirectory(ctx, s, c)
		if err != nil {
			return moved, left, err
		}
		a := Aside{Name: name, Kind: c.Kind, Step: c.NamedStep(), Why: c.Why, Size: c.Size}
		if name == c.Name {
			a.Parts = filesBeforeName(&c)
		}
		a, err = moveAside(ctx, s, a)
		if store.Vanished(err) {
			continue
		}
		if errors.Is(err, fs.ErrPermission) {
			left = append(left, err)
			continue
		}
		if err != nil {
			return moved, left, err
		}
		moved = append(moved, a)
		if err := manifest.Remove(ctx, s, c.Name); err != nil {
			return moved, left, err
		}
	}
	return moved, left, nil
}

// filesBeforeName returns the files of a checkpoint that has several beside each other, the one
// that has its name last: a move that is broken off leaves what is torn as before, for the next
// one. Of others it returns nil.
func filesBeforeName(c *format.Checkpoint) []AsidePart {
	if c.IsDir() || len(c.Files) < 2 {
		return nil
	}
	var parts []AsidePart
	for _, f := range c.Files {
		if f.Name != c.Name {
			parts = append(parts, AsidePart{Name: f.Name, Size: f.Size, ModTime: f.ModTime})
		}
	}
	return append(parts, AsidePart{Name: c.Name})
}

// withItsDirectory returns the name of what is moved with a checkpoint: the directory named after
// its step, if nothing else is in that, or the checkpoint itself. Programs that go on from the
// highest number would die on an empty directory.
func withItsDirectory(ctx context.Context, s store.Store, c format.Checkpoint) (string, error) {
	dir := path.Dir(c.Name)
	if !c.IsAlone() {
		return c.Name, nil
	}
	entries, err := s.List(ctx, dir)
	if err == nil && len(entries) == len(c.Files) {
		return dir, nil
	}
	if store.Vanished(err) {
		err = nil
	}
	return c.Name, err
}

// torn returns the checkpoints that moveTorn moves.
func torn(ctx context.Context, s store.Store, age time.Duration, by writers.Activity) ([]format.Checkpoint, error) {
	rule, err := format.ReadRule(ctx, s)
	if err != nil {
		return nil, err
	}
	list, err := format.Search{Rule: rule, Chosen: true}.List(ctx, s, formats.All)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(c format.Checkpoint) bool {
		return !c.Certain || c.State != format.Torn && c.State != format.InProgress || c.Name == "." ||
			by == writers.Tasks && (c.Inferred || time.Since(c.Time) < age)
	})
	if len(list) == 0 || by == writers.Nobody {
		return list, nil
	}
	retained, err := retain.Names(ctx, s) // what is being removed is no broken save
	if err != nil {
		return nil, err
	}
	if writing, err := writers.Writing(ctx, s); err != nil || writing {
		return nil, err
	}
	return slices.DeleteFunc(list, func(c format.Checkpoint) bool { return retained[c.Name] }), nil
}

// staysTorn returns what is torn while observers may write, once nothing has happened to any
// of it for a while; nothing if that does not come to be.
func staysTorn(ctx context.Context, s store.Store, age time.Duration) (list []format.Checkpoint, err error) {
	stays, err := writers.StaysBroken(ctx, s, func() (bool, string, error) {
		var err error
		list, err = torn(ctx, s, age, writers.Observers)
		var text strings.Builder
		for _, c := range list {
			fmt.Fprintln(&text, c.Name, c.Files)
		}
		return len(list) > 0, text.String(), err
	})
	if err != nil || !stays {
		return nil, err
	}
	return list, nil
}
