package formats

import (
	"bytes"
	"testing"

	"holdfast/test/bound"
)

// FuzzMXNet looks at files that MXNet did not write, and for the arrays in them.
func FuzzMXNet(f *testing.F) {
	seed(f, "mxnet/*.params", 5)
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
