package tfbundle

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"holdfast/hdfsckpt/limit"
	"holdfast/hdfsckpt/tensor"
)

// Index is what PREFIX.index says.
type Index struct {
	Header  Header
	Entries []Entry // in the order of the index: slices first, then by name

	slices map[string][]int // places of a tensor's slices, by its name
}

// Header describes the bundle.
type Header struct {
	Shards    int
	BigEndian bool
	Producer  int // version of the format that wrote it
}

// Entry is a tensor, or a slice of a partitioned one.
type Entry struct {
	Name   string
	DType  DType
	Shape  []int64 // of the whole tensor, or of the slice
	Shard  int
	Offset int64
	Size   int64
	CRC32C uint32  // unmasked
	Slices []Slice // of a partitioned tensor, which has no bytes of its own
	Of     *Slice  // set: this is that slice of the tensor Name
}

// Partitioned reports whether the bytes are in the entries of the slices.
func (e *Entry) Partitioned() bool { return len(e.Slices) > 0 }

// Elements returns the number of elements of the shape.
func (e *Entry) Elements() int64 {
	n := int64(1)
	for _, d := range e.Shape {
		n *= d
	}
	return n
}

// Extent is a slice's part of one dimension; a Length of -1 is all of it.
type Extent struct{ Start, Length int64 }

// Slice is a part of a tensor, with one extent for each dimension.
type Slice []Extent

// String is TensorFlow's own notation: "0,5:-" is five rows, all columns.
func (s Slice) String() string {
	var parts []string
	for _, e := range s {
		if e.Length < 0 {
			parts = append(parts, "-")
		} else {
			parts = append(parts, fmt.Sprintf("%d,%d", e.Start, e.Length))
		}
	}
	return strings.Join(parts, ":")
}

const (
	maxShards     = 99999 // TensorFlow's names have five digits
	maxDimensions = 254   // tensorflow::TensorShape

	// What an index describes takes at most so many bytes of memory, and so many for each of
	// the file's: names share their beginnings in a file, but not in memory. Real ones take fewer
	// than seven.
	free    = 1 << 20
	perByte = 12
	// entrySize is what an entry takes, in bytes, its name, shape and slices aside.
	entrySize = 256
	// usualValue is how long the values of real entries are at most, in bytes; while a longer one is
	// parsed, each of its bytes takes parsing.
	usualValue = 4 << 10
	parsing    = 40
)

// Most is how large an index may be that is read, in bytes: of millions of tensors.
const Most = 256 << 20

// Memory returns how many bytes of memory Parse takes for an index of size bytes. One of more than
// Most bytes is limit.Exceeded.
func Memory(_ io.ReaderAt, size int64) (int64, error) {
	if size > Most {
		return 0, limit.Exceeded("indexes are read up to %d bytes", Most)
	}
	return free + perByte*size, nil
}

// Parse reads an index of size bytes. It checks the checksums of its blocks,
// and that what the entries say fits together. One that describes more than Memory says is
// limit.Exceeded.
func Parse(r io.ReaderAt, size int64) (*Index, error) {
	memory, err := Memory(r, size)
	if err != nil {
		return nil, err
	}
	account := limit.NewAccount(memory)
	x := &Index{}
	header := false
	err = readTable(r, size, account, func(key, value []byte) (err error) {
		if err := account.Spend(memoryOf(key, value)); err != nil {
			return err
		}
		if len(key) == 0 {
			header = true
			x.Header, err = parseHeader(value)
			return err
		}
		if !header {
			return errors.New("it does not begin with the header")
		}
		e, err := parseEntry(value)
		if err != nil {
			return fmt.Errorf("entry %q: %w", key, err)
		}
		e.Name = string(key)
		if key[0] == 0 {
			name, slice, err := parseSliceKey(key)
			if err != nil {
				return fmt.Errorf("entry %q: %w", key, err)
			}
			e.Name, e.Of = name, &slice
		}
		if err := x.check(&e); err != nil {
			return fmt.Errorf("entry %q: %w", e.Name, err)
		}
		if err := account.Spend(e.memory()); err != nil {
			return err
		}
		x.Entries = append(x.Entries, e)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("not a whole TensorFlow index: %w", err)
	}
	if !header {
		return nil, errors.New("not a whole TensorFlow index: it has no header")
	}
	x.slices = map[string][]int{}
	for i := range x.Entries {
		if e := &x.Entries[i]; e.Of != nil {
			x.slices[e.Name] = append(x.slices[e.Name], i)
		}
	}
	return x, nil
}

// memoryOf is what the name of an entry takes, and its value while it is parsed.
func memoryOf(key, value []byte) int64 {
	n := int64(2*len(key)) + entrySize
	if len(value) > usualValue {
		n += parsing * int64(len(value))
	}
	return n
}

// memory is what the shape and the slices of an entry take.
func (e *Entry) memory() int64 {
	n := 8 * int64(len(e.Shape))
	if e.Of != nil {
		n += int64(16*len(*e.Of)) + 64
	}
	for _, s := range e.Slices {
		n += 24 + 16*int64(len(s))
	}
	return n
}

func (x *Index) check(e *Entry) error {
	if len(e.Shape) > maxDimensions {
		return fmt.Errorf("it has %d dimensions", len(e.Shape))
	}
	n, ok := tensor.Elements(e.Shape)
	if !ok {
		return fmt.Errorf("a shape of %v", e.Shape)
	}
	if e.Partitioned() {
		return nil
	}
	if e.Shard < 0 || e.Shard >= x.Header.Shards {
		return fmt.Errorf("it is in shard %d of %d", e.Shard, x.Header.Shards)
	}
	if e.Offset < 0 || e.Size < 0 || e.Offset > 1<<62 || e.Size > 1<<62 {
		return fmt.Errorf("%d bytes at %d", e.Size, e.Offset)
	}
	if w := e.DType.Size(); w > 0 && e.Size != n*int64(w) {
		return fmt.Errorf("%d bytes for %d elements of %s", e.Size, n, e.DType)
	}
	return nil
}

// ShardSizes returns the length that each data file must have at least.
func (x *Index) ShardSizes() []int64 {
	sizes := make([]int64, x.Header.Shards)
	for i := range x.Entries {
		e := &x.Entries[i]
		if !e.Partitioned() {
			sizes[e.Shard] = max(sizes[e.Shard], e.Offset+e.Size)
		}
	}
	return sizes
}

// Tensors returns the whole tensors, without the slices of partitioned ones.
func (x *Index) Tensors() []*Entry {
	var list []*Entry
	for i := range x.Entries {
		if x.Entries[i].Of == nil {
			list = append(list, &x.Entries[i])
		}
	}
	return list
}

// SlicesOf returns the entries with the bytes of a partitioned tensor.
func (x *Index) SlicesOf(name string) []*Entry {
	var list []*Entry
	for _, i := range x.slices[name] {
		list = append(list, &x.Entries[i])
	}
	return list
}

// Bytes returns how much data a tensor has, slices included.
func (x *Index) Bytes(e *Entry) int64 {
	if !e.Partitioned() {
		return e.Size
	}
	var n int64
	for _, s := range x.SlicesOf(e.Name) {
		n += s.Size
	}
	return n
}

// DataFile returns the name of a shard's file.
func DataFile(prefix string, shard, of int) string {
	return fmt.Sprintf("%s.data-%05d-of-%05d", prefix, shard, of)
}

// IndexFile returns the name of the index.
func IndexFile(prefix string) string { return prefix + ".index" }
