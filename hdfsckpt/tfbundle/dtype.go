package tfbundle

import (
	"fmt"

	"holdfast/hdfsckpt/tensor"
)

// DType is the kind of a tensor's elements (tensorflow/core/framework/types.proto).
type DType int32

const (
	Float             DType = 1
	Double            DType = 2
	Int32             DType = 3
	UInt8             DType = 4
	Int16             DType = 5
	Int8              DType = 6
	String            DType = 7
	Complex64         DType = 8
	Int64             DType = 9
	Bool              DType = 10
	QInt8             DType = 11
	QUInt8            DType = 12
	QInt32            DType = 13
	BFloat16          DType = 14
	QInt16            DType = 15
	QUInt16           DType = 16
	UInt16            DType = 17
	Complex128        DType = 18
	Half              DType = 19
	Resource          DType = 20
	Variant           DType = 21
	UInt32            DType = 22
	UInt64            DType = 23
	Float8E5M2        DType = 24
	Float8E4M3        DType = 25
	Float8E4M3FNUZ    DType = 26
	Float8E4M3B11FNUZ DType = 27
	Float8E5M2FNUZ    DType = 28
	Int4              DType = 29
	UInt4             DType = 30
)

var kinds = map[DType]tensor.Kind{
	Float: "float32", Double: "float64", Int32: "int32", UInt8: "uint8", Int16: "int16", Int8: "int8",
	String: tensor.StringKind, Complex64: "complex64", Int64: "int64", Bool: "bool", QInt8: "qint8",
	QUInt8: "quint8", QInt32: "qint32", BFloat16: "bfloat16", QInt16: "qint16", QUInt16: "quint16",
	UInt16: "uint16", Complex128: "complex128", Half: "float16", Resource: "resource", Variant: "variant",
	UInt32: "uint32", UInt64: "uint64", Float8E5M2: "float8_e5m2", Float8E4M3: "float8_e4m3fn",
	Float8E4M3FNUZ: "float8_e4m3fnuz", Float8E4M3B11FNUZ: "float8_e4m3b11fnuz", Float8E5M2FNUZ: "float8_e5m2fnuz",
	Int4: "int4", UInt4: "uint4",
}

// Kind returns the kind of the elements; "dtype N" for one that is not known.
func (d DType) Kind() tensor.Kind {
	if k, ok := kinds[d]; ok {
		return k
	}
	return tensor.Kind(fmt.Sprintf("dtype %d", int32(d)))
}

// String is TensorFlow's name of the kind.
func (d DType) String() string { return string(d.Kind()) }

// Size returns the bytes of an element; 0 where they differ or are not known.
func (d DType) Size() int { return d.Kind().Size() }
