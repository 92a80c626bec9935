package format

import (
	"bytes"
	"context"
	"time"

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
	// WritePointer points a directory's pointer at a checkpoint, in one step. What it
	// said before keeps its form, and names those of list that are whole.
	WritePointer(ctx context.Context, s store.Store, dir string, before Pointed, list []Checkpoint, to *Checkpoint) error
	// CopiedPointer returns the content of the pointer of a directory into which a
	// checkpoint was copied: it names that one, and what it named before.
	CopiedPointer(before Pointed, to *Checkpoint) []byte
	// KnownPointers returns the directories whose pointers are recorded to be the
	// format's.
	KnownPointers(ctx context.Context, s store.Store) (map[string]bool, error)
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
