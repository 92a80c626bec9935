package tensor_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
	"testing"
	"testing/iotest"

	"holdfast/hdfsckpt/tensor"
	"holdfast/test/bound"
)

func TestSummarise(t *testing.T) {
	floats := func(v ...float64) []byte {
		var b []byte
		for _, x := range v {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
		return b
	}
	for _, c := range []struct {
		name string
		b    []byte
		want tensor.Summary
	}{
		{"nothing", nil, tensor.Summary{}},
		{"one value", floats(2, 2), tensor.Summary{Elements: 2, Min: 2, Max: 2, Mean: 2, Norm: math.Sqrt(8), Histogram: []int64{2, 0}}},
		{"not finite", floats(math.NaN(), math.Inf(1), math.Inf(-1)), tensor.Summary{Elements: 3, NaN: 1, Inf: 2}},
		{"spread", floats(0, 1, 3, 4, math.NaN()), tensor.Summary{Elements: 5, NaN: 1, Min: 0, Max: 4, Mean: 2, Norm: math.Sqrt(26), Histogram: []int64{2, 2}}},
		{"the largest there are", floats(-math.MaxFloat64, math.MaxFloat64), tensor.Summary{Elements: 2, Min: -math.MaxFloat64, Max: math.MaxFloat64, Norm: math.Inf(1), Histogram: []int64{1, 1}}},
	} {
		got, err := tensor.Summarise("float64", func() (io.Reader, error) { return iotest.OneByteReader(bytes.NewReader(c.b)), nil }, 2)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		same := got.Elements == c.want.Elements && got.NaN == c.want.NaN && got.Inf == c.want.Inf && got.Min == c.want.Min && got.Max == c.want.Max &&
			got.Mean == c.want.Mean && got.Norm == c.want.Norm && slices.Equal(got.Histogram, c.want.Histogram)
		if !same {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestSummariseTakesBoundedMemory: a tensor of any size is read a block at a time, and one
// that cannot be read to its end has no summary.
func TestSummariseTakesBoundedMemory(t *testing.T) {
	const n = 64 << 20
	end := bound.Memory(t, 0, 0)
	s, err := tensor.Summarise("float32", func() (io.Reader, error) {
		return io.MultiReader(io.LimitReader(zeros{}, n), bytes.NewReader([]byte{0, 0, 128, 63})), nil
	}, 4)
	end()
	if err != nil || s.Elements != n/4+1 || s.Max != 1 || !slices.Equal(s.Histogram, []int64{n / 4, 0, 0, 1}) {
		t.Errorf("%+v, %v", s, err)
	}
	broken := errors.New("broken")
	if _, err := tensor.Summarise("float32", func() (io.Reader, error) {
		return io.MultiReader(bytes.NewReader(make([]byte, 8)), iotest.ErrReader(broken)), nil
	}, 4); !errors.Is(err, broken) {
		t.Errorf("read as %v", err)
	}
	if _, err := tensor.Summarise("float32", func() (io.Reader, error) { return bytes.NewReader(make([]byte, 6)), nil }, 4); err == nil {
		t.Error("half an element is read")
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
