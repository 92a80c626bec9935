package hdf5

import (
	"fmt"

	"holdfast/hdfsckpt/tensor"
)

// datatype is what the elements of a dataset are (IV.A.2.d).
type datatype struct {
	kind   tensor.Kind // one without a size is only a name
	size   uint64      // of an element, in bytes
	opaque bool
	text   textKind
	// swapped: elements are big endian.
	swapped bool
}

// textKind is how a string is kept.
type textKind int

const (
	noText textKind = iota
	fixedText
	variableText
)

// Classes of types.
const (
	classInteger   = 0
	classFloat     = 1
	classTime      = 2
	classString    = 3
	classBitfield  = 4
	classOpaque    = 5
	classCompound  = 6
	classReference = 7
	classEnum      = 8
	classVariable  = 9
	classArray     = 10
	classComplex   = 11
)

var classNames = map[uint64]tensor.Kind{
	classTime: "time", classBitfield: "bitfield", classCompound: "compound", classReference: "reference",
	classArray: "array", classComplex: "complex",
}

// float is how the bits of a float lie.
type float struct{ size, sign, exponentAt, exponent, mantissaAt, mantissa, bias uint64 }

var floats = map[float]tensor.Kind{
	{2, 15, 10, 5, 0, 10, 15}:    "float16",
	{2, 15, 7, 8, 0, 7, 127}:     "bfloat16",
	{4, 31, 23, 8, 0, 23, 127}:   "float32",
	{8, 63, 52, 11, 0, 52, 1023}: "float64",
}

func parseDatatype(s *fields) (datatype, error) {
	head := s.uint(1)
	version, class := head>>4, head&15
	flags := s.uint(3)
	t := datatype{size: s.uint(4), kind: classNames[class]}
	switch {
	case s.short || t.size == 0:
		return t, fmt.Errorf("its type is cut off")
	case version < 1 || version > 5:
		return t, unsupported("its type has the version %d", version)
	}
	named := func(what string) { t.kind = tensor.Kind(fmt.Sprintf("%s of %d bytes", what, t.size)) }
	switch class {
	case classInteger:
		t.swapped = flags&1 != 0
		offset, precision := s.uint(2), s.uint(2)
		what := "uint"
		if flags&(1<<3) != 0 {
			what = "int"
		}
		t.kind = tensor.Kind(fmt.Sprintf("%s%d", what, 8*t.size))
		if offset != 0 || precision != 8*t.size || t.kind.Size() == 0 || uint64(t.kind.Size()) != t.size {
			named("integer")
		}
	case classFloat:
		t.swapped = flags&1 != 0
		const impliedBit = 2
		x := float{size: t.size, sign: flags >> 8 & 0xff}
		offset, precision := s.uint(2), s.uint(2)
		x.exponentAt, x.exponent, x.mantissaAt, x.mantissa, x.bias = s.uint(1), s.uint(1), s.uint(1), s.uint(1), s.uint(4)
		t.kind = floats[x]
		if t.kind == "" || offset != 0 || precision != 8*t.size || flags>>4&3 != impliedBit || flags&(1<<6) != 0 {
			named("float")
		}
	case classString:
		t.text = fixedText
		named("string")
	case classOpaque:
		t.opaque = true
		named("opaque")
	case classVariable:
		t.kind = "sequences"
		if flags&15 == 1 {
			t.kind, t.text = "strings", variableText
		}
	case classEnum:
		return enumeration(s, t, version, flags&0xffff)
	case classTime, classBitfield, classCompound, classReference, classArray, classComplex:
	default:
		named(fmt.Sprintf("class %d", class))
	}
	if s.short {
		return t, fmt.Errorf("its type is cut off")
	}
	return t, nil
}

// enumeration is the integers that an enumeration of that many names has; bool, if it is that
// of h5py.
func enumeration(s *fields, t datatype, version, n uint64) (datatype, error) {
	if len(s.b) > 0 && s.b[0]&15 != classInteger {
		return t, fmt.Errorf("its type is an enumeration of what are no integers")
	}
	base, err := parseDatatype(s)
	if err != nil {
		return t, err
	}
	if base.size != t.size {
		return t, fmt.Errorf("its type is an enumeration of %d bytes, of integers of %d", t.size, base.size)
	}
	var names [2]string
	for i := range n {
		before := len(s.b)
		name := s.text()
		if used := uint64(before - len(s.b)); version < 3 {
			s.bytes(padded(used) - used)
		}
		if i < uint64(len(names)) {
			names[i] = name
		}
	}
	values := s.bytes(n * t.size)
	if s.short {
		return t, fmt.Errorf("its type is cut off")
	}
	if n == 2 && t.size == 1 && names == [2]string{"FALSE", "TRUE"} && values[0] == 0 && values[1] == 1 {
		base.kind = "bool"
	}
	return base, nil
}

// attributeText returns the value of an attribute if it has that name and is one string; empty
// if not (IV.A.2.m).
func (f *file) attributeText(b []byte, name string) (string, error) {
	s := fields{b: b}
	version, flags := s.uint(1), s.uint(1)
	nameSize, typeSize, spaceSize := s.uint(2), s.uint(2), s.uint(2)
	if version == 3 {
		s.uint(1)
	}
	pad := func(n uint64) uint64 {
		if version == 1 {
			return padded(n)
		}
		return n
	}
	got := fields{b: s.bytes(pad(nameSize))}
	if s.short || got.text() != name || version > 1 && flags&3 != 0 {
		return "", nil // of something else, or shared
	}
	of := fields{b: s.bytes(pad(typeSize))}
	t, err := parseDatatype(&of)
	if err != nil {
		return "", err
	}
	space := fields{b: s.bytes(pad(spaceSize))}
	shape, err := parseDataspace(&space)
	if err != nil || len(shape) > 0 {
		return "", err
	}
	switch t.text {
	case fixedText:
		value := fields{b: append(s.bytes(t.size), 0)}
		return value.text(), nil
	case variableText:
		length := s.uint(4)
		at, index := s.address(), s.uint(4)
		value, err := f.globalHeap(at, index)
		return string(value[:min(length, uint64(len(value)))]), err
	}
	return "", nil
}

// globalHeap returns an object of the collection at an address (III.E).
func (f *file) globalHeap(at, index uint64) ([]byte, error) {
	const head = 16
	b := f.heaps[at]
	if b == nil {
		s, err := f.structure("collection of a global heap", "GCOL", at, head)
		if err != nil {
			return nil, err
		}
		version := s.uint(1)
		s.uint(3)
		size := s.uint(8)
		if version != 1 || size < head {
			return nil, fmt.Errorf("the collection of a global heap at byte %d is not what it should be", at)
		}
		if b, err = f.read("a collection of a global heap", at+head, size-head); err != nil {
			return nil, err
		}
		f.heaps[at] = b
	}
	s := fields{b: b}
	for len(s.b) >= head {
		got := s.uint(2)
		s.bytes(6)
		size := s.uint(8)
		if got == 0 {
			break // what is free
		}
		value := s.bytes(size)
		if got == index && !s.short {
			return value, nil
		}
		s.bytes(padded(size) - size)
	}
	return nil, fmt.Errorf("the collection of a global heap at byte %d has no object %d", at, index)
}
