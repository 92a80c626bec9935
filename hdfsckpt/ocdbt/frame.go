package ocdbt

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"

	"holdfast/hdfsckpt/limit"
)

// What is read of a store is bounded by its files, whatever they say.
const (
	// most bytes of memory for each byte that was read, and what is free. Of a million keys of
	// chunks a byte and a half each is what compression leaves, and they take some sixty.
	mostExpanded = 256
	freeExpanded = 4 << 20
	// entrySize is what an entry of a node or a table takes, in bytes, its texts aside.
	entrySize = 160
)

// budget bounds the memory that nodes take. It is for one goroutine.
type budget struct {
	read, spent int64
	decoder     *zstd.Decoder // nil before the first that is compressed
	scratch     []byte        // into which all are decompressed
}

// spend fails if n bytes more are too many.
func (b *budget) spend(n int64) error {
	if b.spent += n; b.spent > mostExpanded*b.read+freeExpanded {
		return unknownError{limit.Exceeded("%d bytes describe more than %d", b.read, b.spent-n)}
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sizes in bytes of what every frame, a node or the manifest, begins and ends with.
const (
	beginSize = 4 + 8
	sumSize   = 4
)

// Sum takes the bytes of a manifest or of a node, in whatever pieces. The zero value is ready.
type Sum struct {
	crc  uint32
	last []byte // which are the checksum, if nothing follows
}

func (s *Sum) Write(b []byte) (int, error) {
	s.last = append(s.last, b...)
	if n := len(s.last) - sumSize; n > 0 {
		s.crc = crc32.Update(s.crc, castagnoli, s.last[:n])
		s.last = append(s.last[:0], s.last[n:]...)
	}
	return len(b), nil
}

// End reports what is wrong with the checksum, which is at the end.
func (s *Sum) End() error {
	if len(s.last) < sumSize {
		return damaged("it has %d bytes", len(s.last))
	}
	if want := binary.LittleEndian.Uint32(s.last); s.crc != want {
		return damaged("its checksum is %08x, and it says %08x", s.crc, want)
	}
	return nil
}

// unwrap returns the content of a frame that is a node or a manifest by its magic number.
func unwrap(frame []byte, magic uint32, b *budget) ([]byte, error) {
	if len(frame) < beginSize+sumSize || binary.BigEndian.Uint32(frame) != magic {
		return nil, damaged("it does not begin as it should")
	}
	if n := binary.LittleEndian.Uint64(frame[4:]); n != uint64(len(frame)) {
		return nil, damaged("it has %d bytes instead of %d", len(frame), n)
	}
	var s Sum
	_, _ = s.Write(frame)
	if err := s.End(); err != nil {
		return nil, err
	}
	c := cursor{b: frame[beginSize : len(frame)-sumSize]}
	version, compression := c.uvarint(), c.uvarint()
	switch {
	case c.err != nil:
		return nil, c.err
	case version != 0:
		return nil, unknown("it has the version %d of the form, and only 0 is read", version)
	case compression == 0:
		return c.b, nil
	case compression == 1:
		return decompress(c.b, b)
	}
	return nil, unknown("it is compressed in a way that is not known: %d", compression)
}

const (
	// mostWindow is how far back a compressed node may refer, in bytes: zstd's levels up to 19
	// take 8 MiB.
	mostWindow = 8 << 20
	// blockSize is what is taken to decompress a first node, in bytes.
	blockSize = 64 << 10
)

func decompress(in []byte, b *budget) ([]byte, error) {
	if b.decoder == nil {
		var err error
		// With a concurrency of 1 it has no goroutines that would have to be ended.
		b.decoder, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(mostWindow))
		if err != nil {
			return nil, err
		}
	}
	if err := b.decoder.Reset(bytes.NewReader(in)); err != nil {
		return nil, unknown("it cannot be decompressed: %w", err)
	}
	out := b.scratch[:0]
	for {
		if cap(out) == len(out) {
			more := max(len(out), blockSize)
			if err := b.spend(int64(more)); err != nil {
				return nil, err
			}
			out = slices.Grow(out, more)
		}
		n, err := b.decoder.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		if err == io.EOF {
			b.scratch = out
			return bytes.Clone(out), b.spend(int64(len(out)))
		}
		if err != nil {
			return nil, unknown("it cannot be decompressed: %w", err)
		}
	}
}

// cursor reads fields one after the other. After its first error it reads nothing, and returns
// zeros.
type cursor struct {
	b   []byte
	err error
}

var errEnds = unknown("it ends within a field")

func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.b = nil
}

func (c *cursor) uvarint() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.fail(errEnds)
		return 0
	}
	c.b = c.b[n:]
	return v
}

// bytes returns the next n bytes. They are good as long as what is read.
func (c *cursor) bytes(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.fail(errEnds)
		return nil
	}
	b := c.b[:n]
	c.b = c.b[n:]
	return b
}

func (c *cursor) byte() byte {
	if b := c.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

// count reads how many entries follow, each of which takes a byte at least.
func (c *cursor) count() int {
	n := c.uvarint()
	if n > uint64(len(c.b)) {
		c.fail(unknown("it says that it has %d entries, and has %d bytes", n, len(c.b)))
		return 0
	}
	return int(n)
}

// column reads a field of n entries, none of which is larger than most.
func (c *cursor) column(n int, most uint64) []uint64 {
	if n > len(c.b) {
		c.fail(errEnds)
		return nil
	}
	all := make([]uint64, n)
	for i := range all {
		if all[i] = c.uvarint(); all[i] > most {
			c.fail(unknown("a field is %d, more than %d", all[i], most))
		}
	}
	if c.err != nil {
		return nil
	}
	return all
}
