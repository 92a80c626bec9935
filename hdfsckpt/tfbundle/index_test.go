package tfbundle_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/hdfsckpt/tfbundle"
	"holdfast/test/bound"
)

// told is what TensorFlow reads back from a fixture (testdata/make.py).
type told struct {
	DType  string  `json:"dtype"`
	Shape  []int64 `json:"shape"`
	Values []any   `json:"values"`
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parse(t testing.TB, prefix string) *tfbundle.Index {
	t.Helper()
	b := read(t, tfbundle.IndexFile(prefix))
	x, err := tfbundle.Parse(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

var fixtures = map[string]int{"dtypes.ckpt-7": 1, "sharded.ckpt-1200": 4, "objects-24": 1, "rare.ckpt-3": 1}

func TestIndexAgreesWithTensorFlow(t *testing.T) {
	for prefix, shards := range fixtures {
		x := parse(t, prefix)
		if x.Header.Shards != shards || x.Header.BigEndian || x.Header.Producer != 1 {
			t.Errorf("%s: %+v", prefix, x.Header)
		}
		var want map[string]told
		if err := json.Unmarshal(read(t, prefix+".json"), &want); err != nil {
			t.Fatal(err)
		}
		for _, e := range x.Tensors() {
			w, ok := want[e.Name]
			if !ok || e.DType.String() != w.DType || !slices.Equal(e.Shape, w.Shape) {
				t.Errorf("%s: %s is %s %v, TensorFlow says %v", prefix, e.Name, e.DType, e.Shape, w)
			}
			delete(want, e.Name)
		}
		if len(want) != 0 {
			t.Errorf("%s: missing are %v", prefix, want)
		}
		for i, size := range x.ShardSizes() {
			if data := read(t, tfbundle.DataFile(prefix, i, shards)); int64(len(data)) != size {
				t.Errorf("%s: shard %d needs %d bytes, TensorFlow wrote %d", prefix, i, size, len(data))
			}
		}
	}
}

func TestPartitioned(t *testing.T) {
	x := parse(t, "sharded.ckpt-1200")
	for name, want := range map[string]string{"p/rows": "[0,3:0,10 3,3:0,10 6,2:0,10]", "p/columns": "[0,1:0,150 0,1:150,150]"} {
		var own []string
		elements := int64(0)
		for _, s := range x.SlicesOf(name) {
			own = append(own, s.Of.String())
			elements += s.Elements()
		}
		for _, e := range x.Tensors() {
			if e.Name != name {
				continue
			}
			if got := fmt.Sprint(e.Slices); got != want || fmt.Sprint(own) != want {
				t.Errorf("%s has the slices %s and %s, want %s", name, got, own, want)
			}
			if elements != e.Elements() || x.Bytes(e) != elements*int64(e.DType.Size()) {
				t.Errorf("%s: %d elements in slices, %d bytes, %d elements in all", name, elements, x.Bytes(e), e.Elements())
			}
		}
		if own == nil {
			t.Errorf("%s has no slices", name)
		}
	}
}

// TestManyBlocks reads an index that does not fit one block.
func TestManyBlocks(t *testing.T) {
	x := parse(t, "many.ckpt")
	if len(x.Entries) != 2500 {
		t.Fatalf("%d entries", len(x.Entries))
	}
	for i, e := range x.Entries {
		if e.Name != fmt.Sprintf("layer_%04d/", i)+strings.Repeat("x", 120) || e.Size != 4 {
			t.Fatalf("entry %d: %+v", i, e)
		}
	}
}

// TestDamage changes each byte of an index, and cuts it off everywhere.
func TestDamage(t *testing.T) {
	b := read(t, "sharded.ckpt-1200.index")
	for i := range b {
		d := bytes.Clone(b)
		d[i] ^= byte(1 + rand.IntN(255))
		if _, err := tfbundle.Parse(bytes.NewReader(d), int64(len(d))); err == nil {
			t.Errorf("byte %d was changed from %#x to %#x unnoticed", i, b[i], d[i])
		}
		if _, err := tfbundle.Parse(bytes.NewReader(b[:i]), int64(i)); err == nil {
			t.Errorf("cut off at %d of %d it was read", i, len(b))
		}
	}
}

func FuzzParse(f *testing.F) {
	for prefix := range fixtures {
		f.Add(read(f, tfbundle.IndexFile(prefix)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		end := bound.Memory(t, len(b), 1000)
		x, err := tfbundle.Parse(bytes.NewReader(b), int64(len(b)))
		end()
		if err != nil {
			return
		}
		x.ShardSizes()
		for _, e := range x.Tensors() {
			x.Bytes(e)
			_ = e.DType.String() + fmt.Sprint(e.Slices, e.Elements())
		}
	})
}
