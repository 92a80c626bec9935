// Package kerasfile reads files of Keras's models, without Keras: archives (NAME.keras), of which
// the member model.weights.h5 has the weights, and files of HDF5 (package hdf5). The members of
// archives have checksums, files of HDF5 have none.
package kerasfile

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"slices"

	"holdfast/hdfsckpt/hdf5"
	"holdfast/hdfsckpt/limit"
	"holdfast/hdfsckpt/zipdir"
)

const (
	// weights is the member of an archive that has the weights, all of them.
	weights = "model.weights.h5"
	// mostInflated is how many bytes of the compressed members of an archive are read, if they
	// have no more. Keras compresses none.
	mostInflated = 1 << 30
	// begin is how much of a file of HDF5 is searched for Keras's mark, which Keras writes first.
	begin = 64 << 10
)

type cutError struct{ error }

func (e cutError) Unwrap() error { return e.error }

// IsCut reports whether an error of CheckArchive or CheckHDF5 shows that a file is not all there.
func IsCut(err error) bool { return errors.As(err, new(cutError)) }

// Memory returns how many bytes of memory CheckArchive takes at most.
func Memory(r io.ReaderAt, size int64) (int64, error) {
	n, err := zipdir.Memory(r, size)
	if limit.IsExceeded(err) {
		return 0, err
	}
	return n, nil // what is wrong with it, CheckArchive says
}

// CheckArchive reads the directory of an archive, which stands at its end, and returns what is
// wrong with it.
func CheckArchive(r io.ReaderAt, size int64) error {
	head := make([]byte, 4)
	if n, _ := r.ReadAt(head, 0); n < len(head) || string(head) != "PK\x03\x04" {
		return errors.New("it does not begin as Keras's files do")
	}
	z, err := open(r, size)
	if err != nil {
		return cutError{err}
	}
	for _, f := range z.File {
		if f.Name == "config.json" {
			return nil
		}
	}
	return errors.New("it is an archive without Keras's config.json")
}

func open(r io.ReaderAt, size int64) (*zip.Reader, error) {
	z, err := zipdir.Open(r, size)
	if err != nil {
		err = fmt.Errorf("its directory, at the end: %w", err)
	}
	return z, err
}

// IsHDF5 reports whether a file is of HDF5, and has the attribute that Keras gives it.
func IsHDF5(r io.ReaderAt, size int64) (bool, error) {
	head := make([]byte, min(size, begin))
	n, err := r.ReadAt(head, 0)
	if err == io.EOF {
		err = nil
	}
	head = head[:n]
	return bytes.HasPrefix(head, []byte(hdf5.Signature)) && bytes.Contains(head, []byte("keras_version")), err
}

// CheckHDF5 compares the length of a file with the address of its end in the superblock (HDF5
// File Format Specification, II.A). The library refuses a file that is shorter.
func CheckHDF5(r io.ReaderAt, size int64) error {
	head := make([]byte, min(size, hdf5.SuperblockSize))
	n, err := r.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return err
	}
	end, err := hdf5.End(head[:n])
	switch {
	case err != nil:
		return err
	case uint64(size) < end:
		return cutError{fmt.Errorf("it has %d bytes, %d are needed", size, end)}
	case uint64(size) > end:
		return fmt.Errorf("it has %d bytes, and says that it ends at %d", size, end)
	}
	return nil
}

// Datasets finds the weights in an archive, named by their groups: layers/dense/vars/0. admit is
// told how many bytes are held in memory for that.
func Datasets(r io.ReaderAt, size int64, admit func(int64) error) ([]*hdf5.Dataset, error) {
	z, err := open(r, size)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(z.File, isWeights)
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
		return nil, fmt.Errorf("its member %s: %w", weights, err)
	}
	return found, nil
}

func isWeights(f *zip.File) bool { return f.Name == weights }

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

// Member is a member of an archive, with a checksum of its bytes as they are in the file.
type Member struct {
	Offset, Size int64
	file         *zip.File
}

// Members returns those of an archive that are not compressed, and what is wrong with members as
// far as they were read.
func Members(r io.ReaderAt, size int64) (all []Member, wrong []error) {
	z, err := open(r, size)
	if limit.IsExceeded(err) {
		return nil, nil // what is not read says nothing
	}
	if err != nil {
		return nil, []error{err}
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
			all = append(all, Member{at, n, f})
			if isWeights(f) {
				errs = Unsound(in, n)
			}
		}
		for _, err := range errs {
			if err != nil {
				wrong = append(wrong, fmt.Errorf("its member %s: %w", f.Name, err))
			}
		}
	}
	return all, wrong
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

// Check compares the bytes of a member, which are written to it, with its checksum.
type Check struct {
	f   *zip.File
	sum hash.Hash32
}

// Check returns a new one.
func (m Member) Check() *Check { return &Check{m.file, crc32.NewIEEE()} }

func (c *Check) Write(b []byte) (int, error) { return c.sum.Write(b) }

// End returns an error if the checksum is another one.
func (c *Check) End() error {
	if got := c.sum.Sum32(); got != c.f.CRC32 {
		return fmt.Errorf("the checksum of its member %s is %08x, the archive says %08x", c.f.Name, got, c.f.CRC32)
	}
	return nil
}

// Unsound finds what is wrong with a file of HDF5 in which something refers to something else: what
// a sound one may have and is not read here is not.
func Unsound(r io.ReaderAt, size int64) (wrong []error) {
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
