package formats

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"holdfast/test/bound"
)

// FuzzMXNet looks at files that MXNet did not write, and for the arrays in them.
func FuzzMXNet(f *testing.F) {
	files, err := filepath.Glob("../testdata/mxnet/*.params")
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
	f.Fuzz(func(t *testing.T, b []byte) {
		defer bound.Memory(t, len(b), 1000)()
		size, elements, names := int64(len(b)), int64(0), 0
		rest, err := walkMXNet(bytes.NewReader(b), size, func(p mxnetPart) {
			if p.offset < 0 || p.size() < 0 || p.offset+p.size() > size {
				t.Errorf("of %d bytes, those of a part are %d at %d", size, p.size(), p.offset)
			}
			elements += p.size()
		}, func(string) { names++ })
		if err == nil && rest+elements != size {
			t.Errorf("%d bytes of elements and %d others are not the %d of the file", elements, rest, size)
		}
		if err == nil && judgeMXNet(bytes.NewReader(b[:size-1]), size-1) == nil {
			t.Error("the file is whole with its last byte and without it")
		}
	})
}
