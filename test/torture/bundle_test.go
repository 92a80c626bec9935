package torture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sort"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// mask is LevelDB's, for checksums that lie beside data (util/crc32c.h).
func mask(crc uint32) uint32 { return (crc>>15 | crc<<17) + 0xa282ead8 }

// tensor is a vector of int64 in one shard.
type tensor struct {
	name   string
	shard  int
	values []int64
}

func (t tensor) bytes() []byte {
	var b []byte
	for _, v := range t.values {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return b
}

// shardData is the content of a data file.
func shardData(tensors []tensor, shard int) []byte {
	var b []byte
	for _, t := range tensors {
		if t.shard == shard {
			b = append(b, t.bytes()...)
		}
	}
	return b
}

// indexData is the content of an index of the tensors in some shards (see
// CHECKPOINT FILES in tensorflow/core/protobuf/tensor_bundle.proto).
func indexData(tensors []tensor, shards int) []byte {
	header := field(nil, 1, uint64(shards))
	header = append(header, 3<<3|2, 2, 1<<3, 1) // version { producer: 1 }
	entries := map[string][]byte{"": header}
	offsets := map[int]int64{}
	for _, t := range tensors {
		b := t.bytes()
		dim := field(nil, 1, uint64(len(t.values)))
		shape := append([]byte{2<<3 | 2, byte(len(dim))}, dim...)
		e := field(nil, 1, 9) // DT_INT64
		e = append(e, 2<<3|2, byte(len(shape)))
		e = append(e, shape...)
		e = field(e, 3, uint64(t.shard))
		e = field(e, 4, uint64(offsets[t.shard]))
		e = field(e, 5, uint64(len(b)))
		e = append(e, 6<<3|5)
		e = binary.LittleEndian.AppendUint32(e, mask(crc32.Checksum(b, castagnoli)))
		entries[t.name] = e
		offsets[t.shard] += int64(len(b))
	}
	return table(entries)
}

func field(b []byte, number int, v uint64) []byte {
	return binary.AppendUvarint(append(b, byte(number<<3)), v)
}

// table is a LevelDB table with one block (table_format.md).
func table(entries map[string][]byte) []byte {
	keys := make([]string, 0, len(entries))
	for k := range entries {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	var out bytes.Buffer
	block := func(keys []string, values map[string][]byte) []byte { // gives its handle
		var b []byte
		for _, k := range keys {
			b = append(b, 0)
			b = binary.AppendUvarint(b, uint64(len(k)))
			b = binary.AppendUvarint(b, uint64(len(values[k])))
			b = append(append(b, k...), values[k]...)
		}
		b = binary.LittleEndian.AppendUint32(b, 0) // a restart point, at 0
		b = binary.LittleEndian.AppendUint32(b, 1)
		handle := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(out.Len())), uint64(len(b)))
		b = append(b, 0) // not compressed
		out.Write(binary.LittleEndian.AppendUint32(b, mask(crc32.Checksum(b, castagnoli))))
		return handle
	}
	data := block(keys, entries)
	meta := block(nil, nil)
	last := keys[len(keys)-1]
	top := block([]string{last}, map[string][]byte{last: data})
	footer := append(meta, top...)
	footer = append(footer, make([]byte, 40-len(footer))...)
	out.Write(binary.LittleEndian.AppendUint64(footer, 0xdb4775248b80fb57))
	return out.Bytes()
}

// tensorsOf are the values of one save: each says which save it is of, so that
// a mixture is seen.
func tensorsOf(id int64, step int64, shards, width int) []tensor {
	var all []tensor
	for i := range shards {
		values := make([]int64, width)
		for k := range values {
			values[k] = id<<20 | step<<8 | int64(i)
		}
		all = append(all, tensor{fmt.Sprintf("v%d", i), i, values})
	}
	return append(all, tensor{"global_step", 0, []int64{step}})
}
