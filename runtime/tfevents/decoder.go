// Package tfevents finds scalars and steps in event files of TensorBoard, while they are
// written.
//
// An event file is a sequence of records: the length of the data (8 bytes, little-endian), a
// checksum of the length, the data, and a checksum of the data (4 bytes each;
// tensorflow/core/lib/io/record_writer.h). The data is a message Event
// (tensorflow/core/util/event.proto), in which a Summary has the scalars
// (tensorflow/core/framework/summary.proto): as simple_value, as TensorFlow 1 and PyTorch
// write them, or as a tensor without dimensions, as TensorFlow 2 does.
package tfevents

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// maxRecord is the size up to which records are read; larger ones, as of images and graphs,
// are skipped.
const maxRecord = 64 << 10

const (
	headerSize  = 12 // of a record: the length and its checksum
	trailerSize = 4  // the checksum of the data
)

// scalar is a value of an event.
type scalar struct {
	tag   string
	value float64
}

// decoder reads a file from its beginning. It is not safe for concurrent use.
type decoder struct {
	at   int64  // where the next bytes must be
	skip int64  // bytes of a record that is not read
	rest []byte // of a record that is not complete
	bad  bool   // it is no event file, or part of it is not known
}

// write takes in bytes of the file, and calls found for each event in them that has a
// step or scalars, with the time that it has.
func (d *decoder) write(at int64, b []byte, found func(of time.Time, step int64, scalars []scalar)) {
	if at == 0 {
		*d = decoder{}
	}
	d.bad = d.bad || at != d.at
	if d.bad {
		return
	}
	d.at += int64(len(b))
	n := min(d.skip, int64(len(b)))
	d.skip -= n
	d.rest = append(d.rest, b[n:]...)
	data := d.rest
	for len(data) >= headerSize {
		size := binary.LittleEndian.Uint64(data)
		if mask(data[:8]) != binary.LittleEndian.Uint32(data[8:]) || size > math.MaxInt64/2 {
			d.bad, d.rest = true, nil
			return
		}
		all := int64(size) + headerSize + trailerSize
		switch {
		case size > maxRecord && all > int64(len(data)):
			d.skip = all - int64(len(data))
			data = nil
			continue
		case all > int64(len(data)):
			d.rest = append([]byte(nil), data...)
			return
		case size <= maxRecord:
			if of, step, list := event(data[headerSize : headerSize+size]); step != 0 || len(list) > 0 {
				found(of, step, list)
			}
		}
		data = data[all:]
	}
	d.rest = append([]byte(nil), data...)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// mask returns the checksum of a record's part (tensorflow/core/lib/hash/crc32c.h, Mask).
func mask(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// event reads a message Event. What is malformed has nothing.
func event(b []byte) (of time.Time, step int64, list []scalar) {
	fields(b, func(number protowire.Number, v uint64, data []byte) {
		switch number {
		case 1: // wall_time, in seconds
			of = time.UnixMicro(int64(math.Round(math.Float64frombits(v) * 1e6)))
		case 2: // step
			step = int64(v)
		case 5: // summary
			fields(data, func(number protowire.Number, _ uint64, data []byte) {
				if number != 1 {
					return
				}
				if s := value(data); s.tag != "" {
					list = append(list, s)
				}
			})
		}
	})
	return of, step, list
}

// value reads a Summary.Value; its tag is empty if it is no scalar.
func value(b []byte) (s scalar) {
	is := false
	fields(b, func(number protowire.Number, v uint64, data []byte) {
		switch number {
		case 1: // tag
			s.tag = string(data)
		case 2: // simple_value
			s.value, is = float64(math.Float32frombits(uint32(v))), true
		case 8: // tensor
			s.value, is = tensor(data)
		}
	})
	if !is {
		return scalar{}
	}
	return s
}

// Types of a TensorProto's values (tensorflow/core/framework/types.proto).
const (
	typeFloat  = 1
	typeDouble = 2
)

// tensor reads a TensorProto (tensorflow/core/framework/tensor.proto) that has one number.
func tensor(b []byte) (number float64, is bool) {
	var kind uint64
	dimensions := false
	var content []byte
	fields(b, func(n protowire.Number, v uint64, data []byte) {
		switch n {
		case 1: // dtype
			kind = v
		case 2: // tensor_shape
			dimensions = len(data) > 0
		case 4, 5, 6: // tensor_content, float_val, double_val
			content = data
			if data == nil { // not packed
				content = binary.LittleEndian.AppendUint64(nil, v)
				if n == 5 {
					content = content[:4]
				}
			}
		}
	})
	switch {
	case dimensions:
	case kind == typeFloat && len(content) == 4:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(content))), true
	case kind == typeDouble && len(content) == 8:
		return math.Float64frombits(binary.LittleEndian.Uint64(content)), true
	}
	return 0, false
}

// fields calls f for each field of a message, with its number, or with its bytes.
func fields(b []byte, f func(number protowire.Number, v uint64, data []byte)) {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return
		}
		b = b[n:]
		var v uint64
		var data []byte
		switch kind {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(b)
		case protowire.Fixed32Type:
			var v32 uint32
			v32, n = protowire.ConsumeFixed32(b)
			v = uint64(v32)
		case protowire.Fixed64Type:
			v, n = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			data, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return
		}
		b = b[n:]
		f(number, v, data)
	}
}
