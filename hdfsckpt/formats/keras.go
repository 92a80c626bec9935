package formats

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/format/onefile"
	"holdfast/hdfsckpt/hdf5"
	"holdfast/hdfsckpt/limit"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/zipdir"
)

// Keras is a file of a Keras model: an archive NAME.keras, or HDF5 (NAME.weights.h5, and
// NAME.h5 if it begins as Keras writes it).
const Keras format.Kind = "keras"

type keras struct{}

var _ format.Contents = keras{}

func (keras) Traits() format.Traits {
	return format.Traits{
		Kind: Keras, Last: []string{"*.keras", "*.h5"},
		CompleteWhen: "the archive's directory can be read; HDF5 has the length that its beginning says",
		MayGrow:      true, AloneInStepDir: true, Steady: true, Summed: "members of archives",
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

func (keras) Owners(file string) []format.Owner {
	return onefile.Owners(file, isKerasName)
}

func (keras) Claim(_ context.Context, d *format.Dir) ([]format.Claim, error) {
	return onefile.Claim(d, isKerasName, keras{}.check), nil
}

func (keras) named(base string) (is, certain bool) {
	return isKerasName(base), kerasSuffix(base) != ".h5"
}

func (keras) check(ctx context.Context, s store.Store, f format.File) (*format.Checkpoint, error) {
	suffix := kerasSuffix(f.Name)
	c := format.Checkpoint{Kind: Keras, Step: format.FileStep(f.Name, suffix)}
	if suffix == kerasArchive {
		return onefile.CheckWithin(ctx, s, f, c, true, memoryOfKeras, checkKerasArchive)
	}
	return onefile.Check(ctx, s, f, c, suffix != ".h5", func(r io.ReaderAt, size int64) error {
		if suffix == ".h5" {
			if ours, err := isKerasHDF5(r, size); err != nil {
				return err
			} else if !ours {
				return onefile.Foreign(errors.New("it is HDF5 of another program"))
			}
		}
		return checkHDF5(r, size)
	})
}

// memoryOfKeras is what reading the directory of an archive takes.
func memoryOfKeras(r io.ReaderAt, size int64) (int64, error) {
	n, err := zipdir.Memory(r, size)
	if limit.IsExceeded(err) {
		return 0, err
	}
	return n, nil // what is wrong with it, checkKerasArchive says
}

// checkKerasArchive reads the directory of an archive, which stands at its end.
func checkKerasArchive(r io.ReaderAt, size int64) error {
	head := make([]byte, 4)
	if n, _ := r.ReadAt(head, 0); n < len(head) || string(head) != "PK\x03\x04" {
		return errors.New("it does not begin as Keras's files do")
	}
	z, err := zipdir.Open(r, size)
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
	return bytes.HasPrefix(head, []byte(hdf5.Signature)) && bytes.Contains(head, []byte("keras_version")), err
}

// checkHDF5 compares the length of a file with the address of its end in the superblock
// (HDF5 File Format Specification, II.A). The library refuses a file that is shorter.
func checkHDF5(r io.ReaderAt, size int64) error {
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
		return onefile.CutOff(fmt.Errorf("it has %d bytes, %d are needed", size, end))
	case uint64(size) > end:
		return fmt.Errorf("it has %d bytes, and says that it ends at %d", size, end)
	}
	return nil
}
