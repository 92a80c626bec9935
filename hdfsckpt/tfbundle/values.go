package tfbundle

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Opener opens the data file of a shard.
type Opener func(shard int) (io.ReaderAt, error)

// maxTensor bounds what is read into memory at once.
const maxTensor = 1 << 40

// readEntry reads an entry's bytes and checks them.
func readEntry(open Opener, e *Entry) ([]byte, error) {
	if e.Size > maxTensor {
		return nil, fmt.Errorf("%s: %d bytes are too many", e.label(), e.Size)
	}
	r, err := open(e.Shard)
	if err != nil {
		return nil, err
	}
	// A size that is a lie must not cost its memory: grow as bytes come.
	b, err := io.ReadAll(io.NewSectionReader(r, e.Offset, e.Size))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.label(), err)
	}
	c := NewCheck(e)
	if _, err := c.Write(b); err != nil {
		return nil, fmt.Errorf("%s: %w", e.label(), err)
	}
	return b, c.End()
}

// Read returns a tensor's elements as they lie in memory, row by row, little
// endian; those of a partitioned tensor put together. It is not for strings.
func (x *Index) Read(open Opener, e *Entry) ([]byte, error) {
	if x.Header.BigEndian {
		return nil, fmt.Errorf("%s: the checkpoint is big endian, which is not supported", e.label())
	}
	if !e.Partitioned() {
		return readEntry(open, e)
	}
	width := e.DType.Size()
	if width == 0 {
		return nil, fmt.Errorf("%s: a partitioned tensor of %s cannot be put together", e.label(), e.DType)
	}
	if total := e.Elements() * int64(width); total != x.Bytes(e) {
		return nil, fmt.Errorf("%s: its slices have %d bytes, it has %d", e.label(), x.Bytes(e), total)
	}
	parts := x.SlicesOf(e.Name)
	read := make([][]byte, len(parts))
	for i, part := range parts {
		var err error
		if read[i], err = readEntry(open, part); err != nil {
			return nil, err
		}
	}
	whole := make([]byte, x.Bytes(e)) // no more than was read
	for i, part := range parts {
		if err := place(whole, e.Shape, read[i], *part.Of, width); err != nil {
			return nil, fmt.Errorf("%s: %w", part.label(), err)
		}
	}
	return whole, nil
}

// place copies a slice's elements to where they belong in the whole tensor.
func place(whole []byte, shape []int64, part []byte, s Slice, width int) error {
	if len(s) != len(shape) {
		return fmt.Errorf("a slice of %d dimensions of a tensor of %d", len(s), len(shape))
	}
	lengths := make([]int64, len(s))
	n := int64(width)
	for i, x := range s {
		lengths[i] = x.Length
		if x.Length < 0 {
			lengths[i] = shape[i]
		}
		if x.Start < 0 || lengths[i] < 0 || x.Start > shape[i] || lengths[i] > shape[i]-x.Start {
			return fmt.Errorf("the slice is not within the shape %v", shape)
		}
		n *= lengths[i]
	}
	if n != int64(len(part)) {
		return fmt.Errorf("the slice has %d bytes instead of %d", len(part), n)
	}
	if n == 0 {
		return nil
	}
	if len(shape) == 0 {
		copy(whole, part)
		return nil
	}
	last := len(shape) - 1
	row := lengths[last] * int64(width)
	at := make([]int64, last) // position in the dimensions before the last
	for len(part) > 0 {
		off := int64(0)
		for i := range last {
			off = off*shape[i] + s[i].Start + at[i]
		}
		off = (off*shape[last] + s[last].Start) * int64(width)
		copy(whole[off:off+row], part)
		part = part[row:]
		for i := last - 1; i >= 0; i-- {
			if at[i]++; at[i] < lengths[i] {
				break
			}
			at[i] = 0
		}
	}
	return nil
}

// Strings reads the elements of a string tensor.
func (x *Index) Strings(open Opener, e *Entry) ([]string, error) {
	if e.DType != String || e.Partitioned() {
		return nil, fmt.Errorf("%s is no tensor of strings", e.label())
	}
	b, err := readEntry(open, e)
	if err != nil {
		return nil, err
	}
	lengths := []uint64{}
	for i := e.Elements(); i > 0; i-- {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, fmt.Errorf("%s: %w", e.label(), errLengths)
		}
		lengths, b = append(lengths, v), b[n:]
	}
	if len(b) < 4 {
		return nil, fmt.Errorf("%s: %w", e.label(), errLengths)
	}
	b = b[4:]
	list := make([]string, 0, len(lengths))
	for _, n := range lengths {
		if n > uint64(len(b)) {
			return nil, fmt.Errorf("%s: %w", e.label(), errLengths)
		}
		list, b = append(list, string(b[:n])), b[n:]
	}
	if len(b) != 0 {
		return nil, fmt.Errorf("%s: %d bytes too many", e.label(), len(b))
	}
	return list, nil
}

// Numbers turns the bytes of a tensor of real numbers into float64, calling f
// for each element. Integers of 64 bits lose what a float64 does not hold.
func Numbers(d DType, b []byte, f func(float64)) error {
	le := binary.LittleEndian
	var one func(b []byte) float64
	switch d {
	case Float:
		one = func(b []byte) float64 { return float64(math.Float32frombits(le.Uint32(b))) }
	case Double:
		one = func(b []byte) float64 { return math.Float64frombits(le.Uint64(b)) }
	case Half:
		one = func(b []byte) float64 { return smallFloat(uint32(le.Uint16(b)), 5, 10) }
	case BFloat16:
		one = func(b []byte) float64 { return float64(math.Float32frombits(uint32(le.Uint16(b)) << 16)) }
	case Float8E5M2:
		one = func(b []byte) float64 { return smallFloat(uint32(b[0]), 5, 2) }
	case Float8E4M3:
		one = func(b []byte) float64 {
			if b[0]&0x7f == 0x7f { // no infinities, one NaN of each sign
				return math.NaN()
			}
			return finiteFloat(uint32(b[0]), 4, 3)
		}
	case Bool, UInt8, QUInt8:
		one = func(b []byte) float64 { return float64(b[0]) }
	case Int8, QInt8:
		one = func(b []byte) float64 { return float64(int8(b[0])) }
	case Int16, QInt16:
		one = func(b []byte) float64 { return float64(int16(le.Uint16(b))) }
	case UInt16, QUInt16:
		one = func(b []byte) float64 { return float64(le.Uint16(b)) }
	case Int32, QInt32:
		one = func(b []byte) float64 { return float64(int32(le.Uint32(b))) }
	case UInt32:
		one = func(b []byte) float64 { return float64(le.Uint32(b)) }
	case Int64:
		one = func(b []byte) float64 { return float64(int64(le.Uint64(b))) }
	case UInt64:
		one = func(b []byte) float64 { return float64(le.Uint64(b)) }
	default:
		return fmt.Errorf("elements of %s are no real numbers", d)
	}
	width := d.Size()
	if len(b)%width != 0 {
		return fmt.Errorf("%d bytes are no whole number of %s", len(b), d)
	}
	for ; len(b) > 0; b = b[width:] {
		f(one(b))
	}
	return nil
}

// Integer gives an element of an integer kind exactly, as text.
func Integer(d DType, b []byte) (string, bool) {
	switch d {
	case Int64:
		return fmt.Sprint(int64(binary.LittleEndian.Uint64(b))), true
	case UInt64:
		return fmt.Sprint(binary.LittleEndian.Uint64(b)), true
	}
	return "", false
}

// smallFloat is an IEEE number with so many bits of exponent and mantissa.
func smallFloat(v uint32, exponent, mantissa int) float64 {
	if e := v >> mantissa & (1<<exponent - 1); e == 1<<exponent-1 {
		if v&(1<<mantissa-1) != 0 {
			return math.NaN()
		}
		return math.Inf(1 - 2*int(v>>(exponent+mantissa)))
	}
	return finiteFloat(v, exponent, mantissa)
}

func finiteFloat(v uint32, exponent, mantissa int) float64 {
	e := int(v >> mantissa & (1<<exponent - 1))
	m := float64(v & (1<<mantissa - 1))
	bias := 1<<(exponent-1) - 1
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
