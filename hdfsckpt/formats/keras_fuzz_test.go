package formats

import (
	"bytes"
	"io"
	"testing"

	"holdfast/test/bound"
)

// FuzzKeras looks at files that Keras and the library of HDF5 did not write.
func FuzzKeras(f *testing.F) {
	seed(f, "keras/*", 5)
	f.Add(packed(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer bound.Memory(t, len(b), 1000)()
		r, size := bytes.NewReader(b), int64(len(b))
		if checkHDF5(r, size) == nil && len(b) < 64 {
			t.Errorf("%d bytes are taken for a whole file of HDF5", len(b))
		}
		_ = checkKerasArchive(r, size)
		if _, err := isKerasHDF5(r, size); err != nil {
			t.Error(err)
		}
		for _, name := range []string{"a" + kerasArchive, "a.h5"} {
			found, _ := kerasDatasets(name, r, size, atMost(1<<20))
			for i, d := range found {
				if in, err := d.Rows(); err == nil && i < 32 && !d.Chunked() {
					_, _ = io.CopyN(io.Discard, in, 1<<16)
				}
			}
		}
		archiveMembers("a"+kerasArchive, r, size)
	})
}
