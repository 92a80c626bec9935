package formats

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"
	"syscall"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/format/look"
	"holdfast/hdfsckpt/hdf5"
	"holdfast/hdfsckpt/limit"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/zipdir"
)

const (
	kerasArchive = ".keras"
	// kerasMember is the member of an archive that has the weights, all of them.
	kerasMember = "model.weights.h5"
	// mostInflated is how many bytes of the compressed members of an archive are read, if they
	// have no more. Keras compresses none.
	mostInflated = 1 << 30
)

// Tensors are the datasets of HDF5, named by their groups: layers/dense/vars/0.
func (keras) Tensors(o *format.Opener, c *format.Checkpoint) ([]*format.Tensor, error) {
	r, err := o.Open(c.Name)
	if err != nil {
		return nil, err
	}
	found, err := kerasDatasets(c.Name, r, r.Size(), func(n int64) error { return o.Admit(c.Name, n) })
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

// kerasDatasets finds the datasets of a file of that name. admit is told how much is held in
// memory for that.
func kerasDatasets(name string, r io.ReaderAt, size int64, admit func(int64) error) ([]*hdf5.Dataset, error) {
	if kerasSuffix(name) != kerasArchive {
		return hdf5.Datasets(r, size, admit)
	}
	z, err := zipdir.Open(r, size)
	if err != nil {
		return nil, fmt.Errorf("its directory, at the end: %w", err)
	}
	i := slices.IndexFunc(z.File, isKerasWeights)
	if i < 0 {
		return nil, nil // a model without weights
	}
	inflated := int64(0)
	member, err := openMember(r, size, z.File[i], func(n int64) error {
		inflated = n
		return admit(n)
	})
	var found []*hdf5.Dataset
	if err == nil {
		found, err = hdf5.Datasets(member, member.Size(), func(n int64) error { return admit(inflated + n) })
	}
	if err != nil {
		return nil, fmt.Errorf("its member %s: %w", kerasMember, err)
	}
	return found, nil
}

func isKerasWeights(f *zip.File) bool { return f.Name == kerasMember }

// storedMember returns where a member that is not compressed lies in an archive of that size.
func storedMember(r io.ReaderAt, size int64, f *zip.File) (*io.SectionReader, error) {
	at, err := f.DataOffset()
	switch {
	case err != nil:
		return nil, err
	case at < 0 || at > size || f.CompressedSize64 > uint64(size-at) || f.CompressedSize64 != f.UncompressedSize64:
		return nil, fmt.Errorf("it has %d bytes at byte %d, which cannot be", f.CompressedSize64, at)
	}
	return io.NewSectionReader(r, at, int64(f.CompressedSize64)), nil
}

// openMember returns a member of an archive of that size for reading anywhere: where it is, or,
// if it is compressed, in memory.
func openMember(r io.ReaderAt, size int64, f *zip.File, admit func(int64) error) (interface {
	io.ReaderAt
	Size() int64
}, error) {
	if f.Method == zip.Store {
		return storedMember(r, size, f)
	}
	if f.UncompressedSize64 > mostInflated {
		return nil, fmt.Errorf("it is compressed, and has %d bytes, more than are read into memory", f.UncompressedSize64)
	}
	if err := admit(int64(f.UncompressedSize64)); err != nil {
		return nil, err
	}
	in, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	b, err := io.ReadAll(in)
	return bytes.NewReader(b), err
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
	var parts []format.Part
	var wrong []error
	if kerasSuffix(c.Name) == kerasArchive {
		parts, wrong = archiveMembers(c.Name, w, r.Size())
	} else {
		wrong = unsound(w, r.Size())
	}
	if w.Failed() != nil {
		return nil, nil, w.Failed()
	}
	var problems []format.Problem
	for _, err := range wrong {
		problems = append(problems, format.Problem{File: c.Name, Offset: -1, Text: err.Error()})
	}
	return parts, problems, nil
}

// archiveMembers returns the members that have checksums of the bytes as they are in the file,
// and what is wrong with members as far as they were read.
func archiveMembers(name string, r io.ReaderAt, size int64) (parts []format.Part, wrong []error) {
	z, err := zipdir.Open(r, size)
	if limit.IsExceeded(err) {
		return nil, nil // what is not read says nothing
	}
	if err != nil {
		return nil, []error{fmt.Errorf("its directory, at the end: %w", err)}
	}
	inflated := uint64(0)
	for _, f := range z.File {
		var errs []error
		if f.Method != zip.Store {
			if f.UncompressedSize64 <= mostInflated-inflated {
				inflated += f.UncompressedSize64
				errs = []error{readMember(f)}
			}
		} else if in, err := storedMember(r, size, f); err != nil {
			errs = []error{err}
		} else {
			_, at, n := in.Outer()
			parts = append(parts, format.Part{
				File: name, Offset: at, Size: n,
				Check: func() format.Checker { return &memberCheck{f, crc32.NewIEEE()} },
			})
			if isKerasWeights(f) {
				errs = unsound(in, n)
			}
		}
		for _, err := range errs {
			if err != nil {
				wrong = append(wrong, fmt.Errorf("its member %s: %w", f.Name, err))
			}
		}
	}
	return parts, wrong
}

// readMember reads a compressed member to its end, where its checksum is compared.
func readMember(f *zip.File) error {
	in, err := f.Open()
	if errors.Is(err, zip.ErrAlgorithm) {
		return nil // it cannot be compared
	}
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = io.Copy(io.Discard, in)
	return err
}

// memberCheck compares the bytes of a member with its checksum.
type memberCheck struct {
	f   *zip.File
	sum hash.Hash32
}

func (c *memberCheck) Write(b []byte) (int, error) { return c.sum.Write(b) }

func (c *memberCheck) End() error {
	if got := c.sum.Sum32(); got != c.f.CRC32 {
		return fmt.Errorf("the checksum of its member %s is %08x, the archive says %08x", c.f.Name, got, c.f.CRC32)
	}
	return nil
}

// unsound finds what is wrong with a file of HDF5: what a sound one may have and is not read
// here is not.
func unsound(r io.ReaderAt, size int64) (wrong []error) {
	found, err := hdf5.Datasets(r, size, nil)
	if err != nil && !hdf5.IsUnsupported(err) {
		wrong = append(wrong, err)
	}
	for _, d := range found {
		if d.Err != nil && !hdf5.IsUnsupported(d.Err) {
			wrong = append(wrong, fmt.Errorf("%s: %w", d.Name, d.Err))
		}
	}
	return wrong
}
