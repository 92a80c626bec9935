package tfbundle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Check computes the checksum of an entry from its bytes, in whatever pieces
// they come. It is an io.Writer that holds some bytes only.
type Check struct {
	e    *Entry
	crc  uint32
	size int64

	// Of a string tensor.
	left    int64  // lengths still to come
	partial []byte // of a length, or of the checksum of the lengths
	sum     bool   // that checksum has come
	bytes   int64  // of the elements
}

// NewCheck begins to check an entry, which must have bytes of its own.
func NewCheck(e *Entry) *Check { return &Check{e: e, left: e.Elements()} }

var errLengths = errors.New("the lengths of the strings are not readable")

// Write fails where the bytes of a string tensor make no sense.
func (c *Check) Write(b []byte) (int, error) {
	c.size += int64(len(b))
	if c.e.DType != String {
		c.crc = crc32.Update(c.crc, castagnoli, b)
		return len(b), nil
	}
	n := len(b)
	for len(b) > 0 && c.left > 0 {
		c.partial = append(c.partial, b[0])
		b = b[1:]
		if c.partial[len(c.partial)-1] >= 0x80 {
			if len(c.partial) >= binary.MaxVarintLen64 {
				return 0, errLengths
			}
			continue
		}
		length, k := binary.Uvarint(c.partial)
		if k <= 0 || length > uint64(c.e.Size) {
			return 0, errLengths
		}
		c.partial = c.partial[:0]
		c.bytes += int64(length)
		c.crc = updateLength(c.crc, length)
		c.left--
	}
	for len(b) > 0 && !c.sum {
		c.partial = append(c.partial, b[0])
		b = b[1:]
		if len(c.partial) == 4 {
			if unmask(binary.LittleEndian.Uint32(c.partial)) != c.crc {
				return 0, errors.New("the checksum of the strings' lengths does not fit")
			}
			c.crc = crc32.Update(c.crc, castagnoli, c.partial)
			c.sum = true
		}
	}
	c.crc = crc32.Update(c.crc, castagnoli, b)
	return n, nil
}

// updateLength takes a length in as TensorFlow does: in 4 bytes if it fits.
func updateLength(crc uint32, length uint64) uint32 {
	if length <= 1<<32-1 {
		return crc32.Update(crc, castagnoli, binary.LittleEndian.AppendUint32(nil, uint32(length)))
	}
	return crc32.Update(crc, castagnoli, binary.LittleEndian.AppendUint64(nil, length))
}

// End tells whether the bytes are those that the index means.
func (c *Check) End() error {
	if c.size != c.e.Size {
		return fmt.Errorf("%s has %d bytes instead of %d", c.e.label(), c.size, c.e.Size)
	}
	if c.e.DType == Variant { // made of parts with checksums of their own
		return nil
	}
	if c.crc != c.e.CRC32C {
		return fmt.Errorf("the checksum of %s is %08x, the index says %08x", c.e.label(), c.crc, c.e.CRC32C)
	}
	return nil
}

func (e *Entry) label() string {
	if e.Of != nil {
		return fmt.Sprintf("%q [%s]", e.Name, e.Of)
	}
	return fmt.Sprintf("%q", e.Name)
}
