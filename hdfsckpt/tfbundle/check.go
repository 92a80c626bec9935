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

	// Of a string or variant tensor.
	left    int64  // lengths still to come; of variants, elements
	partial []byte // of a length, or of the checksum of the lengths
	sum     bool   // that checksum has come
	bytes   int64  // of the elements; of variants, still to come of this one
	inside  bool   // a variant's length has come
}

// NewCheck begins to check an entry, which must have bytes of its own.
func NewCheck(e *Entry) *Check { return &Check{e: e, left: e.Elements()} }

var errLengths = errors.New("the lengths of the strings are not readable")

// Write fails where the bytes of a string tensor make no sense.
func (c *Check) Write(b []byte) (int, error) {
	c.size += int64(len(b))
	if c.e.DType == Variant {
		return len(b), c.variants(b)
	}
	if c.e.DType != String {
		c.crc = crc32.Update(c.crc, castagnoli, b)
		return len(b), nil
	}
	n := len(b)
	for len(b) > 0 && c.left > 0 {
		length, done, err := c.length(b[0])
		b = b[1:]
		if err != nil {
			return 0, err
		}
		if !done {
			continue
		}
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

// length takes one byte of a varint.
func (c *Check) length(b byte) (length uint64, done bool, err error) {
	c.partial = append(c.partial, b)
	if b >= 0x80 {
		if len(c.partial) >= binary.MaxVarintLen64 {
			return 0, false, errLengths
		}
		return 0, false, nil
	}
	length, k := binary.Uvarint(c.partial)
	if k <= 0 || length > uint64(c.e.Size) {
		return 0, false, errLengths
	}
	c.partial = c.partial[:0]
	return length, true, nil
}

// variants takes elements in, each a varint length, so many bytes, and the
// masked checksum of all up to there. Lengths count as 8 bytes.
func (c *Check) variants(b []byte) error {
	for len(b) > 0 {
		switch {
		case c.left == 0:
			return errors.New("there are bytes after its last element")
		case !c.inside:
			length, done, err := c.length(b[0])
			if err != nil {
				return err
			}
			b = b[1:]
			if done {
				c.inside, c.bytes = true, int64(length)
				c.crc = crc32.Update(c.crc, castagnoli, binary.LittleEndian.AppendUint64(nil, length))
			}
		case c.bytes > 0:
			n := min(c.bytes, int64(len(b)))
			c.crc = crc32.Update(c.crc, castagnoli, b[:n])
			b, c.bytes = b[n:], c.bytes-n
		default:
			c.partial = append(c.partial, b[0])
			b = b[1:]
			if len(c.partial) < 4 {
				continue
			}
			if unmask(binary.LittleEndian.Uint32(c.partial)) != c.crc {
				return fmt.Errorf("the checksum of its element %d does not fit", c.e.Elements()-c.left)
			}
			c.crc = crc32.Update(c.crc, castagnoli, c.partial)
			c.partial, c.inside = c.partial[:0], false
			c.left--
		}
	}
	return nil
}

// updateLength takes a length in as TensorFlow does: in 4 bytes if it fits.
func updateLength(crc uint32, length uint64) uint32 {
	if length <= 1<<32-1 {
		return crc32.Update(crc, castagnoli, binary.LittleEndian.AppendUint32(nil, uint32(length)))
	}
	return crc32.Update(crc, castagnoli, binary.LittleEndian.AppendUint64(nil, length))
}

// End reports whether the bytes are those that the index means.
func (c *Check) End() error {
	if c.size != c.e.Size {
		return fmt.Errorf("%s has %d bytes instead of %d", c.e.label(), c.size, c.e.Size)
	}
	if c.left > 0 && c.e.DType == Variant {
		return fmt.Errorf("%s ends before its last %d elements", c.e.label(), c.left)
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
