package format

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"

	"holdfast/hdfsckpt/store"
)

// What formats whose checkpoints are single files have in common.

// StandsAlone reports whether a file may be a checkpoint by itself, by where it lies: not
// in a directory that is one with all that is in it, nor among what is still written.
func StandsAlone(file string) bool {
	_, inStepDir := StepDirOf(file)
	return !inStepDir && !IsHidden(file) && !IsPartsDir(path.Base(path.Dir(file)))
}

// claimFiles claims each file of a directory that is named as the format's are.
func claimFiles(d *Dir, named func(base string) bool, check func(context.Context, store.Store, File) (*Checkpoint, error)) []Claim {
	var claims []Claim
	for _, e := range d.Entries {
		if e.Mode.IsRegular() && named(e.Name) {
			claims = append(claims, Claim{Check: func(ctx context.Context) (*Checkpoint, error) { return check(ctx, d.Store, FileOf(d.Name, e)) }})
		}
	}
	return claims
}

// cutOffError is that of a file that is not all there.
type cutOffError struct{ error }

// CutOff marks what is wrong with a file as that it is not all there.
func CutOff(err error) error { return cutOffError{err} }

// foreignError is that of a file that does not begin as the format's do.
type foreignError struct{ error }

// Foreign marks what is wrong with a file as that it is of no such form.
func Foreign(err error) error { return foreignError{err} }

// checkEnds completes a checkpoint that is one file by what judge says of the file: a
// cutOffErr, a foreignErr or another one. Where the name shows the format only if the
// file begins so (sure is not set), there is no checkpoint in a foreign, empty or
// unreadable file.
func checkEnds(ctx context.Context, s store.Store, f File, c Checkpoint, sure bool, judge func(io.ReaderAt, int64) error) (*Checkpoint, error) {
	c.Name, c.Files, c.Shards, c.State = f.Name, []File{f}, 1, Complete
	r, err := s.Open(ctx, f.Name)
	switch {
	case errors.Is(err, fs.ErrPermission): // somebody else's file keeps nobody from the others
		if !sure {
			return nil, nil
		}
		c.State, c.Why = Unchecked, err.Error()
		return &c, nil
	case err != nil:
		return nil, err
	}
	defer r.Close()
	w := Watch(r)
	wrong := judge(w, r.Size())
	if w.Failed() != nil {
		return nil, w.Failed()
	}
	var cut cutOffError
	var foreign foreignError
	switch {
	case !sure && (r.Size() == 0 || errors.As(wrong, &foreign)):
		return nil, nil
	case r.Size() == 0:
		c.State, c.Why, c.Certain = Torn, "it is empty", c.Step != NoStep
	case errors.As(wrong, &cut):
		c.State, c.Why, c.Certain = Torn, wrong.Error(), true
	case wrong != nil:
		c.State, c.Why = Unchecked, wrong.Error()
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
