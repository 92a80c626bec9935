// Package onefile has what formats whose checkpoints are single files have in common: where
// such a file may lie, and how its two ends show whether all of it is there.
package onefile

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/format/look"
	"holdfast/hdfsckpt/limit"
	"holdfast/hdfsckpt/store"
)

// Format is a format of which each file is a checkpoint by itself, where it lies alone.
type Format interface {
	format.Format
	// Named reports whether a file is named as the format's are. certain: no others are
	// named so; otherwise it is one only if it begins as the format's do.
	Named(base string) (is, certain bool)
	// Check judges such a file; nil if it is none of the format's.
	Check(ctx context.Context, s store.Store, f format.File) (*format.Checkpoint, error)
}

// Accompanied is a Format whose checkpoints may have a file beside them.
type Accompanied interface {
	Format
	// Companion is the base name of that file.
	Companion(base string) string
}

// StandsAlone reports whether a file may be a checkpoint by itself, by where it lies: not
// among what is still written.
func StandsAlone(file string) bool {
	return !format.IsHidden(file) && !format.IsPartsDir(path.Base(path.Dir(file)))
}

// Owners returns the checkpoint that a file is by itself, if it may be one by where it lies and
// is named as the format's are. Hidden files are none.
func Owners(file string, named func(base string) bool) []format.Owner {
	if !StandsAlone(file) || !isNamed(path.Base(file), named) {
		return nil
	}
	return []format.Owner{format.SavedInPlace(file)}
}

func isNamed(base string, named func(base string) bool) bool {
	return !strings.HasPrefix(base, format.HiddenPrefix) && named(base)
}

// Claim claims each file of a directory that is named as the format's are. Hidden files are
// left alone.
func Claim(d *format.Dir, named func(base string) bool, check func(context.Context, store.Store, format.File) (*format.Checkpoint, error)) []format.Claim {
	var claims []format.Claim
	for _, e := range d.Entries {
		if e.Mode.IsRegular() && isNamed(e.Name, named) {
			claims = append(claims, format.Claim{Of: []string{e.Name}, Check: func(ctx context.Context) (*format.Checkpoint, error) {
				return check(ctx, d.Store, format.FileOf(d.Name, e))
			}})
		}
	}
	return claims
}

// CutOff marks what is wrong with a file as that it is not all there. What exceeds a bound was not
// read, and is returned as it is.
func CutOff(err error) error {
	if limit.IsExceeded(err) {
		return err
	}
	return CutOffError{err}
}

// CutOffError is what CutOff returns.
type CutOffError struct{ error }

// Foreign marks what is wrong with a file as that it does not begin as the format's do.
func Foreign(err error) error { return foreignError{err} }

type foreignError struct{ error }

// Check completes a checkpoint that is one file by what judge says of the file: a
// CutOff, a Foreign or another one. Where the name shows the format only if the
// file begins so (sure is not set), there is no checkpoint in a foreign, empty or
// unreadable file. judge looks at the ends of the file, or a bit of it at a time.
func Check(ctx context.Context, s store.Store, f format.File, c format.Checkpoint, sure bool, judge func(io.ReaderAt, int64) error) (*format.Checkpoint, error) {
	few := func(io.ReaderAt, int64) (int64, error) { return usualMemory, nil }
	return CheckWithin(ctx, s, f, c, sure, few, judge)
}

// usualMemory is what judging a file by its ends takes, in bytes.
const usualMemory = 256 << 10

// CheckWithin is Check of a file that takes memory to be judged, as for look.File.
func CheckWithin(ctx context.Context, s store.Store, f format.File, c format.Checkpoint, sure bool, memory look.Memory, judge func(io.ReaderAt, int64) error) (*format.Checkpoint, error) {
	c.Name, c.Files, c.Shards, c.State = f.Name, []format.File{f}, 1, format.Complete
	r, err := s.Open(ctx, f.Name)
	switch {
	case errors.Is(err, fs.ErrPermission): // somebody else's file keeps nobody from the others
		if !sure {
			return nil, nil
		}
		c.State, c.Why = format.Unchecked, err.Error()
		return &c, nil
	case err != nil:
		return nil, err
	}
	defer r.Close()
	wrong := look.Opened(ctx, r, f.Name, memory, judge)
	if wrong != nil && !look.IsDamaged(wrong) {
		return &c, wrong
	}
	var cut CutOffError
	var foreign foreignError
	switch {
	case !sure && (r.Size() == 0 || errors.As(wrong, &foreign)):
		return nil, nil
	case r.Size() == 0:
		c.State, c.Why, c.Certain = format.Torn, "it is empty", c.Step != format.NoStep
	case errors.As(wrong, &cut):
		c.State, c.Why, c.Certain = format.Torn, wrong.Error(), true
	case wrong != nil:
		c.State, c.Why = format.Unchecked, wrong.Error()
	}
	return &c, nil
}

// Ends returns the first bytes of a file, a few, and at most limit of its last ones.
func Ends(r io.ReaderAt, size, limit int64) (begin, end []byte, err error) {
	const few = 64
	begin, end = make([]byte, min(size, few)), make([]byte, min(size, limit))
	for _, part := range []struct {
		b  []byte
		at int64
	}{{begin, 0}, {end, size - int64(len(end))}} {
		if n, err := r.ReadAt(part.b, part.at); n < len(part.b) {
			return nil, nil, err
		}
	}
	return begin, end, nil
}
