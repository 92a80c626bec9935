package tensor_test

import (
	"encoding/binary"
	"math"
	"testing"

	"holdfast/hdfsckpt/tensor"
	"holdfast/test/bound"
)

// numbers reads eight bytes each.
func numbers(b []byte) []int64 {
	var list []int64
	for ; len(b) >= 8; b = b[8:] {
		list = append(list, int64(binary.LittleEndian.Uint64(b)))
	}
	return list
}

func bytesOf(list ...int64) []byte {
	var b []byte
	for _, n := range list {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return b
}

// FuzzGather has shapes, strides and offsets as a file claims them, of few bytes.
func FuzzGather(f *testing.F) {
	f.Add(make([]byte, 24), int64(1), bytesOf(2, 3), bytesOf(1, 2), byte(4))
	f.Add(make([]byte, 24), int64(0), bytesOf(1<<19), bytesOf(0), byte(16))
	f.Add(make([]byte, 8), int64(math.MaxInt64), bytesOf(1<<40, 1<<40), bytesOf(1, math.MinInt64), byte(1))
	f.Fuzz(func(t *testing.T, storage []byte, offset int64, shape, strides []byte, width byte) {
		if width == 0 || width > 16 {
			return // no kind has that
		}
		defer bound.Memory(t, len(storage), 20)()
		dims := numbers(shape)
		out, err := tensor.Gather(storage, offset, dims, numbers(strides), int(width))
		if n, ok := tensor.Elements(dims); err == nil && (!ok || int64(len(out)) != n*int64(width)) {
			t.Errorf("%d bytes of the shape %v", len(out), dims)
		}
	})
}

// FuzzPlace has the place of a part as a file claims it.
func FuzzPlace(f *testing.F) {
	f.Add(make([]byte, 24), bytesOf(2, 3), make([]byte, 8), bytesOf(1, 1), bytesOf(1, 2), byte(4))
	f.Fuzz(func(t *testing.T, whole, shape, part, start, lengths []byte, width byte) {
		if width == 0 || width > 16 {
			return
		}
		defer bound.Memory(t, len(whole)+len(part), 20)()
		_ = tensor.Place(whole, numbers(shape), part, numbers(start), numbers(lengths), int(width))
	})
}
