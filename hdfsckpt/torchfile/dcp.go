package torchfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"holdfast/hdfsckpt/limit"
	"holdfast/hdfsckpt/tensor"
)

// MetadataFile is the file of a distributed checkpoint that is written last.
const MetadataFile = ".metadata"

// Metadata is what a distributed checkpoint consists of.
type Metadata struct {
	Items []Item // sorted by name
}

// Item is a tensor, or some other object.
type Item struct {
	Name   string
	Tensor bool
	Kind   tensor.Kind // of a tensor
	Shape  []int64     // of a tensor
	Chunks []Chunk     // where its bytes are
}

// Chunk is a part of an item: Length bytes at Offset of a file that hold what
// torch.save wrote for it.
type Chunk struct {
	File           string // relative to the checkpoint's directory
	Offset, Length int64
	Start, Shape   []int64 // its place in the tensor
	Transformed    bool    // compressed or the like by an extension
}

// Bytes returns the size of a tensor's elements.
func (i *Item) Bytes() int64 {
	if !i.Tensor {
		return 0
	}
	n, _ := tensor.Elements(i.Shape)
	return n * int64(i.Kind.Size())
}

// Sizes returns the least length of each file, by name.
func (m *Metadata) Sizes() map[string]int64 {
	sizes := map[string]int64{}
	for _, item := range m.Items {
		for _, c := range item.Chunks {
			sizes[c.File] = max(sizes[c.File], c.Offset+c.Length)
		}
	}
	return sizes
}

var errMetadata = errors.New("not a whole " + MetadataFile + " of a distributed checkpoint")

// IsMetadataDamaged reports whether ParseMetadata failed because of its input.
func IsMetadataDamaged(err error) bool { return errors.Is(err, errMetadata) && !limit.IsExceeded(err) }

const (
	// MostMetadata is how large a file .metadata may be that is read, in bytes.
	MostMetadata = 256 << 20
	// What one describes takes at most so many bytes of memory, and so many for each of the
	// file's. Those of PyTorch take twelve, and are counted as twenty-two.
	freeMetadata    = 1 << 20
	metadataPerByte = 32
	// chunkSize is what a chunk takes besides its values of the pickle, in bytes.
	chunkSize = 300
)

// MemoryOfMetadata returns how many bytes of memory reading a .metadata of size bytes takes. One of
// more than MostMetadata bytes is limit.Exceeded.
func MemoryOfMetadata(_ io.ReaderAt, size int64) (int64, error) {
	if size > MostMetadata {
		return 0, limit.Exceeded("such files are read up to %d bytes", MostMetadata)
	}
	return freeMetadata + metadataPerByte*size, nil
}

// ParseMetadata reads the file .metadata. One that describes more than MemoryOfMetadata says, or has
// longer names than are read, is limit.Exceeded, and not damaged.
func ParseMetadata(b []byte) (*Metadata, error) {
	memory, err := MemoryOfMetadata(nil, int64(len(b)))
	if err != nil {
		return nil, err
	}
	account := limit.NewAccount(memory - int64(len(b)))
	v, n, err := unpickle(b, account)
	if limit.IsExceeded(err) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errMetadata, err)
	}
	if n != len(b) {
		return nil, fmt.Errorf("%w: %d bytes follow its end", errMetadata, len(b)-n)
	}
	root := fields(v, "Metadata")
	if root == nil {
		return nil, fmt.Errorf("%w: it has something else in it", errMetadata)
	}
	described, ok1 := root.get("state_dict_metadata").(*dict)
	stored, ok2 := root.get("storage_data").(*dict)
	if !ok1 || !ok2 {
		return nil, fmt.Errorf("%w: it does not say where what is", errMetadata)
	}
	where, err := chunks(stored, account)
	if err != nil {
		return nil, err
	}
	m, used := &Metadata{}, 0
	for i, k := range described.keys {
		item := Item{Name: keyText(k)}
		if err := nameFits(item.Name); err != nil {
			return nil, err
		}
		if t := fields(described.values[i], "TensorStorageMetadata"); t != nil {
			err = item.describe(t, where)
		} else if c, ok := where[chunkKey(item.Name, nil)]; ok {
			item.Chunks = []Chunk{c}
		} else {
			err = fmt.Errorf("%w: the bytes of %s are in no file", errMetadata, item.Name)
		}
		if err != nil {
			return nil, err
		}
		if used += len(item.Chunks); used > len(where) {
			return nil, fmt.Errorf("%w: %d chunks are of several items", errMetadata, len(where))
		}
		m.Items = append(m.Items, item)
	}
	slices.SortStableFunc(m.Items, func(a, b Item) int { return strings.Compare(a.Name, b.Name) })
	return m, nil
}

// nameFits is limit.Exceeded for a name that is longer than what is read.
func nameFits(name string) error {
	if len(name) > maxName {
		return limit.Exceeded("it has a name of %d bytes, and names are read up to %d", len(name), maxName)
	}
	return nil
}

// fields returns the fields of an object; nil if v is not an object of that class.
func fields(v any, class string) *dict {
	o, _ := v.(*object)
	if o == nil {
		return nil
	}
	g, _ := o.of.(global)
	d, _ := o.state.(*dict)
	if g.name != class || !strings.HasPrefix(g.module, "torch.distributed") {
		return nil
	}
	return d
}

// describe reads a TensorStorageMetadata.
func (i *Item) describe(t *dict, where map[string]Chunk) error {
	i.Tensor = true
	var ok bool
	if i.Shape, ok = ints(t.get("size")); !ok {
		return fmt.Errorf("%w: the shape of %s is not readable", errMetadata, i.Name)
	}
	if _, ok := tensor.Elements(i.Shape); !ok {
		return fmt.Errorf("%w: %s has a shape of %v", errMetadata, i.Name, i.Shape)
	}
	properties, _ := t.get("properties").(*object)
	i.Kind = "unknown"
	if properties != nil {
		if state, ok := properties.state.(tuple); ok && len(state) > 0 {
			i.Kind = kindOf(state[0])
		}
	}
	list, _ := t.get("chunks").(*list)
	if list == nil {
		return fmt.Errorf("%w: the chunks of %s are not readable", errMetadata, i.Name)
	}
	for _, x := range list.items {
		d := fields(x, "ChunkStorageMetadata")
		if d == nil {
			return fmt.Errorf("%w: a chunk of %s is not readable", errMetadata, i.Name)
		}
		start, ok1 := ints(d.get("offsets"))
		shape, ok2 := ints(d.get("sizes"))
		c, ok3 := where[chunkKey(i.Name, start)]
		if !ok1 || !ok2 || !ok3 {
			return fmt.Errorf("%w: the chunk of %s at %v is in no file", errMetadata, i.Name, start)
		}
		c.Start, c.Shape = start, shape
		i.Chunks = append(i.Chunks, c)
	}
	return nil
}

// chunkKey identifies a chunk by its item's name and its offsets in the item.
func chunkKey(name string, start []int64) string {
	if start == nil {
		return name
	}
	return fmt.Sprintf("%s\x00%v", name, start)
}

// chunks reads storage_data: MetadataIndex to _StorageInfo.
func chunks(stored *dict, account *limit.Account) (map[string]Chunk, error) {
	all := map[string]Chunk{}
	for i, k := range stored.keys {
		index, info := fields(k, "MetadataIndex"), fields(stored.values[i], "_StorageInfo")
		if index == nil || info == nil {
			return nil, fmt.Errorf("%w: it does not say where what is", errMetadata)
		}
		name, ok1 := index.get("fqn").(string)
		err := nameFits(name) // each chunk has a copy of it
		if err == nil {
			err = account.Spend(chunkSize + int64(len(name)))
		}
		if err != nil {
			return nil, err
		}
		var start []int64
		if offset := index.get("offset"); offset != nil {
			var ok bool
			if start, ok = ints(offset); !ok {
				return nil, fmt.Errorf("%w: the place of a chunk of %s is not readable", errMetadata, name)
			}
			if start == nil {
				start = []int64{}
			}
		}
		c := Chunk{}
		var ok2, ok3, ok4 bool
		c.File, ok2 = info.get("relative_path").(string)
		c.Offset, ok3 = info.get("offset").(int64)
		c.Length, ok4 = info.get("length").(int64)
		if !ok1 || !ok2 || !ok3 || !ok4 || c.Offset < 0 || c.Length < 0 || c.Offset > 1<<56 || c.Length > 1<<56 {
			return nil, fmt.Errorf("%w: where %s is stored is not readable", errMetadata, name)
		}
		if !filepath.IsLocal(c.File) || filepath.Clean(c.File) != c.File {
			return nil, fmt.Errorf("%w: %s is said to be in %q", errMetadata, name, c.File)
		}
		if t, ok := info.get("transform_descriptors").(*list); ok && len(t.items) > 0 {
			c.Transformed = true
		}
		all[chunkKey(name, start)] = c
	}
	return all, nil
}

// Read assembles a tensor of its chunks. open opens a file of the checkpoint.
func (i *Item) Read(open func(file string) (io.ReaderAt, error)) ([]byte, error) {
	width := int64(i.Kind.Size())
	if !i.Tensor || width == 0 {
		return nil, fmt.Errorf("%s: elements of %s cannot be read", i.Name, i.Kind)
	}
	parts := make([][]byte, len(i.Chunks))
	total := int64(0)
	for n, c := range i.Chunks {
		var err error
		if parts[n], err = c.read(open, i.Kind); err != nil {
			return nil, fmt.Errorf("%s, in %s at byte %d: %w", i.Name, c.File, c.Offset, err)
		}
		total += int64(len(parts[n]))
	}
	if total != i.Bytes() {
		return nil, fmt.Errorf("%s: its chunks have %d bytes, it has %d: %w", i.Name, total, i.Bytes(), errMetadata)
	}
	whole := make([]byte, total) // no more than was read
	for n, c := range i.Chunks {
		if err := tensor.Place(whole, i.Shape, parts[n], c.Start, c.Shape, int(width)); err != nil {
			return nil, fmt.Errorf("%s, in %s at byte %d: %w", i.Name, c.File, c.Offset, err)
		}
	}
	return whole, nil
}

func (c *Chunk) read(open func(string) (io.ReaderAt, error), kind tensor.Kind) ([]byte, error) {
	f, err := c.open(open, kind)
	if err != nil {
		return nil, err
	}
	return f.Read(&f.Tensors[0])
}

// open opens a chunk: a file with one tensor.
func (c *Chunk) open(open func(string) (io.ReaderAt, error), kind tensor.Kind) (*File, error) {
	if c.Transformed {
		return nil, errors.New("it was compressed or otherwise changed by an extension, which is not supported")
	}
	r, err := open(c.File)
	if err != nil {
		return nil, err
	}
	f, err := Open(io.NewSectionReader(r, c.Offset, c.Length), c.Length)
	if err != nil {
		return nil, err
	}
	if len(f.Tensors) != 1 || f.Tensors[0].Kind != kind || !slices.Equal(f.Tensors[0].Shape, c.Shape) {
		return nil, fmt.Errorf("%w: its content is not what %s says", errFile, MetadataFile)
	}
	return f, nil
}

// Rows returns a reader of what Read returns; nil if the chunks do not follow one another row
// by row. It holds no chunk in memory but one whose elements do not lie so, and fails if that
// takes more than limit bytes.
func (i *Item) Rows(open func(file string) (io.ReaderAt, error), limit int64) io.Reader {
	var starts, lengths [][]int64
	for _, c := range i.Chunks {
		starts, lengths = append(starts, c.Start), append(lengths, c.Shape)
	}
	order, ok := tensor.Consecutive(i.Shape, starts, lengths)
	if !ok {
		return nil
	}
	all := make([]io.Reader, len(order))
	for n, at := range order {
		all[n] = &chunkReader{open: open, item: i, c: &i.Chunks[at], limit: limit}
	}
	return io.MultiReader(all...)
}

// Parts is Rows for any chunks, but without an order of the elements.
func (i *Item) Parts(open func(file string) (io.ReaderAt, error), limit int64) io.Reader {
	var all []io.Reader
	for n := range i.Chunks {
		all = append(all, &chunkReader{open: open, item: i, c: &i.Chunks[n], limit: limit})
	}
	return io.MultiReader(all...)
}

// chunkReader reads the elements of a chunk.
type chunkReader struct {
	open  func(file string) (io.ReaderAt, error)
	item  *Item
	c     *Chunk
	limit int64
	in    io.Reader // nil before the first read
}

func (r *chunkReader) Read(b []byte) (int, error) {
	if r.in == nil {
		if err := r.begin(); err != nil {
			return 0, fmt.Errorf("%s, in %s at byte %d: %w", r.item.Name, r.c.File, r.c.Offset, err)
		}
	}
	return r.in.Read(b)
}

func (r *chunkReader) begin() error {
	f, err := r.c.open(r.open, r.item.Kind)
	if err != nil {
		return err
	}
	if r.in, err = f.Rows(&f.Tensors[0]); r.in != nil || err != nil {
		return err
	}
	if held := f.Held(&f.Tensors[0]); held > r.limit {
		return fmt.Errorf("its elements do not lie row by row, and putting them together takes %d bytes of memory, more than the %d that are allowed here: %w", held, r.limit, syscall.EFBIG)
	}
	b, err := f.Read(&f.Tensors[0])
	r.in = bytes.NewReader(b)
	return err
}
