package tensor_test

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"holdfast/hdfsckpt/tensor"
)

// count makes n elements of two bytes: 0, 1, 2...
func count(n int) []byte {
	var b []byte
	for i := range n {
		b = append(b, byte(i), byte(i>>8))
	}
	return b
}

// TestPlaceUndoesGather takes parts out of a tensor by strides and puts them
// back where they were.
func TestPlaceUndoesGather(t *testing.T) {
	shape, strides := []int64{3, 4, 5}, []int64{20, 5, 1}
	whole := count(60)
	back := make([]byte, len(whole))
	parts := 0
	for _, a := range [][2]int64{{0, 1}, {1, 2}} {
		for _, b := range [][2]int64{{0, 4}} {
			for _, c := range [][2]int64{{0, 2}, {2, 3}} {
				start, lengths := []int64{a[0], b[0], c[0]}, []int64{a[1], b[1], c[1]}
				part, err := tensor.Gather(whole, a[0]*20+b[0]*5+c[0], lengths, strides, 2)
				if err != nil {
					t.Fatal(err)
				}
				if err := tensor.Place(back, shape, part, start, lengths, 2); err != nil {
					t.Fatal(err)
				}
				parts++
			}
		}
	}
	if parts != 4 || !bytes.Equal(whole, back) {
		t.Errorf("%d parts make % x", parts, back)
	}
}

func TestGather(t *testing.T) {
	for _, x := range []struct {
		offset         int64
		shape, strides []int64
		want           string
	}{
		{0, []int64{2, 3}, []int64{3, 1}, "0 1 2 3 4 5"},
		{0, []int64{3, 2}, []int64{1, 3}, "0 3 1 4 2 5"}, // transposed
		{1, []int64{2}, []int64{4}, "1 5"},
		{2, []int64{3}, []int64{0}, "2 2 2"}, // expanded
		{5, nil, nil, "5"},
		{0, []int64{0, 7}, []int64{1, 1}, ""},
		{0, []int64{1, 2}, []int64{100, 1}, "0 1"}, // the stride of a dimension of one does not count
	} {
		b, err := tensor.Gather(count(6), x.offset, x.shape, x.strides, 2)
		got := ""
		for i := 0; i < len(b); i += 2 {
			got += fmt.Sprintf(" %d", b[i])
		}
		if err != nil || got != x.want && got != " "+x.want {
			t.Errorf("%v %v from %d: %s, %v", x.shape, x.strides, x.offset, got, err)
		}
	}
	for _, x := range []struct {
		offset         int64
		shape, strides []int64
	}{
		{0, []int64{7}, []int64{1}}, {5, []int64{2}, []int64{1}}, {-1, []int64{1}, []int64{1}}, {0, []int64{2}, []int64{-1}},
		{0, []int64{2}, nil}, {0, []int64{-2}, []int64{1}}, {0, []int64{3}, []int64{math.MaxInt64}}, {0, []int64{1 << 40}, []int64{0}},
		{0, []int64{1 << 40, 1 << 40}, []int64{0, 0}}, {math.MaxInt64, []int64{0}, []int64{1}},
	} {
		if b, err := tensor.Gather(count(6), x.offset, x.shape, x.strides, 2); err == nil {
			t.Errorf("%v %v from %d gives % x", x.shape, x.strides, x.offset, b)
		}
	}
}

func TestPlaceOutside(t *testing.T) {
	for _, x := range [][2][]int64{{{0, 2}, {2, 2}}, {{-1, 0}, {1, 1}}, {{0}, {2}}, {{0, 0}, {2, 4}}, {{0, 0}, {-1, 2}}, {{math.MaxInt64, 0}, {1, 1}}} {
		n := int64(2)
		for _, l := range x[1] {
			n *= max(l, 0)
		}
		if err := tensor.Place(make([]byte, 12), []int64{2, 3}, make([]byte, n), x[0], x[1], 2); err == nil {
			t.Errorf("a part at %v of %v is taken", x[0], x[1])
		}
	}
}

// TestConsecutive: parts by rows follow one another, whatever order they come in; others, or
// with gaps, do not.
func TestConsecutive(t *testing.T) {
	type parts [][2][]int64 // start and lengths
	for _, x := range []struct {
		shape []int64
		parts parts
		want  string
	}{
		{[]int64{4, 3}, parts{{{2, 0}, {2, 3}}, {{0, 0}, {2, 3}}}, "[1 0]"},
		{[]int64{1, 4, 3}, parts{{{0, 0, 0}, {1, 1, 3}}, {{0, 1, 0}, {1, 3, 3}}}, "[0 1]"},
		{[]int64{2, 3}, parts{{{0, 0}, {1, 2}}, {{0, 2}, {1, 1}}, {{1, 0}, {1, 3}}}, "[0 1 2]"},
		{[]int64{4, 3}, parts{{{0, 0}, {4, 2}}, {{0, 2}, {4, 1}}}, "none"},       // by columns
		{[]int64{4, 3}, parts{{{0, 0}, {2, 3}}}, "none"},                         // a gap at the end
		{[]int64{4, 3}, parts{{{0, 0}, {3, 3}}, {{2, 0}, {2, 3}}}, "none"},       // they overlap
		{[]int64{4, 3}, parts{{{0, 0}, {2, 3}}, {{2, 0}, {3, 3}}}, "none"},       // outside
		{[]int64{4}, parts{{{0, 0}, {4, 1}}}, "none"},                            // of another rank
		{[]int64{0, 3}, parts{{{0, 0}, {0, 3}}}, "[0]"},                          // nothing
		{nil, parts{{nil, nil}}, "[0]"},                                          // a scalar
		{[]int64{1 << 40, 1 << 40}, parts{{{0, 0}, {1 << 40, 1 << 40}}}, "none"}, // no shape
	} {
		var starts, lengths [][]int64
		for _, p := range x.parts {
			starts, lengths = append(starts, p[0]), append(lengths, p[1])
		}
		got := "none"
		if order, ok := tensor.Consecutive(x.shape, starts, lengths); ok {
			got = fmt.Sprint(order)
		}
		if got != x.want {
			t.Errorf("%v of %v: %s, want %s", x.parts, x.shape, got, x.want)
		}
	}
}
