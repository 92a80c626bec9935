package formats

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/format/look"
	"holdfast/hdfsckpt/format/onefile"
	"holdfast/hdfsckpt/hdf5"
	"holdfast/hdfsckpt/kerasfile"
	"holdfast/hdfsckpt/store"
)

// Keras is a file of a Keras model: an archive NAME.keras, or HDF5 (NAME.weights.h5, and
// NAME.h5 if it begins as Keras writes it).
const Keras format.Kind = "keras"

type keras struct{}

var _ interface {
	format.Contents
	onefile.Format
} = keras{}

func (keras) Traits() format.Traits {
	return format.Traits{
		Kind: Keras, Last: []string{"*.keras", "*.h5"},
		CompleteWhen: "the archive's directory can be read; HDF5 has the length that its beginning says",
		MayGrow:      true, AloneInStepDir: true, Steady: true, Summed: "members of archives",
	}
}

const kerasArchive = ".keras"

// kerasSuffix returns the suffix of a file that Keras may have written; empty if the name
// is none of Keras's.
func kerasSuffix(base string) string {
	for _, s := range []string{kerasArchive, ".weights.h5", ".h5"} {
		if strings.HasSuffix(base, s) {
			return s
		}
	}
	return ""
}

func isKerasName(base string) bool { return kerasSuffix(base) != "" }

func (keras) Owners(file string) []format.Owner {
	return onefile.Owners(file, isKerasName)
}

func (keras) Claim(_ context.Context, d *format.Dir) ([]format.Claim, error) {
	return onefile.Claim(d, isKerasName, keras{}.Check), nil
}

func (keras) Named(base string) (is, certain bool) {
	return isKerasName(base), kerasSuffix(base) != ".h5"
}

func (keras) Check(ctx context.Context, s store.Store, f format.File) (*format.Checkpoint, error) {
	suffix := kerasSuffix(f.Name)
	c := format.Checkpoint{Kind: Keras, Step: format.FileStep(f.Name, suffix)}
	if suffix == kerasArchive {
		return onefile.CheckWithin(ctx, s, f, c, true, kerasfile.Memory, func(r io.ReaderAt, size int64) error {
			return markedCut(kerasfile.CheckArchive(r, size))
		})
	}
	return onefile.Check(ctx, s, f, c, suffix != ".h5", func(r io.ReaderAt, size int64) error {
		if suffix == ".h5" {
			if ours, err := kerasfile.IsHDF5(r, size); err != nil {
				return err
			} else if !ours {
				return onefile.Foreign(errors.New("it is HDF5 of another program"))
			}
		}
		return markedCut(kerasfile.CheckHDF5(r, size))
	})
}

// markedCut marks what is wrong with a file of which that shows that it is not all there.
func markedCut(err error) error {
	if kerasfile.IsCut(err) {
		return onefile.CutOff(err)
	}
	return err
}

// Tensors are the datasets of HDF5, named by their groups: layers/dense/vars/0.
func (keras) Tensors(o *format.Opener, c *format.Checkpoint) ([]*format.Tensor, error) {
	r, err := o.Open(c.Name)
	if err != nil {
		return nil, err
	}
	datasets := hdf5.Datasets
	if kerasSuffix(c.Name) == kerasArchive {
		datasets = kerasfile.Datasets
	}
	found, err := datasets(r, r.Size(), func(n int64) error { return o.Admit(c.Name, n) })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	all := make([]*format.Tensor, len(found))
	for i, d := range found {
		all[i] = &format.Tensor{Name: d.Name, Kind: d.Kind, Shape: d.Shape, Bytes: d.Size, File: c.Name, Pieces: 1}
		if d.Kind.Size() == 0 {
			continue
		}
		rows := func(int64) (io.Reader, error) { return readable(d, d.Rows) }
		source := format.Source{Rows: rows, Parts: rows, Read: func() ([]byte, error) {
			r, err := rows(0)
			if err != nil {
				return nil, err
			}
			return io.ReadAll(r)
		}}
		if d.Chunked() {
			source.Rows, source.Held = nil, d.Size
			source.Parts = func(limit int64) (io.Reader, error) {
				return readable(d, func() (io.Reader, error) { return d.Chunks(limit) })
			}
		}
		all[i].Source = source
	}
	return all, nil
}

// readable returns what open does: ENOTSUP if elements of a dataset like this are not read.
func readable(d *hdf5.Dataset, open func() (io.Reader, error)) (io.Reader, error) {
	r, err := open()
	if hdf5.IsUnsupported(err) {
		err = fmt.Errorf("%w: %w", err, syscall.ENOTSUP)
	}
	return r, err
}

// Parts are the members of an archive. Files of HDF5 have no checksums; but what in them refers
// to something else has to be sound.
func (keras) Parts(ctx context.Context, s store.Store, c *format.Checkpoint) ([]format.Part, []format.Problem, error) {
	if !c.Whole() {
		return nil, nil, nil // its state says why
	}
	r, err := s.Open(ctx, c.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil // it was removed since: whoever reads all of it says so
	}
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	w := look.Watch(r)
	var members []kerasfile.Member
	var wrong []error
	if kerasSuffix(c.Name) == kerasArchive {
		members, wrong = kerasfile.Members(w, r.Size())
	} else {
		wrong = kerasfile.Unsound(w, r.Size())
	}
	if w.Failed() != nil {
		return nil, nil, w.Failed()
	}
	var parts []format.Part
	for _, m := range members {
		parts = append(parts, format.Part{File: c.Name, Offset: m.Offset, Size: m.Size, Check: func() format.Checker { return m.Check() }})
	}
	var problems []format.Problem
	for _, err := range wrong {
		problems = append(problems, format.Problem{File: c.Name, Offset: -1, Text: err.Error()})
	}
	return parts, problems, nil
}
