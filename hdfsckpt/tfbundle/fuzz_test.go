package tfbundle_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"testing"

	"holdfast/hdfsckpt/limit"
	"holdfast/hdfsckpt/tfbundle"
	"holdfast/test/bound"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// table makes a table of one block of entries, with all checksums right: the
// fuzzers would not get past them otherwise.
func table(block []byte) []byte { return tableNaming(block, 1) }

// tableNaming makes a table whose index names its only block so many times.
func tableNaming(block []byte, times int) []byte {
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
	names := bytes.Repeat(append([]byte{0, 1, byte(len(entries)), 0xff}, entries...), times)
	index := place(append(names, restarts...))
	footer := append(meta, index...)
	footer = append(footer, make([]byte, 40-len(footer))...)
	return append(b, append(footer, 0x57, 0xfb, 0x80, 0x8b, 0x24, 0x75, 0x47, 0xdb)...)
}

// entries makes a block of a header and so many entries without content, whose
// names share all but one byte with the one before.
func entries(n, name int) []byte {
	b := []byte{0, 0, 2, 8, 1} // the header: one shard
	b = binary.AppendUvarint(append(b, 0), uint64(name))
	b = append(append(b, 0), bytes.Repeat([]byte("n"), name)...)
	for i := range n {
		b = append(binary.AppendUvarint(b, uint64(name)), 1, 0, byte(i))
	}
	return append(b, 0, 0, 0, 0, 1, 0, 0, 0)
}

// TestAnIndexCannotClaimMemory reads small indexes that describe a lot.
func TestAnIndexCannotClaimMemory(t *testing.T) {
	for what, x := range map[string]struct {
		b        []byte
		exceeded bool // and not damaged
	}{
		"one block, named often":        {tableNaming(entries(1000, 1), 1000), false},
		"a long name, shared by others": {table(entries(3000, 100_000)), true},
	} {
		end := bound.Memory(t, len(x.b), 1000)
		if _, err := tfbundle.Parse(bytes.NewReader(x.b), int64(len(x.b))); err == nil || limit.IsExceeded(err) != x.exceeded {
			t.Errorf("%s: %v", what, err)
		}
		end()
	}
	sound := table(entries(1000, 100))
	if x, err := tfbundle.Parse(bytes.NewReader(sound), int64(len(sound))); err != nil || len(x.Entries) != 1001 {
		t.Errorf("names that share a hundred bytes are not read: %v", err)
	}
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
	f.Fuzz(func(t *testing.T, block, data []byte) {
		b := table(block)
		end := bound.Memory(t, len(b), 1000)
		x, err := tfbundle.Parse(bytes.NewReader(b), int64(len(b)))
		end()
		if err != nil {
			return
		}
		x.ShardSizes()
		open := func(int) (io.ReaderAt, error) { return bytes.NewReader(data), nil }
		for _, e := range x.Tensors() {
			_ = e.DType.String() + fmt.Sprint(e.Slices, e.Elements(), x.Bytes(e))
			end := bound.Memory(t, len(b)+len(data), 100)
			if e.DType == tfbundle.String {
				_, _ = x.Strings(open, e)
			} else if b, err := x.Read(open, e); err == nil && e.DType.Size() > 0 {
				_ = e.DType.Kind().Numbers(b, func(float64) {})
			}
			for _, r := range []io.Reader{x.Rows(open, e), x.Parts(open, e)} {
				if r != nil {
					_, _ = io.Copy(io.Discard, r)
				}
			}
			end()
		}
		for i := range x.Entries {
			end := bound.Memory(t, len(data), 100)
			c := tfbundle.NewCheck(&x.Entries[i])
			if _, err := c.Write(data); err == nil {
				_ = c.End()
			}
			end()
		}
	})
}
