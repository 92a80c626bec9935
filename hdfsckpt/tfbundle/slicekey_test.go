package tfbundle

import (
	"bytes"
	"encoding/binary"
	"math"
	"reflect"
	"testing"

	"holdfast/test/bound"
)

// appendSigned writes what orderedSigned reads, by the description in
// ordered_code.h: the shortest form whose bits suffice.
func appendSigned(v int64) []byte {
	x := uint64(v)
	if v < 0 {
		x = ^x
	}
	n := 1
	for n < 10 && 7*n-1 < 64 && x>>(7*n-1) != 0 {
		n++
	}
	if 7*n-1 >= 64 && x>>62 != 0 {
		n = 10
	}
	b := make([]byte, 10+8)
	binary.BigEndian.PutUint64(b[10:], x)
	b = b[len(b)-n:]
	for i := range n { // n ones, then a zero
		b[i/8] |= 0x80 >> (i % 8)
	}
	if v < 0 {
		for i := range b {
			b[i] = ^b[i]
		}
	}
	return b
}

func TestOrderedSigned(t *testing.T) {
	for _, x := range []struct {
		b []byte
		v int64
	}{{[]byte{0x80}, 0}, {[]byte{0x81}, 1}, {[]byte{0x7f}, -1}, {[]byte{0xbf}, 63}, {[]byte{0xc0, 0x40}, 64}, {[]byte{0x40}, -64}, {[]byte{0x3f, 0xbf}, -65}} {
		if v, rest, ok := orderedSigned(x.b); v != x.v || len(rest) != 0 || !ok {
			t.Errorf("% x is %d (%v), want %d", x.b, v, ok, x.v)
		}
	}
	for shift := range 64 {
		for _, d := range []int64{-1, 0, 1} {
			for _, v := range []int64{1<<shift + d, -(1 << shift) + d, math.MaxInt64 - d} {
				b := appendSigned(v)
				got, rest, ok := orderedSigned(append(b, 0xaa))
				if got != v || !ok || !bytes.Equal(rest, []byte{0xaa}) {
					t.Errorf("%d (% x) is read as %d, %v, rest % x", v, b, got, ok, rest)
				}
			}
		}
	}
}

func TestSliceKey(t *testing.T) {
	key := append([]byte{0}, "a\x00\xffb\xff\x00\x00\x01"...) // a 00 b ff
	key = append(key, 1, 2, 0x81, 0xc1, 0x2c, 0x80, 0x7f)
	name, slice, err := parseSliceKey(key)
	if err != nil || name != "a\x00b\xff" || !reflect.DeepEqual(slice, Slice{{1, 300}, {0, -1}}) {
		t.Errorf("%q, %v, %v", name, slice, err)
	}
	for i := range key {
		if _, _, err := parseSliceKey(key[:i]); err == nil {
			t.Errorf("cut off at %d it was read", i)
		}
	}
}

func FuzzSliceKey(f *testing.F) {
	f.Add([]byte("\x00a\x00\x01\x01\x01\x80\x7f"))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer bound.Memory(t, len(b), 100)()
		_, _, _ = parseSliceKey(b)
	})
}
