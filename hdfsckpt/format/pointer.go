package format

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
	"time"

	"holdfast/hdfsckpt/limit"
	"holdfast/hdfsckpt/store"
)

// Pointer is a Format with a file beside its checkpoints that names the one which
// programs restore. As a file by that name may be the program's own, only one that the
// format is known to have written is ever changed.
type Pointer interface {
	Format
	// PointerFile is the base name of the file.
	PointerFile() string
	// ReadPointer reads the pointer of a directory. It is no error if there is none.
	ReadPointer(ctx context.Context, s store.Store, dir string) (Pointed, error)
	// NamedBeside returns the base names of the checkpoints that other files of a directory name
	// as its pointer does: pointers of programs, or of parts of one, that call theirs otherwise.
	NamedBeside(ctx context.Context, s store.Store, dir string) (map[string]bool, error)
	// WritePointer points a directory's pointer at a checkpoint, in one step. What it
	// said before keeps its form, and names those of list that are whole.
	WritePointer(ctx context.Context, s store.Store, dir string, before Pointed, list []Checkpoint, to *Checkpoint) error
	// CopiedPointer returns the content of the pointer of a directory into which a
	// checkpoint was copied: it names that one, and what it named before.
	CopiedPointer(before Pointed, to *Checkpoint) []byte
	// KnownPointers returns the directories whose pointers are recorded to be the
	// format's.
	KnownPointers(ctx context.Context, s store.Store) (map[string]bool, error)
	// IsFirst reports whether a checkpoint is recorded to be the first that a task has saved in its
	// directory, before there was a pointer.
	IsFirst(ctx context.Context, s store.Store, c *Checkpoint) (bool, error)
	// RememberPointer records that the pointer of a directory is the format's.
	RememberPointer(ctx context.Context, s store.Store, dir string) error
}

// Pointed is what a directory's pointer says.
type Pointed struct {
	Target  string // as it is written there; empty if it names nothing
	Missing bool
	Foreign bool  // a directory or the like, or a file that may not be read: not the format's
	Err     error // it is not readable as a pointer
	Text    []byte
	Written time.Time
}

// Named reports whether it names a checkpoint.
func (p Pointed) Named() bool { return !p.Missing && !p.Foreign && p.Err == nil }

// Same reports whether nobody has written it between two reads.
func (p Pointed) Same(o Pointed) bool {
	return p.Missing == o.Missing && p.Foreign == o.Foreign && p.Written.Equal(o.Written) && bytes.Equal(p.Text, o.Text)
}

// RememberPointers records in which directories a pointer names one of the listed
// checkpoints, so that it is known to be the format's even when it is lost or cut.
func RememberPointers(ctx context.Context, s store.Store, list []Checkpoint) error {
	type key struct {
		kind Kind
		dir  string
	}
	done := map[key]bool{}
	for i := range list {
		c := &list[i]
		k := key{c.Kind, c.SeriesDir()}
		if p := c.Pointer(); c.Current && p != nil && !done[k] {
			done[k] = true
			if err := p.RememberPointer(ctx, s, k.dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// A file by the name of a pointer may be the program's own. It is a format's in a
// directory for which the framework is known to have written one: it can be read as
// such, or a record says that it once could.
//
//	.holdfast/savers/FILE.json    FILE: the name of the pointer, an entry
const saversDir = store.OwnDir + "/savers"

// saver is such a record.
type saver struct {
	File string `json:"file"` // relative to the store's root
}

func (r saver) about() string { return r.File }

// mostPointer is how large a pointer may be, in bytes: one that is larger is a file of the
// program's own. TensorFlow's names all checkpoints that are kept, a hundred bytes each.
const mostPointer = 2 << 20

// ReadPointerFile reads the file of a pointer; what it names, its format knows.
func ReadPointerFile(ctx context.Context, s store.Store, file string) (Pointed, error) {
	info, err := s.Stat(ctx, file)
	if store.Vanished(err) {
		return Pointed{Missing: true}, nil
	}
	if err == nil && !info.Mode.IsRegular() || errors.Is(err, fs.ErrPermission) {
		return Pointed{Foreign: true}, nil
	}
	var text []byte
	if err == nil {
		if info.Size > mostPointer {
			return Pointed{Foreign: true}, nil
		}
		text, err = store.ReadFile(ctx, s, file)
	}
	switch {
	case store.Vanished(err):
		return Pointed{Missing: true}, nil
	case errors.Is(err, fs.ErrPermission), limit.IsExceeded(err):
		return Pointed{Foreign: true}, nil
	case err != nil:
		return Pointed{}, err
	}
	return Pointed{Text: text, Written: info.ModTime}, nil
}

// RememberPointerFile records that a file is a format's pointer.
func RememberPointerFile(ctx context.Context, s store.Store, file string) error {
	name := store.RecordName(saversDir, file)
	if there, err := store.Exists(ctx, s, name); err != nil || there {
		return err
	}
	return store.WriteRecord(ctx, s, name, saver{File: file})
}

// KnownPointerFiles returns the directories in which the file of that base name is recorded
// to be a format's pointer.
func KnownPointerFiles(ctx context.Context, s store.Store, base string) (map[string]bool, error) {
	found := map[string]bool{}
	err := store.EachRecord(ctx, s, saversDir, saver.about, func(r saver) error {
		if path.Base(r.File) == base {
			found[path.Dir(r.File)] = true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// ForgetPointerFiles drops the records of pointers in directories that are gone.
func ForgetPointerFiles(ctx context.Context, s store.Store) error {
	return store.EachRecord(ctx, s, saversDir, saver.about, func(r saver) error {
		return store.RemoveRecordOf(ctx, s, path.Dir(r.File), store.RecordName(saversDir, r.File))
	})
}
