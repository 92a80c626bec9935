package hdf5

import (
	"bytes"
	"fmt"
	"io"

	"holdfast/hdfsckpt/tensor"
)

// Dataset is a dataset of a file. Its methods may be called by many goroutines.
type Dataset struct {
	Name  string      // with those of its groups: layers/dense/vars/0
	Kind  tensor.Kind // of its elements. One without a size is only a name
	Shape []int64     // without dimensions if there is one element; [0] if there is no dataspace
	Size  int64       // of all elements, in bytes
	// Err is why the elements cannot be read; nil if they can, as far as was looked at.
	Err error

	f        *file
	swapped  bool
	at       uint64 // of the elements, if they are in one piece
	compact  []byte // the elements, if they are in the header
	chunking *chunking
}

// Datasets finds the datasets of a file of that size. It reads none of their elements. admit,
// if it is not nil, is told how many bytes are read and held so far, before they are; what it
// returns ends the search.
func Datasets(r io.ReaderAt, size int64, admit func(bytes int64) error) ([]*Dataset, error) {
	f := &file{r: r, size: uint64(max(size, 0)), admit: admit, seen: map[uint64]bool{}, heaps: map[uint64][]byte{}}
	head, err := f.read("the beginning", 0, min(f.size, SuperblockSize))
	if err != nil {
		return nil, err
	}
	s, err := readSuperblock(head)
	if err != nil {
		return nil, err
	}
	if head[8] < 2 && head[14] != addressSize || head[8] >= 2 && head[10] != addressSize {
		return nil, unsupported("its lengths do not have %d bytes", addressSize)
	}
	if err := f.walk("", s.root); err != nil {
		return nil, err
	}
	clear(f.heaps)
	return f.found, nil
}

// parseDataspace returns a shape (IV.A.2.b).
func parseDataspace(s *fields) ([]int64, error) {
	const mostAxes = 32 // H5S_MAX_RANK
	version, axes, flags := s.uint(1), s.uint(1), s.uint(1)
	null := false
	switch version {
	case 1:
		s.bytes(1 + 4)
	case 2:
		null = s.uint(1) == 2
	default:
		return nil, unsupported("its dataspace has the version %d", version)
	}
	if axes > mostAxes {
		return nil, fmt.Errorf("it has %d dimensions", axes)
	}
	shape := make([]int64, axes)
	for i := range shape {
		shape[i] = int64(s.uint(8))
	}
	if flags&1 != 0 {
		s.bytes(8 * axes) // how far it may grow
	}
	if null {
		shape = []int64{0}
	}
	if _, ok := tensor.Elements(shape); !ok || s.short {
		return nil, fmt.Errorf("its shape is cut off, or impossible: %d", shape)
	}
	return shape, nil
}

// unknown is the kind of elements whose type cannot be read.
const unknown tensor.Kind = "unknown"

// dataset makes a dataset of the messages in its header. What is wrong with them is its Err.
func (f *file) dataset(name string, all []message) *Dataset {
	d := &Dataset{Name: name, Kind: unknown, Shape: []int64{}, f: f}
	d.Err = d.describe(all)
	return d
}

func (d *Dataset) describe(all []message) error {
	space, of, layout := find(all, msgDataspace), find(all, msgDatatype), find(all, msgLayout)
	switch {
	case space == nil || of == nil:
		return fmt.Errorf("it has no shape, or no type")
	case space.shared || of.shared || layout.shared:
		return unsupported("its shape or its type stands elsewhere in the file")
	}
	shape, err := parseDataspace(&fields{b: space.data})
	if err != nil {
		return err
	}
	d.Shape = shape
	t, err := parseDatatype(&fields{b: of.data})
	if err != nil {
		return err
	}
	if t.opaque {
		if err := d.f.nameOpaque(&t, all); err != nil {
			return err
		}
	}
	n, _ := tensor.Elements(d.Shape)
	if n > 0 && t.size > uint64(1<<62)/uint64(n) {
		return fmt.Errorf("its elements take more bytes than can be counted")
	}
	d.Kind, d.Size, d.swapped = t.kind, n*int64(t.size), t.swapped && t.size > 1
	if find(all, msgExternal) != nil {
		return unsupported("its elements are in other files")
	}
	err = d.place(layout.data)
	if err == nil && d.chunking != nil {
		err = d.chunking.prepare(d, all, int64(t.size))
	}
	if err == nil && d.Kind.Size() == 0 {
		err = unsupported("elements of the type %s are not read", d.Kind)
	}
	return err
}

// nameOpaque gives opaque elements the type that an attribute dtype names, if they have its size.
func (f *file) nameOpaque(t *datatype, all []message) error {
	for _, m := range all {
		if m.kind != msgAttribute || m.shared {
			continue
		}
		text, err := f.attributeText(m.data, "dtype")
		if err != nil && !IsUnsupported(err) {
			return err
		}
		if k := tensor.Kind(text); uint64(k.Size()) == t.size {
			t.kind = k
		}
	}
	return nil
}

// place finds out where the elements are (IV.A.2.i).
func (d *Dataset) place(b []byte) error {
	const (
		compact, contiguous, chunked = 0, 1, 2
	)
	s := fields{b: b}
	version, class := s.uint(1), s.uint(1)
	if version < 3 || version > 5 {
		return unsupported("its layout has the version %d", version)
	}
	switch class {
	case compact:
		d.compact = s.bytes(s.uint(2))
		if s.short || int64(len(d.compact)) != d.Size {
			return fmt.Errorf("its elements take %d bytes, and there are %d", d.Size, len(d.compact))
		}
	case contiguous:
		var size uint64
		d.at, size = s.address(), s.uint(8)
		switch {
		case s.short:
			return fmt.Errorf("where its elements are is cut off")
		case d.Size == 0:
		case d.at == undefined:
			return unsupported("its elements were never written")
		case size != uint64(d.Size):
			return fmt.Errorf("its shape says that its elements take %d bytes, and they have %d", d.Size, size)
		case d.at > d.f.size || size > d.f.size-d.at:
			return fmt.Errorf("its elements, of %d bytes at byte %d, are beyond the file's end at %d", size, d.at, d.f.size)
		}
	case chunked:
		if version != 3 {
			return unsupported("its elements lie in chunks of a newer form")
		}
		c := &chunking{}
		axes := s.uint(1)
		c.tree = s.address()
		for range axes {
			c.shape = append(c.shape, int64(s.uint(4)))
		}
		if s.short {
			return fmt.Errorf("where its elements are is cut off")
		}
		d.chunking = c
	default:
		return unsupported("its elements are stored in a way that is not read: %d", class)
	}
	return nil
}

// Chunked reports whether the elements lie in chunks, and not in the order of rows.
func (d *Dataset) Chunked() bool { return d.chunking != nil }

// Rows returns a reader of the elements row by row, little endian; of one that is Chunked all
// of them are held in memory.
func (d *Dataset) Rows() (io.Reader, error) {
	switch {
	case d.Err != nil:
		return nil, fmt.Errorf("%s: %w", d.Name, d.Err)
	case d.Size == 0:
		return bytes.NewReader(nil), nil
	case d.chunking != nil:
		b, err := d.chunking.whole(d)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.Name, err)
		}
		return bytes.NewReader(b), nil
	case d.compact != nil:
		return d.ordered(bytes.NewReader(d.compact)), nil
	}
	return d.ordered(io.NewSectionReader(d.f.r, int64(d.at), d.Size)), nil
}

// Chunks returns a reader of the elements of one that is Chunked: chunk by chunk, little
// endian. It holds no more than limit bytes of them in memory.
func (d *Dataset) Chunks(limit int64) (io.Reader, error) {
	if d.Err != nil || d.Size == 0 {
		return d.Rows()
	}
	return d.chunking.reader(d, limit)
}

// ordered makes elements little endian.
func (d *Dataset) ordered(r io.Reader) io.Reader {
	if !d.swapped {
		return r
	}
	return &swapper{r: r, width: d.Kind.Size()}
}

// swapper turns the bytes of each element round.
type swapper struct {
	r     io.Reader
	width int
	block [8 << 10]byte // a whole number of elements
	left  []byte
}

func (s *swapper) Read(b []byte) (int, error) {
	if len(s.left) == 0 {
		n, err := io.ReadFull(s.r, s.block[:])
		if err == io.ErrUnexpectedEOF && n%s.width == 0 {
			err = nil
		}
		if err != nil {
			return 0, err
		}
		s.left = s.block[:n]
		reverse(s.left, s.width)
	}
	n := copy(b, s.left)
	s.left = s.left[n:]
	return n, nil
}

// reverse turns the bytes of each element round in place.
func reverse(b []byte, width int) {
	for ; len(b) >= width; b = b[width:] {
		for i, j := 0, width-1; i < j; i, j = i+1, j-1 {
			b[i], b[j] = b[j], b[i]
		}
	}
}
