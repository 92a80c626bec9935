package tensor_test

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"strconv"
	"testing"

	"holdfast/hdfsckpt/tensor"
)

// TestNarrowKinds compares values of the narrow kinds with what ml_dtypes and
// NumPy read (testdata/make.py): all there are of the 8-bit kinds.
func TestNarrowKinds(t *testing.T) {
	text, err := os.ReadFile("testdata/narrow.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[tensor.Kind][]string
	if err := json.Unmarshal(text, &want); err != nil || len(want) != 7 {
		t.Fatalf("%d kinds, %v", len(want), err)
	}
	for kind, values := range want {
		number, step := kind.Number(), 1
		if kind.Size() == 2 {
			step = 257
		}
		for i, w := range values {
			f, err := strconv.ParseFloat(w, 64)
			if err != nil {
				t.Fatal(err)
			}
			got := number(binary.LittleEndian.AppendUint16(nil, uint16(i*step)))
			if got != f && !(math.IsNaN(got) && math.IsNaN(f)) {
				t.Errorf("%s %#x is %v, want %v", kind, i*step, got, f)
			}
		}
	}
}

func TestText(t *testing.T) {
	le := binary.LittleEndian
	for _, x := range []struct {
		kind tensor.Kind
		b    []byte
		want string
	}{
		{"int64", le.AppendUint64(nil, 1<<63), "-9223372036854775808"},
		{"uint64", le.AppendUint64(nil, math.MaxUint64), "18446744073709551615"},
		{"int32", le.AppendUint32(nil, 1<<31), "-2147483648"},
		{"float32", le.AppendUint32(nil, math.Float32bits(0.1)), "0.1"},
		{"float64", le.AppendUint64(nil, math.Float64bits(math.NaN())), "NaN"},
		{"complex64", le.AppendUint32(le.AppendUint32(nil, math.Float32bits(1)), math.Float32bits(-2.5)), "1-2.5j"},
		{"complex64", le.AppendUint32(le.AppendUint32(nil, math.Float32bits(1)), math.Float32bits(2)), "1+2j"},
		{"int4", []byte{0xf8}, "-8"},
		{"bool", []byte{1}, "1"},
		{"variant", []byte{1}, ""},
	} {
		if got := x.kind.Text(x.b); got != x.want {
			t.Errorf("%s % x is %s, want %s", x.kind, x.b, got, x.want)
		}
	}
	if err := tensor.Kind("complex64").Numbers(make([]byte, 8), nil); err == nil {
		t.Error("complex numbers are taken for real ones")
	}
	if err := tensor.Kind("int32").Numbers(make([]byte, 7), nil); err == nil {
		t.Error("seven bytes are taken for int32")
	}
}
