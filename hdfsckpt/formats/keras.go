package formats

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/format/onefile"
	"holdfast/hdfsckpt/store"
)

// Keras is a file of a Keras model: an archive NAME.keras, or HDF5 (NAME.weights.h5, and
// NAME.h5 if it begins as Keras writes it).
const Keras format.Kind = "keras"

type keras struct{}

var _ format.Format = keras{}

func (keras) Traits() format.Traits {
	return format.Traits{
		Kind: Keras, Last: []string{"*.keras", "*.h5"},
		CompleteWhen: "the archive's directory can be read; HDF5 has the length that its beginning says",
		MayGrow:      true, AloneInStepDir: true, Steady: true,
	}
}

// kerasSuffix returns the suffix of a file that Keras may have written; empty if the name
// is none of Keras's.
func kerasSuffix(base string) string {
	for _, s := range []string{".keras", ".weights.h5", ".h5"} {
		if strings.HasSuffix(base, s) {
			return s
		}
	}
	return ""
}

func isKerasName(base string) bool { return kerasSuffix(base) != "" }

func (keras) Owner(file string) (format.Owner, bool) {
	return onefile.Owner(file, isKerasName)
}

func (keras) Claim(_ context.Context, d *format.Dir) ([]format.Claim, error) {
	return onefile.Claim(d, isKerasName, checkKeras), nil
}

func checkKeras(ctx context.Context, s store.Store, f format.File) (*format.Checkpoint, error) {
	suffix := kerasSuffix(f.Name)
	return onefile.Check(ctx, s, f, format.Checkpoint{Kind: Keras, Step: format.FileStep(f.Name, suffix)}, suffix != ".h5", func(r io.ReaderAt, size int64) error {
		switch suffix {
		case ".keras":
			return checkKerasArchive(r, size)
		case ".h5":
			if ours, err := isKerasHDF5(r, size); err != nil {
				return err
			} else if !ours {
				return onefile.Foreign(errors.New("it is HDF5 of another program"))
			}
		}
		return checkHDF5(r, size)
	})
}

// checkKerasArchive reads the directory of an archive, which stands at its end.
func checkKerasArchive(r io.ReaderAt, size int64) error {
	head := make([]byte, 4)
	if n, _ := r.ReadAt(head, 0); n < len(head) || string(head) != "PK\x03\x04" {
		return errors.New("it does not begin as Keras's files do")
	}
	z, err := zip.NewReader(r, size)
	if err != nil {
		return onefile.CutOff(fmt.Errorf("its directory, at the end: %w", err))
	}
	for _, f := range z.File {
		if f.Name == "config.json" {
			return nil
		}
	}
	return errors.New("it is an archive without Keras's config.json")
}

var hdf5Signature = []byte("\x89HDF\r\n\x1a\n")

// kerasBegin is how much of a file of HDF5 is searched for Keras's mark, which Keras
// writes first.
const kerasBegin = 64 << 10

// isKerasHDF5 reports whether a file of HDF5 has the attribute that Keras gives it.
func isKerasHDF5(r io.ReaderAt, size int64) (bool, error) {
	head := make([]byte, min(size, kerasBegin))
	n, err := r.ReadAt(head, 0)
	if err == io.EOF {
		err = nil
	}
	head = head[:n]
	return bytes.HasPrefix(head, hdf5Signature) && bytes.Contains(head, []byte("keras_version")), err
}

// checkHDF5 compares the length of a file with the address of its end in the superblock
// (HDF5 File Format Specification, II.A). The library refuses a file that is shorter.
func checkHDF5(r io.ReaderAt, size int64) error {
	head := make([]byte, min(size, 96))
	n, err := r.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return err
	}
	end, err := endOfHDF5(head[:n])
	switch {
	case err != nil:
		return err
	case uint64(size) < end:
		return onefile.CutOff(fmt.Errorf("it has %d bytes, %d are needed", size, end))
	case uint64(size) > end:
		return fmt.Errorf("it has %d bytes, and says that it ends at %d", size, end)
	}
	return nil
}

// endOfHDF5 returns the address of a file's end by its superblock, which head begins
// with; of versions 0, 1, 2 and 3, with addresses of 8 bytes that count from 0.
func endOfHDF5(head []byte) (uint64, error) {
	const addressSize = 8
	if !bytes.HasPrefix(head, hdf5Signature) || len(head) < 64 {
		return 0, errors.New("it does not begin as HDF5 does")
	}
	var sizeAt, flags, base int
	switch version := head[8]; version {
	case 0:
		sizeAt, base = 13, 24
	case 1:
		sizeAt, base = 13, 28
	case 2, 3:
		sizeAt, base = 9, 12
		if version == 3 {
			flags = int(head[11])
		}
	default:
		return 0, fmt.Errorf("its superblock has the version %d, which is not known", version)
	}
	switch {
	case head[sizeAt] != addressSize:
		return 0, fmt.Errorf("its addresses have %d bytes", head[sizeAt])
	case binary.LittleEndian.Uint64(head[base:]) != 0:
		return 0, errors.New("its addresses do not count from its beginning")
	case flags&1 != 0:
		return 0, errors.New("it was not closed by the program that wrote it")
	}
	return binary.LittleEndian.Uint64(head[base+2*addressSize:]), nil
}
