package tfbundle

import (
	"encoding/binary"
	"fmt"
	"io"

	"holdfast/hdfsckpt/tensor"
)

// Opener opens the data file of a shard.
type Opener func(shard int) (io.ReaderAt, error)

// maxTensor bounds, in bytes, what is read into memory at once.
const maxTensor = 1 << 40

// readEntry reads an entry's bytes and checks them.
func readEntry(open Opener, e *Entry) ([]byte, error) {
	if e.Size > maxTensor {
		return nil, fmt.Errorf("%s: %d bytes are too many", e.label(), e.Size)
	}
	r, err := open(e.Shard)
	if err != nil {
		return nil, err
	}
	// A size that is a lie must not cost its memory: the last byte comes first.
	var b []byte
	if e.Size > 0 {
		if err := readFull(r, make([]byte, 1), e.Offset+e.Size-1); err != nil {
			return nil, fmt.Errorf("%s: %w", e.label(), err)
		}
		b = make([]byte, e.Size)
	}
	if err := readFull(r, b, e.Offset); err != nil {
		return nil, fmt.Errorf("%s: %w", e.label(), err)
	}
	c := NewCheck(e)
	if _, err := c.Write(b); err != nil {
		return nil, fmt.Errorf("%s: %w", e.label(), err)
	}
	return b, c.End()
}

// Read returns a tensor's elements as they lie in memory, row by row, little
// endian; those of a partitioned tensor put together. It is not for strings.
func (x *Index) Read(open Opener, e *Entry) ([]byte, error) {
	if x.Header.BigEndian {
		return nil, fmt.Errorf("%s: the checkpoint is big endian, which is not supported", e.label())
	}
	if !e.Partitioned() {
		return readEntry(open, e)
	}
	width := e.DType.Size()
	if width == 0 {
		return nil, fmt.Errorf("%s: a partitioned tensor of %s cannot be put together", e.label(), e.DType)
	}
	if total := e.Elements() * int64(width); total != x.Bytes(e) {
		return nil, fmt.Errorf("%s: its slices have %d bytes, it has %d", e.label(), x.Bytes(e), total)
	}
	parts := x.SlicesOf(e.Name)
	read := make([][]byte, len(parts))
	for i, part := range parts {
		var err error
		if read[i], err = readEntry(open, part); err != nil {
			return nil, err
		}
	}
	whole := make([]byte, x.Bytes(e)) // no more than was read
	for i, part := range parts {
		if err := place(whole, e.Shape, read[i], *part.Of, width); err != nil {
			return nil, fmt.Errorf("%s: %w", part.label(), err)
		}
	}
	return whole, nil
}

// place copies a slice's elements to where they belong in the whole tensor.
func place(whole []byte, shape []int64, part []byte, s Slice, width int) error {
	if len(s) != len(shape) {
		return fmt.Errorf("a slice of %d dimensions of a tensor of %d", len(s), len(shape))
	}
	start, lengths := s.bounds(shape)
	return tensor.Place(whole, shape, part, start, lengths, width)
}

// bounds returns where a slice of a tensor of that shape begins, and its lengths.
func (s Slice) bounds(shape []int64) (start, lengths []int64) {
	start, lengths = make([]int64, len(s)), make([]int64, len(s))
	for i, x := range s {
		start[i], lengths[i] = x.Start, x.Length
		if x.Length < 0 && i < len(shape) {
			lengths[i] = shape[i]
		}
	}
	return start, lengths
}

// Rows returns a reader of what Read returns, which does not hold it in memory; nil if the
// tensor is partitioned otherwise than by rows. It fails at the end of an entry whose checksum
// is wrong.
func (x *Index) Rows(open Opener, e *Entry) io.Reader {
	if x.Header.BigEndian || e.Partitioned() && e.DType.Size() == 0 {
		return nil // Read says why
	}
	if !e.Partitioned() {
		return &entryReader{open: open, e: e}
	}
	parts := x.SlicesOf(e.Name)
	var starts, lengths [][]int64
	for _, part := range parts {
		start, length := part.Of.bounds(e.Shape)
		starts, lengths = append(starts, start), append(lengths, length)
	}
	order, ok := tensor.Consecutive(e.Shape, starts, lengths)
	if !ok {
		return nil
	}
	all := make([]io.Reader, len(order))
	for i, n := range order {
		all[i] = &entryReader{open: open, e: parts[n]}
	}
	return io.MultiReader(all...)
}

// Parts returns a reader of what Read returns, but for the order of the elements of a
// partitioned tensor, and which does not hold them in memory.
func (x *Index) Parts(open Opener, e *Entry) io.Reader {
	if !e.Partitioned() || x.Header.BigEndian {
		return x.Rows(open, e)
	}
	var all []io.Reader
	for _, part := range x.SlicesOf(e.Name) {
		all = append(all, &entryReader{open: open, e: part})
	}
	return io.MultiReader(all...)
}

// entryReader reads an entry's bytes, and checks them at their end.
type entryReader struct {
	open  Opener
	e     *Entry
	in    io.Reader // nil before the first read
	check *Check
}

func (r *entryReader) Read(b []byte) (int, error) {
	if r.in == nil {
		file, err := r.open(r.e.Shard)
		if err != nil {
			return 0, err
		}
		r.in, r.check = io.NewSectionReader(file, r.e.Offset, r.e.Size), NewCheck(r.e)
	}
	n, err := r.in.Read(b)
	if _, wrong := r.check.Write(b[:n]); wrong != nil {
		return n, fmt.Errorf("%s: %w", r.e.label(), wrong)
	}
	if err == io.EOF {
		if wrong := r.check.End(); wrong != nil {
			err = wrong
		}
	}
	return n, err
}

// Strings reads the elements of a string tensor.
func (x *Index) Strings(open Opener, e *Entry) ([]string, error) {
	if e.DType != String || e.Partitioned() {
		return nil, fmt.Errorf("%s is no tensor of strings", e.label())
	}
	b, err := readEntry(open, e)
	if err != nil {
		return nil, err
	}
	lengths := []uint64{}
	for i := e.Elements(); i > 0; i-- {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, fmt.Errorf("%s: %w", e.label(), errLengths)
		}
		lengths, b = append(lengths, v), b[n:]
	}
	if len(b) < 4 {
		return nil, fmt.Errorf("%s: %w", e.label(), errLengths)
	}
	b = b[4:]
	list := make([]string, 0, len(lengths))
	for _, n := range lengths {
		if n > uint64(len(b)) {
			return nil, fmt.Errorf("%s: %w", e.label(), errLengths)
		}
		list, b = append(list, string(b[:n])), b[n:]
	}
	if len(b) != 0 {
		return nil, fmt.Errorf("%s: %d bytes too many", e.label(), len(b))
	}
	return list, nil
}
