package hdf5

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sort"
)

// denseLinks adds to links those of a group whose links are in a fractal heap, with an index by
// name; none if they are not (IV.A.2.c).
func (f *file) denseLinks(links []named, info []byte) ([]named, error) {
	s := fields{b: info}
	version, flags := s.uint(1), s.uint(1)
	if flags&1 != 0 {
		s.uint(8)
	}
	heapAt, indexAt := s.address(), s.address()
	switch {
	case s.short:
		return nil, errors.New("what it says of its links is cut off")
	case version != 0:
		return nil, unsupported("what it says of its links has the version %d", version)
	case heapAt == undefined || indexAt == undefined:
		return links, nil
	}
	h, err := f.fractalHeap(heapAt)
	if err != nil {
		return nil, err
	}
	const (
		hash   = 4
		byName = 5 // type of the B-tree
	)
	err = f.records(indexAt, byName, func(record []byte) error {
		if len(record) <= hash {
			return fmt.Errorf("its index has records of %d bytes", len(record))
		}
		b, err := f.heapObject(h, record[hash:])
		if err == nil {
			links, err = follow(links, b)
		}
		return err
	})
	return links, err
}

// heap is a fractal heap (III.G): objects in blocks, whose sizes double from row to row.
type heap struct {
	width, start, maxDirect uint64 // blocks in a row; bytes of the first and the largest block
	offsetBytes             int    // of an offset in the heap
	blocks                  []heapBlock
}

// heapBlock is a block with objects.
type heapBlock struct {
	from, size uint64 // in the heap
	at         uint64 // in the file
}

// mostDepth is how deep blocks of blocks may be: each has at most half of the bits of the one
// above it.
const mostDepth = 8

func (f *file) fractalHeap(at uint64) (*heap, error) {
	const size = 146
	s, err := f.structure("fractal heap", "FRHP", at, size)
	if err != nil {
		return nil, err
	}
	version := s.uint(1)
	s.uint(2)
	filters := s.uint(2)
	s.bytes(1 + 4 + 12*8)
	h := &heap{width: s.uint(2), start: s.uint(8), maxDirect: s.uint(8)}
	maxBits := s.uint(2)
	s.uint(2)
	root, rows := s.address(), s.uint(2)
	switch {
	case version != 0:
		return nil, unsupported("a fractal heap has the version %d", version)
	case filters != 0:
		return nil, unsupported("a fractal heap is compressed")
	case bits.OnesCount64(h.width) != 1 || bits.OnesCount64(h.start) != 1 || bits.OnesCount64(h.maxDirect) != 1 || h.maxDirect < h.start || maxBits == 0 || maxBits > 64 || h.start > f.size:
		return nil, fmt.Errorf("the fractal heap at byte %d has blocks of impossible sizes", at)
	}
	h.offsetBytes = int(maxBits+7) / 8
	switch {
	case root == undefined: // nothing is in it
	case rows == 0:
		h.blocks = []heapBlock{{0, h.start, root}}
	default:
		err = f.heapRows(h, root, 0, rows, mostDepth)
	}
	slices.SortStableFunc(h.blocks, func(a, b heapBlock) int { return cmp.Compare(a.from, b.from) })
	return h, err
}

// heapRows finds the blocks below a block of blocks, which begins at from in the heap and has
// that many rows.
func (f *file) heapRows(h *heap, at, from, rows uint64, depth int) error {
	if depth == 0 || rows > 64 {
		return errors.New("the fractal heap has more blocks in each other than can be")
	}
	head := uint64(4 + 1 + addressSize + h.offsetBytes)
	s, err := f.structure("block of a fractal heap", "FHIB", at, head+rows*h.width*addressSize)
	if err != nil {
		return err
	}
	s.bytes(head - 4)
	first := uint64(bits.TrailingZeros64(h.start))
	for row := range rows {
		shift := first // of the size of a block in this row
		if row > 0 {
			shift += row - 1
		}
		if shift > 62 {
			return errors.New("the fractal heap has blocks of impossible sizes")
		}
		size := uint64(1) << shift
		for range h.width {
			child := s.address()
			switch {
			case child == undefined:
			case size <= h.maxDirect:
				h.blocks = append(h.blocks, heapBlock{from, size, child})
			default:
				below := shift - first - uint64(bits.TrailingZeros64(h.width)) + 1
				if err := f.heapRows(h, child, from, below, depth-1); err != nil {
					return err
				}
			}
			from += size
		}
	}
	return nil
}

// heapObject reads an object by its identifier.
func (f *file) heapObject(h *heap, id []byte) ([]byte, error) {
	s := fields{b: id}
	if kind := s.uint(1); kind != 0 {
		return nil, unsupported("an object of a fractal heap is kept in a way that is not read: %#x", kind)
	}
	offset := s.uint(h.offsetBytes)
	if len(s.b) > 8 {
		return nil, unsupported("an object of a fractal heap has an identifier of %d bytes", len(id))
	}
	length := s.uint(len(s.b))
	i := sort.Search(len(h.blocks), func(i int) bool { return h.blocks[i].from > offset }) - 1
	if i < 0 || s.short || offset-h.blocks[i].from > h.blocks[i].size || length > h.blocks[i].size-(offset-h.blocks[i].from) {
		return nil, errors.New("an object of a fractal heap is in none of its blocks")
	}
	return f.read("an object of a fractal heap", h.blocks[i].at+offset-h.blocks[i].from, length)
}

// tree2 is a B-tree of version 2 (III.A.2).
type tree2 struct {
	kind, node, record uint64
	each               func(record []byte) error
	// most has, by level, how many records a node has at most, and all has those below it
	// with its own.
	most, all []uint64
}

// records calls each for the records of a B-tree, in no order.
func (f *file) records(at, kind uint64, each func(record []byte) error) error {
	s, err := f.structure("B-tree", "BTHD", at, 38)
	if err != nil {
		return err
	}
	version := s.uint(1)
	t := &tree2{kind: s.uint(1), node: s.uint(4), record: s.uint(2), each: each}
	depth := s.uint(2)
	s.uint(2)
	root, n := s.address(), s.uint(2)
	const around = 4 + 1 + 1 + 4
	switch {
	case version != 0:
		return unsupported("a B-tree has the version %d", version)
	case t.kind != kind || t.record == 0 || t.node < around+t.record || t.node > f.size || depth > 32:
		return fmt.Errorf("the B-tree at byte %d is not what it should be", at)
	case root == undefined || n == 0:
		return nil
	}
	for level := range depth + 1 {
		pointer := uint64(0)
		if level > 0 {
			pointer = addressSize + uint64(t.countBytes(level-1)+t.allBytes(level-1))
		}
		if t.node < around+pointer {
			return fmt.Errorf("the nodes of the B-tree at byte %d are too small", at)
		}
		most := (t.node - around - pointer) / (t.record + pointer)
		all := most
		if level > 0 {
			over, below := bits.Mul64(most+1, t.all[level-1])
			all = below + most
			if over != 0 || all < below {
				return fmt.Errorf("the B-tree at byte %d is too deep", at)
			}
		}
		t.most, t.all = append(t.most, most), append(t.all, all)
	}
	return f.node2(t, root, n, depth)
}

// countBytes is how many bytes a number of records in a node of a level has, and allBytes how
// many that of all below it, too, has.
func (t *tree2) countBytes(level uint64) int { return (bits.Len64(t.most[level]) + 7) / 8 }

func (t *tree2) allBytes(level uint64) int {
	if level == 0 {
		return 0
	}
	return (bits.Len64(t.all[level]) + 7) / 8
}

// node2 does so for a node with n records, and those below it.
func (f *file) node2(t *tree2, at, n, level uint64) error {
	signature := "BTLF"
	if level > 0 {
		signature = "BTIN"
	}
	if n > t.most[level] {
		return fmt.Errorf("a node of a B-tree has %d records, more than are possible", n)
	}
	s, err := f.structure("node of a B-tree", signature, at, t.node)
	if err != nil {
		return err
	}
	version, kind := s.uint(1), s.uint(1)
	if version != 0 || kind != t.kind {
		return fmt.Errorf("at byte %d there is a node of another B-tree", at)
	}
	for range n {
		if err := t.each(s.bytes(t.record)); err != nil {
			return err
		}
	}
	if level == 0 {
		return nil
	}
	for range n + 1 {
		child, count := s.address(), s.uint(t.countBytes(level-1))
		s.bytes(uint64(t.allBytes(level - 1)))
		if err := f.node2(t, child, count, level-1); err != nil {
			return err
		}
	}
	return nil
}
