package zarr

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"

	"github.com/klauspost/compress/zstd"
)

// Values returns what is stored of an array under a name, without the array's own; nil if there
// is nothing.
type Values func(name string) (*io.SectionReader, error)

// stored reads what is stored of an array. It is for one goroutine.
type stored struct {
	a      *Array
	values Values
	// indexes are those of the shards that were read last, by their names.
	indexes map[string][]byte
	in      *bufio.Reader
	decoder *zstd.Decoder
}

const (
	// blockSize is how much of a value is read at once, in bytes.
	blockSize = 256 << 10
	// mostWindow is how far back a compressed chunk may refer, in bytes: zstd's levels up to
	// 19 take 8 MiB. What is decompressed takes no more memory than some of these.
	mostWindow = 16 << 20
	// mostIndexes is how many indexes of shards are remembered.
	mostIndexes = 64
	indexEntry  = 16 // bytes
	absent      = 1<<64 - 1
)

// name returns the name of a chunk or shard.
func (a *Array) name(at []int64) string {
	if len(at) == 0 {
		return a.scalar
	}
	b := []byte(a.prefix)
	for i, n := range at {
		if i > 0 {
			b = append(b, a.separator...)
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return string(b)
}

// open begins to read a chunk; nil if it is not stored. What was opened before must not be read
// any more.
func (s *stored) open(at []int64) (io.Reader, error) {
	a := s.a
	outer, within, n := at, int64(0), int64(1)
	if a.sharded {
		outer = make([]int64, len(at))
		for i, x := range at {
			per := a.shard[i] / a.chunk[i]
			outer[i] = x / per
			within = within*per + x%per
			n *= per
		}
	}
	name := a.name(outer)
	value, err := s.values(name)
	if err != nil || value == nil {
		return nil, err
	}
	if a.sharded {
		if value, err = s.inShard(name, value, within, n); err != nil || value == nil {
			if err != nil {
				err = fmt.Errorf("its shard %s: %w", name, err)
			}
			return nil, err
		}
	}
	return s.decode(value)
}

// inShard finds a chunk of the n of a shard; nil if it is not stored.
func (s *stored) inShard(name string, shard *io.SectionReader, within, n int64) (*io.SectionReader, error) {
	index, ok := s.indexes[name]
	if !ok {
		var err error
		if index, err = s.index(shard, n); err != nil {
			return nil, err
		}
		if len(s.indexes) >= mostIndexes {
			clear(s.indexes)
		}
		s.indexes[name] = index
	}
	offset, length := binary.LittleEndian.Uint64(index[within*indexEntry:]), binary.LittleEndian.Uint64(index[within*indexEntry+8:])
	if offset == absent && length == absent {
		return nil, nil
	}
	if size := uint64(shard.Size()); offset > size || length > size-offset {
		return nil, fmt.Errorf("it has %d bytes, and a chunk of %d from %d on", size, length, offset)
	}
	return io.NewSectionReader(shard, int64(offset), int64(length)), nil
}

func (s *stored) index(shard *io.SectionReader, n int64) ([]byte, error) {
	sum := int64(0)
	if s.a.indexSummed {
		sum = crc32.Size
	}
	size := shard.Size()
	if n > (size-sum)/indexEntry {
		return nil, fmt.Errorf("it has %d bytes, too few for an index of %d chunks", size, n)
	}
	index := make([]byte, n*indexEntry+sum)
	at := size - int64(len(index))
	if s.a.indexAtStart {
		at = 0
	}
	if got, err := shard.ReadAt(index, at); got < len(index) {
		return nil, noEOF(err)
	}
	content := index[:n*indexEntry]
	if s.a.indexSummed && crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli)) != binary.LittleEndian.Uint32(index[len(content):]) {
		return nil, errors.New("the checksum of its index is wrong")
	}
	return content, nil
}

func (s *stored) decode(value *io.SectionReader) (io.Reader, error) {
	s.in.Reset(value)
	if !s.a.compressed {
		return s.in, nil
	}
	if s.decoder == nil {
		var err error
		// With a concurrency of 1 it has no goroutines that would have to be ended.
		s.decoder, err = zstd.NewReader(s.in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(mostWindow))
		return s.decoder, err
	}
	return s.decoder, s.decoder.Reset(s.in)
}

// noEOF is the error of what became shorter while it was read.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// repeated reads an element again and again.
type repeated struct {
	element []byte
	zero    bool
	at      int
}

func repeat(element []byte) *repeated {
	return &repeated{element: element, zero: bytes.Count(element, []byte{0}) == len(element)}
}

func (r *repeated) Read(b []byte) (int, error) {
	if r.zero {
		clear(b)
		return len(b), nil
	}
	for i := range b {
		b[i] = r.element[r.at]
		r.at = (r.at + 1) % len(r.element)
	}
	return len(b), nil
}
