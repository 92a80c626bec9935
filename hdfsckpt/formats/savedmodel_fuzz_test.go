package formats

import (
	"bytes"
	"testing"

	"holdfast/test/bound"
)

// FuzzSavedModel looks at files saved_model.pb that TensorFlow did not write.
func FuzzSavedModel(f *testing.F) {
	graph := append([]byte{0x08, 1, 0x12, 20}, make([]byte, 20)...)
	f.Add(graph)
	f.Add(append(bytes.Clone(graph), graph[2:]...))
	f.Add([]byte{0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Add([]byte{0x08, 1, 0x12})
	f.Fuzz(func(t *testing.T, b []byte) {
		defer bound.Memory(t, len(b), 1000)()
		whole := judgeSavedModel(bytes.NewReader(b), int64(len(b))) == nil
		if whole && !bytes.Contains(b, []byte{0x12}) {
			t.Error("it has no graph, and is whole")
		}
	})
}
