package kerasfile_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"holdfast/hdfsckpt/kerasfile"
	"holdfast/test/bound"
)

// FuzzKeras looks at files that Keras and the library of HDF5 did not write.
func FuzzKeras(f *testing.F) {
	files, err := filepath.Glob("../testdata/keras/*")
	if err != nil || len(files) != 5 {
		f.Fatalf("recorded are %v, %v", files, err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add(packed(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer bound.Memory(t, len(b), 1000)()
		r, size := bytes.NewReader(b), int64(len(b))
		if kerasfile.CheckHDF5(r, size) == nil && len(b) < 64 {
			t.Errorf("%d bytes are taken for a whole file of HDF5", len(b))
		}
		_ = kerasfile.CheckArchive(r, size)
		if _, err := kerasfile.IsHDF5(r, size); err != nil {
			t.Error(err)
		}
		found, _ := kerasfile.Datasets(r, size, atMost(1<<20))
		for i, d := range found {
			if in, err := d.Rows(); err == nil && i < 32 && !d.Chunked() {
				_, _ = io.CopyN(io.Discard, in, 1<<16)
			}
		}
		kerasfile.Members(r, size)
		kerasfile.Unsound(r, size)
	})
}
