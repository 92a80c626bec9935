package tfbundle

import "fmt"

// DType is the kind of a tensor's elements (tensorflow/core/framework/types.proto).
type DType int32

const (
	Float      DType = 1
	Double     DType = 2
	Int32      DType = 3
	UInt8      DType = 4
	Int16      DType = 5
	Int8       DType = 6
	String     DType = 7
	Complex64  DType = 8
	Int64      DType = 9
	Bool       DType = 10
	QInt8      DType = 11
	QUInt8     DType = 12
	QInt32     DType = 13
	BFloat16   DType = 14
	QInt16     DType = 15
	QUInt16    DType = 16
	UInt16     DType = 17
	Complex128 DType = 18
	Half       DType = 19
	Resource   DType = 20
	Variant    DType = 21
	UInt32     DType = 22
	UInt64     DType = 23
	Float8E5M2 DType = 24
	Float8E4M3 DType = 25
)

var dtypes = map[DType]struct {
	name string
	size int
}{
	Float: {"float32", 4}, Double: {"float64", 8}, Int32: {"int32", 4}, UInt8: {"uint8", 1},
	Int16: {"int16", 2}, Int8: {"int8", 1}, String: {"string", 0}, Complex64: {"complex64", 8},
	Int64: {"int64", 8}, Bool: {"bool", 1}, QInt8: {"qint8", 1}, QUInt8: {"quint8", 1},
	QInt32: {"qint32", 4}, BFloat16: {"bfloat16", 2}, QInt16: {"qint16", 2}, QUInt16: {"quint16", 2},
	UInt16: {"uint16", 2}, Complex128: {"complex128", 16}, Half: {"float16", 2},
	Resource: {"resource", 0}, Variant: {"variant", 0}, UInt32: {"uint32", 4}, UInt64: {"uint64", 8},
	Float8E5M2: {"float8_e5m2", 1}, Float8E4M3: {"float8_e4m3fn", 1},
}

// String is TensorFlow's name of the kind.
func (d DType) String() string {
	if t, ok := dtypes[d]; ok {
		return t.name
	}
	return fmt.Sprintf("dtype %d", int32(d))
}

// Size is the bytes of an element; 0 where they differ or are not known.
func (d DType) Size() int { return dtypes[d].size }
