// Package tensor knows what the bytes of tensors mean: kinds of elements, and
// how parts lie in a whole. Bytes are little endian, row by row, wherever
// nothing else is said. Nothing in it does I/O.
package tensor

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// Kind is the kind of a tensor's elements, by its name in TensorFlow, PyTorch
// and NumPy, which is the same: float32, int64, bfloat16, bool.
type Kind string

// StringKind is the kind of tensors whose elements are strings of bytes.
const StringKind Kind = "string"

// kinds has those with elements of one size. number is nil where an element
// is no real number.
var kinds = map[Kind]struct {
	size   int
	number func([]byte) float64
}{
	"bool":       {1, func(b []byte) float64 { return float64(b[0]) }},
	"uint8":      {1, func(b []byte) float64 { return float64(b[0]) }},
	"uint16":     {2, func(b []byte) float64 { return float64(le.Uint16(b)) }},
	"uint32":     {4, func(b []byte) float64 { return float64(le.Uint32(b)) }},
	"uint64":     {8, func(b []byte) float64 { return float64(le.Uint64(b)) }},
	"int8":       {1, func(b []byte) float64 { return float64(int8(b[0])) }},
	"int16":      {2, func(b []byte) float64 { return float64(int16(le.Uint16(b))) }},
	"int32":      {4, func(b []byte) float64 { return float64(int32(le.Uint32(b))) }},
	"int64":      {8, func(b []byte) float64 { return float64(int64(le.Uint64(b))) }},
	"quint8":     {1, func(b []byte) float64 { return float64(b[0]) }}, // without scale and zero point
	"quint16":    {2, func(b []byte) float64 { return float64(le.Uint16(b)) }},
	"qint8":      {1, func(b []byte) float64 { return float64(int8(b[0])) }},
	"qint16":     {2, func(b []byte) float64 { return float64(int16(le.Uint16(b))) }},
	"qint32":     {4, func(b []byte) float64 { return float64(int32(le.Uint32(b))) }},
	"float64":    {8, func(b []byte) float64 { return math.Float64frombits(le.Uint64(b)) }},
	"float32":    {4, func(b []byte) float64 { return float64(math.Float32frombits(le.Uint32(b))) }},
	"float16":    {2, func(b []byte) float64 { return ieee(uint32(le.Uint16(b)), 5, 10) }},
	"bfloat16":   {2, func(b []byte) float64 { return float64(math.Float32frombits(uint32(le.Uint16(b)) << 16)) }},
	"complex64":  {8, nil},
	"complex128": {16, nil},
	"complex32":  {4, nil},

	// Narrow floats (arXiv 2209.05433; the others as in the ml_dtypes package).
	"float8_e5m2": {1, func(b []byte) float64 { return ieee(uint32(b[0]), 5, 2) }},
	"float8_e4m3fn": {1, func(b []byte) float64 { // no infinities, one NaN of each sign
		if b[0]&0x7f == 0x7f {
			return math.NaN()
		}
		return finite(uint32(b[0]), 4, 3, 7)
	}},
	"float8_e4m3fnuz":    {1, func(b []byte) float64 { return unsignedZero(b[0], 4, 3, 8) }},
	"float8_e4m3b11fnuz": {1, func(b []byte) float64 { return unsignedZero(b[0], 4, 3, 11) }},
	"float8_e5m2fnuz":    {1, func(b []byte) float64 { return unsignedZero(b[0], 5, 2, 16) }},

	// TensorFlow keeps one of these in a byte.
	"int4":  {1, func(b []byte) float64 { return float64(int8(b[0]<<4) >> 4) }},
	"uint4": {1, func(b []byte) float64 { return float64(b[0] & 15) }},
}

var le = binary.LittleEndian

// Size returns the bytes of an element; 0 where they differ or are not known.
func (k Kind) Size() int { return kinds[k].size }

// Number returns what turns the bytes of an element into a float64; nil where
// elements are no real numbers. Integers of 64 bits lose what a float64 does
// not hold: see Text.
func (k Kind) Number() func([]byte) float64 { return kinds[k].number }

// Numbers calls f for each element.
func (k Kind) Numbers(b []byte, f func(float64)) error {
	number, width := k.Number(), k.Size()
	if number == nil {
		return fmt.Errorf("elements of %s are no real numbers", k)
	}
	if len(b)%width != 0 {
		return fmt.Errorf("%d bytes are no whole number of %s", len(b), k)
	}
	for ; len(b) > 0; b = b[width:] {
		f(number(b))
	}
	return nil
}

// Complex returns the real and the imaginary part of an element; false where
// elements are no complex numbers.
func (k Kind) Complex(b []byte) (re, im float64, ok bool) {
	part := map[Kind]Kind{"complex32": "float16", "complex64": "float32", "complex128": "float64"}[k]
	if part == "" {
		return 0, 0, false
	}
	return part.Number()(b), part.Number()(b[part.Size():]), true
}

// Text is one element exactly, as digits; "" where elements have no such form.
func (k Kind) Text(b []byte) string {
	switch k {
	case "int64":
		return strconv.FormatInt(int64(le.Uint64(b)), 10)
	case "uint64":
		return strconv.FormatUint(le.Uint64(b), 10)
	case "float32":
		return strconv.FormatFloat(k.Number()(b), 'g', -1, 32)
	}
	if re, im, ok := k.Complex(b); ok {
		return strconv.FormatFloat(re, 'g', -1, 64) + signed(im) + "j"
	}
	if k.Integer() {
		return strconv.FormatInt(int64(k.Number()(b)), 10)
	}
	if number := k.Number(); number != nil {
		return strconv.FormatFloat(number(b), 'g', -1, 64)
	}
	return ""
}

func signed(v float64) string {
	text := strconv.FormatFloat(v, 'g', -1, 64)
	if text[0] != '-' && text[0] != '+' {
		text = "+" + text
	}
	return text
}

// Integer reports whether elements are whole numbers.
func (k Kind) Integer() bool {
	switch k {
	case "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
		"quint8", "quint16", "qint8", "qint16", "qint32", "int4", "uint4":
		return true
	}
	return false
}

// ieee decodes a number with so many bits of exponent and mantissa, as in IEEE 754.
func ieee(v uint32, exponent, mantissa int) float64 {
	if e := v >> mantissa & (1<<exponent - 1); e == 1<<exponent-1 {
		if v&(1<<mantissa-1) != 0 {
			return math.NaN()
		}
		return math.Inf(1 - 2*int(v>>(exponent+mantissa)))
	}
	return finite(v, exponent, mantissa, 1<<(exponent-1)-1)
}

// unsignedZero decodes a number of a kind that has no negative zero, whose bits are
// its only NaN.
func unsignedZero(b byte, exponent, mantissa, bias int) float64 {
	if b == 0x80 {
		return math.NaN()
	}
	return finite(uint32(b), exponent, mantissa, bias)
}

func finite(v uint32, exponent, mantissa, bias int) float64 {
	e := int(v >> mantissa & (1<<exponent - 1))
	m := float64(v & (1<<mantissa - 1))
	if e == 0 {
		e = 1
	} else {
		m += float64(int(1) << mantissa)
	}
	x := math.Ldexp(m, e-bias-mantissa)
	if v>>(exponent+mantissa) != 0 {
		return -x
	}
	return x
}
