package zarr

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"syscall"

	"holdfast/hdfsckpt/tensor"
)

// bandAxis returns the dimension along which a band of chunks is cut: of all before it a band has
// one row, of it as many as a chunk, and all of those after it. One band after the other is the
// array row by row.
func (a *Array) bandAxis() int {
	for i, d := range a.chunk {
		if d > 1 {
			return i
		}
	}
	return max(0, len(a.chunk)-1)
}

// Held returns how many bytes of memory Rows takes, buffers aside: 0 where each band is one
// chunk, which is read as it comes.
func (a *Array) Held() int64 {
	axis, band, chunks := a.bandAxis(), int64(a.Kind.Size()), int64(1)
	for i := axis; i < len(a.Shape); i++ {
		if i == axis {
			band *= min(a.chunk[i], a.Shape[i])
			continue
		}
		band *= a.Shape[i]
		chunks *= ceil(a.Shape[i], a.chunk[i])
	}
	if chunks <= 1 {
		return 0
	}
	return 2 * band // and the chunks that it is put together of, one after the other
}

// mostHeld is how much memory Rows takes at most, in bytes, whatever a shape says.
const mostHeld = 16 << 30

// Rows returns a reader of the elements row by row, little endian. EFBIG if it would take more
// than limit bytes of memory (Held).
func (a *Array) Rows(values Values, limit int64) (io.Reader, error) {
	if limit = min(limit, mostHeld); a.Held() > limit {
		return nil, fmt.Errorf("chunks that lie beside each other take %d bytes of memory, more than the %d that are allowed here: %w", a.Held(), limit, syscall.EFBIG)
	}
	return a.reader(values, a.bandAxis())
}

// Parts returns a reader of the elements in the order of chunks. It holds none of them in memory.
func (a *Array) Parts(values Values) (io.Reader, error) { return a.reader(values, len(a.Shape)-1) }

const (
	// mostUnstored is how much Read makes of a fill value, in bytes.
	mostUnstored = 1 << 30
	// lookupCost is what a chunk that is not stored counts at least, in bytes: it takes time.
	lookupCost = 1 << 10
)

// Read returns what Rows returns, whatever memory that takes. The elements of chunks that are not
// stored may be a GiB at most: EFBIG.
func (a *Array) Read(values Values) ([]byte, error) {
	unstored := int64(0)
	counting := func(name string) (*io.SectionReader, error) {
		v, err := values(name)
		if err == nil && v == nil {
			n, _ := tensor.Elements(a.shard)
			if unstored += max(n*int64(a.Kind.Size()), lookupCost); unstored > mostUnstored {
				err = fmt.Errorf("chunks that are not stored have more than %d bytes: %w", int64(mostUnstored), syscall.EFBIG)
			}
		}
		return v, err
	}
	r, err := a.Rows(counting, mostHeld)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

func (a *Array) reader(values Values, axis int) (io.Reader, error) {
	if a.unread != "" {
		return nil, fmt.Errorf("its elements cannot be read: %s: %w", a.unread, syscall.ENOTSUP)
	}
	return &bands{a: a, axis: max(0, axis), grid: counts(a.Shape, a.chunk), in: stored{a: a, values: values, indexes: map[string][]byte{}, in: bufio.NewReaderSize(nil, blockSize)}}, nil
}

// bands reads one band after the other.
type bands struct {
	a    *Array
	axis int
	grid []int64 // how many chunks there are along each dimension
	in   stored
	at   []int64   // of the band, as far as axis; nil before the first
	now  io.Reader // nil between two
}

func (b *bands) Read(to []byte) (int, error) {
	for {
		if b.now == nil {
			if !b.next() {
				return 0, io.EOF
			}
			var err error
			if b.now, err = b.band(); err != nil {
				return 0, err
			}
		}
		n, err := b.now.Read(to)
		if err == io.EOF {
			b.now, err = nil, nil
		}
		if n > 0 || err != nil || len(to) == 0 {
			return n, err
		}
	}
}

// next goes on to the next band; false if there is none.
func (b *bands) next() bool {
	if b.at == nil {
		b.at = make([]int64, min(b.axis+1, len(b.a.Shape)))
		return b.a.elements > 0
	}
	return advance(b.at, b.grid)
}

// band reads a band, which is put together in memory if it is of several chunks.
func (b *bands) band() (io.Reader, error) {
	a, fixed := b.a, len(b.at) // dimensions in which it has one place
	at := make([]int64, len(a.Shape))
	copy(at, b.at)
	if !slices.ContainsFunc(b.grid[fixed:], func(n int64) bool { return n != 1 }) {
		return b.chunk(at)
	}
	shape := a.within(at)
	copy(shape[fixed:], a.Shape[fixed:])
	n, _ := tensor.Elements(shape)
	band := make([]byte, n*int64(a.Kind.Size()))
	start := make([]int64, len(at))
	for {
		r, err := b.chunk(at)
		if err != nil {
			return nil, err
		}
		part, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		for i := fixed; i < len(at); i++ {
			start[i] = at[i] * a.chunk[i]
		}
		if err := tensor.Place(band, shape, part, start, a.within(at), a.Kind.Size()); err != nil {
			return nil, err
		}
		if !advance(at[fixed:], b.grid[fixed:]) {
			return bytes.NewReader(band), nil
		}
	}
}

// within returns the shape of what a chunk has of the array.
func (a *Array) within(at []int64) []int64 {
	shape := make([]int64, len(at))
	for i, n := range at {
		shape[i] = min(a.chunk[i], a.Shape[i]-n*a.chunk[i])
	}
	return shape
}

// chunk reads what a chunk has of the array.
func (b *bands) chunk(at []int64) (io.Reader, error) {
	a, shape := b.a, b.a.within(at)
	n, _ := tensor.Elements(shape)
	size := n * int64(a.Kind.Size())
	r, err := b.in.open(at)
	switch {
	case err != nil:
		return nil, fmt.Errorf("its chunk %d: %w", at, err)
	case r != nil:
		return cut(r, a.chunk, shape, a.Kind.Size(), at), nil
	case a.noFill != "":
		return nil, fmt.Errorf("its chunk %d is not stored, and %s", at, a.noFill)
	}
	return io.LimitReader(repeat(a.fill), size), nil
}

// cutting reads of a chunk what is within the array.
type cutting struct {
	in        io.Reader
	at        []int64 // of the chunk, for a person
	rows      []int64 // lengths of the dimensions before a run
	row       []int64 // where the run is among them
	run       int64   // bytes, one after the other, that are within
	left      int64   // of this run
	behind    []int64 // bytes to leave out behind the last row of each dimension; of a run the last
	exhausted bool
	exact     bool // the chunk ends with what is within
}

// cut returns a reader of the part of a chunk that begins with it and has the lengths of shape.
func cut(in io.Reader, chunk, shape []int64, width int, at []int64) io.Reader {
	c := &cutting{in: in, at: at, run: int64(width), exact: true}
	axis := -1 // the last dimension that is cut
	for i := range shape {
		if shape[i] != chunk[i] {
			axis = i
		}
	}
	step := int64(width)
	for i := len(shape) - 1; i > axis; i-- {
		c.run *= shape[i]
		step *= chunk[i]
	}
	if axis >= 0 {
		c.exact = false
		c.run *= shape[axis]
		c.rows, c.row = shape[:axis], make([]int64, axis)
		c.behind = make([]int64, axis+1)
		for i := axis; i >= 0; i-- {
			c.behind[i] = (chunk[i] - shape[i]) * step
			step *= chunk[i]
		}
	}
	c.left = c.run
	return c
}

func (c *cutting) Read(to []byte) (int, error) {
	if c.left == 0 && !c.exhausted {
		if err := c.next(); err != nil {
			return 0, c.wrong(err)
		}
	}
	if c.exhausted {
		return 0, io.EOF
	}
	n, err := c.in.Read(to[:min(int64(len(to)), c.left)])
	c.left -= int64(n)
	if err == io.EOF && c.left == 0 {
		err = nil
	}
	if err != nil {
		return n, c.wrong(err)
	}
	return n, nil
}

func (c *cutting) wrong(err error) error { return fmt.Errorf("its chunk %d: %w", c.at, noEOF(err)) }

// next goes on to the next run.
func (c *cutting) next() error {
	skip := int64(0)
	if !c.exact {
		skip = c.behind[len(c.row)]
	}
	i := len(c.row) - 1
	for ; i >= 0; i-- {
		if c.row[i]++; c.row[i] < c.rows[i] {
			break
		}
		c.row[i] = 0
		skip += c.behind[i]
	}
	if i < 0 {
		c.exhausted = true
		if !c.exact {
			return nil // what is behind means nothing
		}
		var one [1]byte
		switch n, err := io.ReadFull(c.in, one[:]); {
		case n > 0:
			return fmt.Errorf("it has more bytes than its shape says: %w", syscall.EIO)
		case err != io.EOF:
			return err
		}
		return nil
	}
	c.left = c.run
	_, err := io.CopyN(io.Discard, c.in, skip)
	return err
}
