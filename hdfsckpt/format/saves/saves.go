// Package saves records in a store that tasks begin saves, for formats whose files show only later
// that they are the format's.
//
// A record names the save that was begun last in a directory. If that is not shown to be the
// format's by the time that the next one begins there, or that the program ends, the program's
// format is one of its own, and nothing more is recorded for the directory.
package saves

import (
	"cmp"
	"context"
	"path"

	"holdfast/hdfsckpt/store"
)

// Records are those of a format. The methods may be called by many goroutines.
type Records struct {
	Dir string // where they are, each in an entry for what it is about
	// Suffix is that of the file which is there for as long as a save is; empty where the save is a
	// directory.
	Suffix string
	// Shown reports whether the save that a record names is shown to be the format's.
	Shown func(ctx context.Context, s store.Store, r Record) (bool, error)
}

// Record is about a directory with saves, or about the file in it that tells of them. It has one
// of both.
type Record struct {
	Dir  string `json:"dir,omitempty"`  // relative to the store's root
	File string `json:"file,omitempty"` // likewise
	Name string `json:"name,omitempty"` // of the save that was begun last, relative to Dir if there is that
	Own  bool   `json:"own,omitempty"`  // the format is the program's own
}

func (r Record) about() string { return cmp.Or(r.Dir, r.File) }

func (r Record) dir() string { return cmp.Or(r.Dir, path.Dir(r.File)) }

// Save is the name of the save, relative to the store's root.
func (r Record) Save() string { return path.Join(r.Dir, r.Name) }

// isValid reports whether it names no other save than one in its directory.
func (r Record) isValid() bool {
	return r.Own && r.Name == "" || path.Dir(r.Save()) == r.dir() && store.CheckName("look at", r.Save()) == nil
}

// Begin records that a task begins the save that r names.
func (x Records) Begin(ctx context.Context, s store.Store, r Record) error {
	before, err := x.read(ctx, s, r)
	if err != nil || before.Own || before.Name == r.Name {
		return err
	}
	if before.Name != "" {
		shown, err := x.Shown(ctx, s, before)
		if err != nil {
			return err
		}
		r.Own = !shown
	}
	return x.write(ctx, s, r)
}

// IsLast reports whether the save that r names is the one that was begun last, and may be the
// format's.
func (x Records) IsLast(ctx context.Context, s store.Store, r Record) (bool, error) {
	last, err := x.read(ctx, s, r)
	return last.Name == r.Name && !last.Own, err
}

// Ended records that the program has ended by itself, so that all that it saved is as it should be.
func (x Records) Ended(ctx context.Context, s store.Store) error {
	return x.each(ctx, s, func(r Record) error {
		shown, err := x.Shown(ctx, s, r)
		if err != nil || shown || r.Own {
			return err
		}
		r.Own = true
		return x.write(ctx, s, r)
	})
}

// Forget drops the records of saves that are gone. That the format is a program's own is known for
// as long as the directory is there.
func (x Records) Forget(ctx context.Context, s store.Store) error {
	return x.each(ctx, s, func(r Record) error {
		of := r.Save() + x.Suffix
		if r.Own {
			of = r.dir()
		}
		return store.RemoveRecordOf(ctx, s, of, x.name(r))
	})
}

func (x Records) name(r Record) string { return store.RecordName(x.Dir, r.about()) }

func (x Records) each(ctx context.Context, s store.Store, f func(Record) error) error {
	return store.EachRecord(ctx, s, x.Dir, Record.about, func(r Record) error {
		if !r.isValid() {
			return nil
		}
		return f(r)
	})
}

// read returns the record about the same as r; the zero one where there is none, or none that can
// be read.
func (x Records) read(ctx context.Context, s store.Store, r Record) (Record, error) {
	last, _, err := store.ReadRecord(ctx, s, x.name(r), Record.about)
	if !last.isValid() {
		last = Record{}
	}
	return last, err
}

func (x Records) write(ctx context.Context, s store.Store, r Record) error {
	return store.WriteRecord(ctx, s, x.name(r), r)
}
