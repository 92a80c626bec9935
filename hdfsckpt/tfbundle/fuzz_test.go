package tfbundle_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"testing"

	"holdfast/hdfsckpt/tfbundle"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// table makes a table of one block of entries, with all checksums right: the
// fuzzers would not get past them otherwise.
func table(block []byte) []byte {
	var b []byte
	place := func(block []byte) []byte {
		h := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(len(b))), uint64(len(block)))
		body := append(bytes.Clone(block), 0)
		sum := crc32.Checksum(body, castagnoli)
		b = append(b, body...)
		b = binary.LittleEndian.AppendUint32(b, (sum>>15|sum<<17)+0xa282ead8)
		return h
	}
	restarts := []byte{0, 0, 0, 0, 1, 0, 0, 0}
	entries := place(block)
	meta := place(restarts)
	index := place(append(append([]byte{0, 1, byte(len(entries)), 0xff}, entries...), restarts...))
	footer := append(meta, index...)
	footer = append(footer, make([]byte, 40-len(footer))...)
	return append(b, append(footer, 0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb)...)
}

// firstBlock is the first block of entries of an index.
func firstBlock(f *testing.F, prefix string) []byte {
	b := read(f, tfbundle.IndexFile(prefix))
	footer := b[len(b)-48:]
	var h [4]uint64 // place and length of the meta index and of the index
	for i := range h {
		v, n := binary.Uvarint(footer)
		h[i], footer = v, footer[n:]
	}
	// The block before the meta index ends 5 bytes before it, and the first
	// begins at 0; the fixtures have one.
	return b[:h[0]-5]
}

// FuzzEntries reads indexes whose blocks are sound and whose entries are not,
// and tensors that do not fit the data.
func FuzzEntries(f *testing.F) {
	for prefix, shards := range fixtures {
		block, data := firstBlock(f, prefix), []byte{}
		for i := range shards {
			data = append(data, read(f, tfbundle.DataFile(prefix, i, shards))...)
		}
		b := table(block)
		if x, err := tfbundle.Parse(bytes.NewReader(b), int64(len(b))); err != nil || len(x.Entries) == 0 {
			f.Fatalf("%s: a table of its own block is not read: %v", prefix, err)
		}
		f.Add(block, data)
	}
	f.Fuzz(func(_ *testing.T, block, data []byte) {
		b := table(block)
		x, err := tfbundle.Parse(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		x.ShardSizes()
		open := func(int) (io.ReaderAt, error) { return bytes.NewReader(data), nil }
		for _, e := range x.Tensors() {
			_ = e.DType.String() + fmt.Sprint(e.Slices, e.Elements(), x.Bytes(e), x.Find(e.Name) != nil)
			if e.DType == tfbundle.String {
				_, _ = x.Strings(open, e)
			} else if b, err := x.Read(open, e); err == nil && e.DType.Size() > 0 {
				_ = e.DType.Kind().Numbers(b, func(float64) {})
			}
		}
		for i := range x.Entries {
			c := tfbundle.NewCheck(&x.Entries[i])
			if _, err := c.Write(data); err == nil {
				_ = c.End()
			}
		}
	})
}
