package tfbundle_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"holdfast/hdfsckpt/tensor"
	"holdfast/hdfsckpt/tfbundle"
)

func opener(prefix string, of int) tfbundle.Opener {
	return func(shard int) (io.ReaderAt, error) {
		b, err := os.ReadFile(filepath.Join("testdata", tfbundle.DataFile(prefix, shard, of)))
		return bytes.NewReader(b), err
	}
}

func same(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

// TestValuesAgreeWithTensorFlow compares all values with those that TensorFlow
// reads back.
func TestValuesAgreeWithTensorFlow(t *testing.T) {
	compared := 0
	for prefix, shards := range fixtures {
		x := parse(t, prefix)
		var want map[string]told
		d := json.NewDecoder(bytes.NewReader(read(t, prefix+".json")))
		d.UseNumber()
		if err := d.Decode(&want); err != nil {
			t.Fatal(err)
		}
		for _, e := range x.Tensors() {
			values := want[e.Name].Values
			if e.DType == tfbundle.String {
				got, err := x.Strings(opener(prefix, shards), e)
				if err != nil || len(got) != len(values) {
					t.Errorf("%s: %d strings of %d, %v", e.Name, len(got), len(values), err)
					continue
				}
				for i := range got {
					if hex.EncodeToString([]byte(got[i])) != values[i] {
						t.Errorf("%s[%d] is %q", e.Name, i, got[i])
					}
					compared++
				}
				continue
			}
			b, err := x.Read(opener(prefix, shards), e)
			if err != nil {
				t.Errorf("%s: %v", e.Name, err)
				continue
			}
			if e.DType == tfbundle.Variant { // it is checked, and not taken apart
				continue
			}
			kind := e.DType.Kind()
			if _, _, ok := kind.Complex(make([]byte, 16)); ok {
				kind = map[tensor.Kind]tensor.Kind{"complex64": "float32", "complex128": "float64"}[kind]
				var flat []any
				for _, v := range values {
					flat = append(flat, v.([]any)...)
				}
				values = flat
			}
			i := 0
			err = kind.Numbers(b, func(v float64) {
				w, err := strconv.ParseFloat(fmt.Sprint(values[i]), 64)
				if err != nil || !same(v, w) {
					t.Errorf("%s[%d] is %v, TensorFlow says %v", e.Name, i, v, values[i])
				}
				i++
				compared++
			})
			if err != nil || i != len(values) {
				t.Errorf("%s: %d elements of %d, %v", e.Name, i, len(values), err)
			}
			if e.DType.Kind().Integer() {
				for i, v := range values {
					if s := e.DType.Kind().Text(b[i*e.DType.Size():]); s != fmt.Sprint(v) {
						t.Errorf("%s[%d] is %s, TensorFlow says %v", e.Name, i, s, v)
					}
				}
			}
		}
	}
	if compared < 500 {
		t.Errorf("only %d values were compared", compared)
	}
}

// TestFlippedBits changes bits all over the data: the checksum of the tensor
// that they are in notices, whatever pieces the bytes come in.
func TestFlippedBits(t *testing.T) {
	for prefix, shards := range fixtures {
		x := parse(t, prefix)
		for i := range x.Entries {
			e := &x.Entries[i]
			if e.Partitioned() {
				continue
			}
			r, err := opener(prefix, shards)(e.Shard)
			if err != nil {
				t.Fatal(err)
			}
			b := make([]byte, e.Size)
			if _, err := r.ReadAt(b, e.Offset); err != nil && err != io.EOF {
				t.Fatal(err)
			}
			if err := check(e, b); err != nil {
				t.Errorf("%s: %s: %v", prefix, e.Name, err)
			}
			for range min(300, 8*len(b)) {
				d := bytes.Clone(b)
				bit := rand.IntN(8 * len(d))
				d[bit/8] ^= 1 << (bit % 8)
				if check(e, d) == nil {
					t.Errorf("%s: %s: bit %d was flipped unnoticed", prefix, e.Name, bit)
				}
			}
			if len(b) > 0 && check(e, b[:len(b)-1]) == nil {
				t.Errorf("%s: %s: a missing byte was not noticed", prefix, e.Name)
			}
		}
	}
}

func check(e *tfbundle.Entry, b []byte) error {
	c := tfbundle.NewCheck(e)
	for len(b) > 0 {
		n := 1 + rand.IntN(len(b))
		if _, err := c.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return c.End()
}
