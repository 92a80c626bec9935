package tfbundle

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

var errSliceKey = errors.New("the key of a slice is not readable")

// parseSliceKey takes the key of a slice apart (EncodeTensorNameSlice): the
// number 0, the name, the number of dimensions, and a start and a length for
// each; in the encoding of tensorflow/core/lib/strings/ordered_code.h.
func parseSliceKey(b []byte) (string, Slice, error) {
	zero, b, ok := orderedNumber(b)
	if !ok || zero != 0 {
		return "", nil, errSliceKey
	}
	name, b, ok := orderedString(b)
	if !ok {
		return "", nil, errSliceKey
	}
	dims, b, ok := orderedNumber(b)
	if !ok || dims > 255 {
		return "", nil, errSliceKey
	}
	slice := make(Slice, dims)
	for i := range slice {
		for _, v := range []*int64{&slice[i].Start, &slice[i].Length} {
			if *v, b, ok = orderedSigned(b); !ok {
				return "", nil, errSliceKey
			}
		}
	}
	if len(b) > 0 {
		return "", nil, errSliceKey
	}
	return name, slice, nil
}

// orderedNumber parses a length and that many bytes.
func orderedNumber(b []byte) (uint64, []byte, bool) {
	if len(b) == 0 || b[0] > 8 || len(b) <= int(b[0]) {
		return 0, nil, false
	}
	var v uint64
	for _, c := range b[1 : 1+b[0]] {
		v = v<<8 | uint64(c)
	}
	return v, b[1+b[0]:], true
}

// orderedString ends with 00 01; 00 ff and ff 00 stand for 00 and ff.
func orderedString(b []byte) (string, []byte, bool) {
	var s []byte
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case 0:
			if i+1 == len(b) {
				return "", nil, false
			}
			switch i++; b[i] {
			case 1:
				return string(s), b[i+1:], true
			case 0xff:
				s = append(s, 0)
			default:
				return "", nil, false
			}
		case 0xff:
			if i++; i == len(b) || b[i] != 0 {
				return "", nil, false
			}
			s = append(s, 0xff)
		default:
			s = append(s, b[i])
		}
	}
	return "", nil, false
}

// orderedSigned has as many leading ones as bytes, or zeros if it is negative,
// then a bit of the other kind, then the number.
func orderedSigned(b []byte) (int64, []byte, bool) {
	if len(b) == 0 {
		return 0, nil, false
	}
	var negative byte // 0xff if so
	if b[0]&0x80 == 0 {
		negative = 0xff
	}
	n := bits.LeadingZeros8(^(b[0] ^ negative)) // leading ones
	if n == 8 {                                 // the header goes on in the second byte
		if len(b) < 2 {
			return 0, nil, false
		}
		n += bits.LeadingZeros8(^(b[1] ^ negative))
	}
	if n > 10 || n > len(b) {
		return 0, nil, false
	}
	v := uint64(int64(int8(negative)))
	for _, c := range b[:n] {
		v = v<<8 | uint64(c)
	}
	if n < 8 { // above, the header has been shifted out, but for its last bits
		v ^= (0xff << (8 - n) & 0xff) << (8 * (n - 1))
	} else {
		v ^= map[int]uint64{8: 0xff << 56, 9: 0x80 << 56, 10: 0}[n]
		if n == 10 {
			v = binary.BigEndian.Uint64(b[2:10])
		}
	}
	return int64(v), b[n:], true
}
