package hdf5

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"syscall"

	"holdfast/hdfsckpt/tensor"
)

// chunking is how the elements of a dataset are cut into chunks (III.A.1, IV.A.2.l).
type chunking struct {
	tree    uint64  // address of the B-tree
	shape   []int64 // of a chunk
	width   int64   // bytes of an element
	size    int64   // bytes of a chunk
	filters []uint64
}

// chunk is one of them in the file.
type chunk struct {
	at, size uint64
	skipped  uint64 // filters, bit by bit
	start    []int64
}

const (
	filterGzip    = 1
	filterShuffle = 2
)

// prepare checks what the header says of the chunks.
func (c *chunking) prepare(d *Dataset, all []message, width int64) error {
	axes := len(d.Shape)
	if len(c.shape) != axes+1 || c.shape[axes] != width {
		return fmt.Errorf("its chunks are of another shape, or of another type")
	}
	c.shape, c.width = c.shape[:axes], width
	n, ok := tensor.Elements(c.shape)
	if !ok || n == 0 || n > 1<<32/width { // chunks have less than 4 GiB
		return fmt.Errorf("its chunks have the shape %d", c.shape)
	}
	c.size = n * width
	if c.tree == undefined && d.Size > 0 {
		return unsupported("its elements were never written")
	}
	m := find(all, msgFilters)
	if m == nil {
		return nil
	}
	s := fields{b: m.data}
	version, filters := s.uint(1), s.uint(1)
	if version == 1 {
		s.bytes(6)
	}
	for range filters {
		id, name := s.uint(2), uint64(0)
		if version == 1 || id >= 256 {
			name = s.uint(2)
		}
		s.uint(2)
		values := s.uint(2)
		if version == 1 {
			name, values = padded(name), values+values%2
		}
		s.bytes(name)
		s.bytes(4 * values)
		if id != filterGzip && id != filterShuffle {
			return unsupported("its elements are compressed or coded by the filter %d", id)
		}
		c.filters = append(c.filters, id)
	}
	if s.short || version < 1 || version > 2 {
		return fmt.Errorf("what it says of its filters is cut off, or of an unknown version")
	}
	return nil
}

// list finds the chunks.
func (c *chunking) list(d *Dataset) ([]chunk, error) {
	f := &file{r: d.f.r, size: d.f.size} // reading counts anew
	var all []chunk
	if err := c.below(f, c.tree, -1, &all); err != nil {
		return nil, err
	}
	need := int64(1)
	for i, n := range d.Shape {
		need *= (n + c.shape[i] - 1) / c.shape[i] // no more than there are elements
	}
	if int64(len(all)) != need {
		return nil, unsupported("of its %d chunks %d were written", need, len(all))
	}
	seen := map[string]bool{}
	for _, x := range all {
		at := fmt.Sprint(x.start)
		for i, from := range x.start {
			if from < 0 || from >= d.Shape[i] || from%c.shape[i] != 0 || seen[at] {
				return nil, fmt.Errorf("it has a chunk at %d, which cannot be", x.start)
			}
		}
		seen[at] = true
	}
	return all, nil
}

// below finds the chunks below a node of the B-tree.
func (c *chunking) below(f *file, at uint64, level int, all *[]chunk) error {
	begin, level, children, err := f.tree(at, 1, level)
	if err != nil {
		return err
	}
	key := uint64(8 + 8*(len(c.shape)+1))
	b, err := f.read("a node of a B-tree", begin, children*(key+addressSize))
	if err != nil {
		return err
	}
	s := fields{b: b}
	for range children {
		x := chunk{size: s.uint(4), skipped: s.uint(4), start: make([]int64, len(c.shape))}
		for i := range x.start {
			x.start[i] = int64(s.uint(8))
		}
		s.uint(8)
		x.at = s.address()
		if level > 0 {
			if err := c.below(f, x.at, level-1, all); err != nil {
				return err
			}
			continue
		}
		*all = append(*all, x)
	}
	return nil
}

// elements reads a chunk, without what is beyond the dataset's edge, and returns it with its
// shape.
func (c *chunking) elements(d *Dataset, x chunk) ([]byte, []int64, error) {
	f := &file{r: d.f.r, size: d.f.size}
	b, err := f.read("a chunk", x.at, x.size)
	if err != nil {
		return nil, nil, err
	}
	for i := len(c.filters) - 1; i >= 0; i-- {
		if x.skipped&(1<<i) != 0 {
			continue
		}
		switch c.filters[i] {
		case filterGzip:
			if b, err = inflate(b, c.size); err != nil {
				return nil, nil, fmt.Errorf("the chunk at byte %d: %w", x.at, err)
			}
		case filterShuffle:
			b = unshuffle(b, int(c.width))
		}
	}
	if int64(len(b)) != c.size {
		return nil, nil, fmt.Errorf("the chunk at byte %d has %d bytes instead of %d", x.at, len(b), c.size)
	}
	inside, strides, step := make([]int64, len(c.shape)), make([]int64, len(c.shape)), int64(1)
	for i := len(c.shape) - 1; i >= 0; i-- {
		inside[i] = min(c.shape[i], d.Shape[i]-x.start[i])
		strides[i] = step
		step *= c.shape[i]
	}
	b, err = tensor.Gather(b, 0, inside, strides, int(c.width))
	if err == nil && d.swapped {
		reverse(b, int(c.width))
	}
	return b, inside, err
}

func inflate(b []byte, limit int64) ([]byte, error) {
	z, err := zlib.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(z, limit+1))
}

// unshuffle puts the bytes of elements together: the filter writes the first byte of all, then
// the second, and so on. What is left at the end it leaves as it is.
func unshuffle(b []byte, width int) []byte {
	n := len(b) / width
	out := make([]byte, len(b))
	for i := range n {
		for j := range width {
			out[i*width+j] = b[j*n+i]
		}
	}
	copy(out[n*width:], b[n*width:])
	return out
}

// whole puts all elements together.
func (c *chunking) whole(d *Dataset) ([]byte, error) {
	all, err := c.list(d)
	if err != nil {
		return nil, err
	}
	whole := make([]byte, d.Size)
	for _, x := range all {
		b, shape, err := c.elements(d, x)
		if err == nil {
			err = tensor.Place(whole, d.Shape, b, x.start, shape, int(c.width))
		}
		if err != nil {
			return nil, err
		}
	}
	return whole, nil
}

// reader reads chunk by chunk.
func (c *chunking) reader(d *Dataset, limit int64) (io.Reader, error) {
	if c.size > limit {
		return nil, fmt.Errorf("%s: one of its chunks takes %d bytes of memory, more than the %d that are allowed here: %w", d.Name, c.size, limit, syscall.EFBIG)
	}
	all, err := c.list(d)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Name, err)
	}
	return &chunkReader{d: d, left: all}, nil
}

type chunkReader struct {
	d    *Dataset
	left []chunk
	b    []byte
}

func (r *chunkReader) Read(b []byte) (int, error) {
	for len(r.b) == 0 {
		if len(r.left) == 0 {
			return 0, io.EOF
		}
		var err error
		if r.b, _, err = r.d.chunking.elements(r.d, r.left[0]); err != nil {
			return 0, fmt.Errorf("%s: %w", r.d.Name, err)
		}
		r.left = r.left[1:]
	}
	n := copy(b, r.b)
	r.b = r.b[n:]
	return n, nil
}
