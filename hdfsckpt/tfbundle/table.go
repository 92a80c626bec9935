package tfbundle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"holdfast/hdfsckpt/limit"
)

const (
	footerSize   = 48
	trailerSize  = 5 // compression, CRC32C
	magic        = 0xdb4775248b80fb57
	maxBlockSize = 256 << 20 // TensorFlow's are 256 KiB and one entry
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maskDelta and the rotation are of LevelDB's crc32c.h: checksums are stored
// beside data that they are computed over again.
const maskDelta = 0xa282ead8

func unmask(masked uint32) uint32 {
	rot := masked - maskDelta
	return rot>>17 | rot<<15
}

// handle is the place of a block.
type handle struct{ offset, size uint64 }

func readHandle(b []byte) (handle, []byte, error) {
	offset, n := binary.Uvarint(b)
	if n <= 0 {
		return handle{}, nil, errors.New("the place of a block is not readable")
	}
	size, m := binary.Uvarint(b[n:])
	if m <= 0 {
		return handle{}, nil, errors.New("the length of a block is not readable")
	}
	return handle{offset, size}, b[n+m:], nil
}

// readTable calls entry for all entries of a table, in order. The block that names the others is
// held all the while.
func readTable(r io.ReaderAt, size int64, account *limit.Account, entry func(key, value []byte) error) error {
	if size < footerSize {
		return fmt.Errorf("it is %d bytes long, shorter than any index", size)
	}
	footer := make([]byte, footerSize)
	if err := readFull(r, footer, size-footerSize); err != nil {
		return err
	}
	if binary.LittleEndian.Uint64(footer[footerSize-8:]) != magic {
		return errors.New("it does not end as an index does: cut off, or no index")
	}
	meta, rest, err := readHandle(footer)
	if err != nil {
		return err
	}
	top, rest, err := readHandle(rest)
	if err != nil {
		return err
	}
	if len(bytes.Trim(rest[:max(0, len(rest)-8)], "\x00")) > 0 {
		return errors.New("its footer is not padded by zeros")
	}
	if _, err := readBlock(r, size, meta); err != nil { // TensorFlow keeps nothing there
		return fmt.Errorf("meta index block: %w", err)
	}
	if err := account.Spend(2 * int64(min(top.size, uint64(size)))); err != nil { // one block, and this
		return err
	}
	index, err := readBlock(r, size, top)
	if err != nil {
		return fmt.Errorf("index block: %w", err)
	}
	end := uint64(0) // of the block before: one that is named twice would count twice
	return eachEntry(index, func(_, value []byte) error {
		h, _, err := readHandle(value)
		if err != nil {
			return err
		}
		if h.offset < end {
			return fmt.Errorf("the block at %d begins before the one before it ends", h.offset)
		}
		end = h.offset + min(h.size, maxBlockSize) + trailerSize
		block, err := readBlock(r, size, h)
		if err != nil {
			return fmt.Errorf("block at %d: %w", h.offset, err)
		}
		return eachEntry(block, entry)
	})
}

func readBlock(r io.ReaderAt, size int64, h handle) ([]byte, error) {
	if h.size > maxBlockSize || h.offset > uint64(size) || h.offset+h.size+trailerSize > uint64(size) {
		return nil, fmt.Errorf("%d bytes at %d are not within the file's %d", h.size, h.offset, size)
	}
	b := make([]byte, h.size+trailerSize)
	if err := readFull(r, b, int64(h.offset)); err != nil {
		return nil, err
	}
	body := b[:h.size+1]
	if want := unmask(binary.LittleEndian.Uint32(b[h.size+1:])); crc32.Checksum(body, castagnoli) != want {
		return nil, fmt.Errorf("its checksum is %08x, not %08x", crc32.Checksum(body, castagnoli), want)
	}
	if body[h.size] != 0 {
		return nil, fmt.Errorf("it is compressed (type %d), which TensorFlow does not do", body[h.size])
	}
	return body[:h.size], nil
}

// eachEntry goes through a block.
func eachEntry(b []byte, entry func(key, value []byte) error) error {
	if len(b) < 4 {
		return errors.New("a block is too short")
	}
	restarts := uint64(binary.LittleEndian.Uint32(b[len(b)-4:]))
	if 4*restarts+4 > uint64(len(b)) {
		return fmt.Errorf("a block of %d bytes has %d restart points", len(b), restarts)
	}
	b = b[:uint64(len(b))-4-4*restarts]
	var key []byte
	for len(b) > 0 {
		var lengths [3]uint64 // shared, rest of the key, value
		for i := range lengths {
			v, n := binary.Uvarint(b)
			if n <= 0 {
				return errors.New("an entry is not readable")
			}
			lengths[i], b = v, b[n:]
		}
		shared, rest, value := lengths[0], lengths[1], lengths[2]
		if shared > uint64(len(key)) || rest > uint64(len(b)) || value > uint64(len(b))-rest {
			return errors.New("an entry is longer than its block")
		}
		key = append(key[:shared:shared], b[:rest]...)
		if err := entry(key, b[rest:rest+value]); err != nil {
			return err
		}
		b = b[rest+value:]
	}
	return nil
}

func readFull(r io.ReaderAt, b []byte, off int64) error {
	n, err := r.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}
