package torchfile

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"strings"

	"holdfast/hdfsckpt/limit"
	"holdfast/hdfsckpt/tensor"
	"holdfast/hdfsckpt/zipdir"
)

// File is what torch.save wrote. Its methods may be called from many goroutines.
type File struct {
	Tensors []Tensor // in the order of the object that was saved
	archive *Archive
}

// Tensor is a tensor somewhere in the object that was saved.
type Tensor struct {
	// Name is the keys and positions that lead to it, with dots between them:
	// model.weight. It is "" if the object is the tensor.
	Name  string
	Kind  tensor.Kind
	Shape []int64
	view  view
}

// Bytes returns the size of the tensor's elements, those that a stride of 0 repeats counted
// once; 0 if the size of an element is not known.
func (t *Tensor) Bytes() int64 {
	n, _ := tensor.Elements(t.Shape)
	return n * int64(t.Kind.Size())
}

// Archive is the ZIP archive of a file.
type Archive struct {
	Records []Record // in the order of the archive's directory
	zip     *zip.Reader
	root    string // NAME/
}

// Record is a member of the archive.
type Record struct {
	Name string // without the archive's own: data.pkl, data/0
	Size int64
	file *zip.File
}

// Checked reports whether the record has a checksum.
func (r *Record) Checked() bool { return r.file.CRC32 != 0 || r.Size == 0 }

// Offset returns the place of the record's bytes in the file.
func (r *Record) Offset() (int64, error) { return r.file.DataOffset() }

// Open returns a reader of the record, which compares length and checksum at the end.
func (r *Record) Open() (io.Reader, error) {
	raw, err := r.file.OpenRaw() // File.Open takes a checksum of 0 for one
	if err != nil {
		return nil, err
	}
	return &checked{r: r, raw: raw, sum: crc32.NewIEEE()}, nil
}

type checked struct {
	r    *Record
	raw  io.Reader
	sum  hash.Hash32
	size int64
}

func (c *checked) Read(b []byte) (int, error) {
	n, err := c.raw.Read(b)
	c.sum.Write(b[:n])
	c.size += int64(n)
	switch {
	case err != io.EOF:
	case c.size != c.r.Size:
		err = fmt.Errorf("%w: it has %d bytes instead of %d", errFile, c.size, c.r.Size)
	default:
		if wrong := c.r.Check(c.sum.Sum32()); wrong != nil {
			err = wrong
		}
	}
	return n, err
}

// Check compares the CRC-32 (IEEE) of the record's bytes with that in the archive. A record
// without a checksum passes.
func (r *Record) Check(sum uint32) error {
	if r.Checked() && sum != r.file.CRC32 {
		return fmt.Errorf("%w: the checksum of its record %s is %08x, the archive says %08x", errFile, r.Name, sum, r.file.CRC32)
	}
	return nil
}

var errFile = errors.New("not a whole file of torch.save")

// Pickle is the record that describes the object, and the tensors in it.
const Pickle = "data.pkl"

const (
	// maxPickle bounds the pickle that is read into memory; tensors are not in it.
	maxPickle = 1 << 30
	// What it describes takes at most so many bytes of memory, and so many for each of its bytes.
	freePickle    = 4 << 20
	picklePerByte = 100
)

// magic numbers at the beginning of files.
var (
	zipMagic = []byte("PK\x03\x04")
	// The first pickle is the number 0x1950a86a20f9469cfc6c (torch/serialization.py).
	legacyMagic = []byte("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19")
)

// MagicSize is how many bytes of a file IsZip and IsLegacy need.
const MagicSize = 16

// IsZip reports whether a file that begins with head may be one of torch.save's.
func IsZip(head []byte) bool { return bytes.HasPrefix(head, zipMagic) }

// BeginsWithPickle reports whether a file that begins with head has the pickle as its first
// member, as torch.save writes it. Other archives of ZIP have no such name there.
func BeginsWithPickle(head []byte) bool {
	const nameLength, name = 26, 30 // in the header of a member
	if !IsZip(head) || len(head) < name {
		return false
	}
	end := name + int(head[nameLength]) + int(head[nameLength+1])<<8
	return len(head) >= end && strings.HasSuffix(string(head[name:end]), "/"+Pickle)
}

// IsLegacy reports whether a file that begins with head has the format that torch.save wrote
// before PyTorch 1.6. Whether such a file is complete cannot be seen.
func IsLegacy(head []byte) bool { return bytes.HasPrefix(head, legacyMagic) }

// MemoryOfArchive returns how many bytes of memory OpenArchive takes at most. It reads the file's end.
func MemoryOfArchive(r io.ReaderAt, size int64) (int64, error) {
	n, err := zipdir.Memory(r, size)
	if err != nil && !limit.IsExceeded(err) {
		err = directoryError(err)
	}
	return n, err
}

func directoryError(err error) error {
	return fmt.Errorf("%w: its directory, at the end: %w", errFile, err)
}

// OpenArchive reads the directory of the archive, which stands at its end. One that is larger than
// what is read is limit.Exceeded.
func OpenArchive(r io.ReaderAt, size int64) (*Archive, error) {
	z, err := zipdir.Open(r, size)
	if limit.IsExceeded(err) {
		return nil, err
	}
	if err != nil {
		return nil, directoryError(err)
	}
	a := &Archive{zip: z}
	for _, f := range z.File {
		if root, ok := strings.CutSuffix(f.Name, "/data.pkl"); ok && !strings.Contains(root, "/") {
			a.root = root + "/"
		}
	}
	if a.root == "" {
		return nil, fmt.Errorf("%w: it has no data.pkl", errFile)
	}
	for _, f := range z.File {
		if f.Method != zip.Store || f.UncompressedSize64 != f.CompressedSize64 || f.UncompressedSize64 > uint64(size) {
			return nil, fmt.Errorf("%w: its record %s has %d bytes in %d", errFile, f.Name, f.UncompressedSize64, f.CompressedSize64)
		}
		a.Records = append(a.Records, Record{Name: strings.TrimPrefix(f.Name, a.root), Size: int64(f.UncompressedSize64), file: f})
	}
	return a, nil
}

// Find finds a record; nil if there is none of that name.
func (a *Archive) Find(name string) *Record {
	for i := range a.Records {
		if a.Records[i].Name == name {
			return &a.Records[i]
		}
	}
	return nil
}

func (a *Archive) read(name string, most int64) ([]byte, error) {
	r := a.Find(name)
	if r == nil {
		return nil, fmt.Errorf("%w: it has no record %s", errFile, name)
	}
	if r.Size > most {
		return nil, limit.Exceeded("its record %s has %d bytes, and up to %d are read", name, r.Size, most)
	}
	in, err := r.Open()
	if err != nil {
		return nil, fmt.Errorf("record %s: %w", name, err)
	}
	b := make([]byte, r.Size) // not more than the file has
	_, err = io.ReadFull(in, b)
	if err == nil {
		_, err = io.Copy(io.Discard, in) // the end, with the checksum
	}
	if err != nil {
		return nil, fmt.Errorf("record %s: %w", name, err)
	}
	return b, nil
}

// Open finds the tensors in a file of size bytes. It reads the archive's directory and the
// pickle, but not the tensors' bytes.
func Open(r io.ReaderAt, size int64) (*File, error) {
	a, err := OpenArchive(r, size)
	if err != nil {
		return nil, err
	}
	text, err := a.read(Pickle, maxPickle)
	if err != nil {
		return nil, err
	}
	v, _, err := unpickle(text, limit.NewAccount(MemoryOfPickle(int64(len(text)))))
	if err != nil {
		return nil, fmt.Errorf("data.pkl: %w", err)
	}
	if order := a.Find("byteorder"); order != nil {
		if b, err := a.read("byteorder", 16); err != nil || string(b) != "little" {
			return nil, fmt.Errorf("the byte order is %q, which is not supported (%w)", b, errors.Join(err, errFile))
		}
	}
	f := newFinder(len(text))
	if err := f.find("", v, 0); err != nil {
		return nil, fmt.Errorf("data.pkl: %w", err)
	}
	x := &File{Tensors: f.found, archive: a}
	return x, x.check()
}

// check compares the extent of each tensor with the length of its record.
func (f *File) check() error {
	sizes := map[string]int64{}
	for _, r := range f.archive.Records {
		sizes[r.Name] = r.Size
	}
	for i := range f.Tensors {
		t := &f.Tensors[i]
		record := t.Record()
		have, ok := sizes[record]
		if !ok {
			return fmt.Errorf("%w: the bytes of %s are missing: it has no record %s", errFile, t.Name, record)
		}
		span, err := tensor.Span(t.view.offset, t.Shape, t.view.stride)
		if err != nil {
			return err
		}
		if w := int64(t.Kind.Size()); w > 0 && span > have/w {
			return fmt.Errorf("%w: %s reaches to element %d of record %s, which has %d bytes", errFile, t.Name, span, record, have)
		}
	}
	return nil
}

// Archive returns the archive that the file is.
func (f *File) Archive() *Archive { return f.archive }

// Record returns the name of the record with the tensor's bytes. Several tensors may
// share one.
func (t *Tensor) Record() string { return "data/" + t.view.storage.key }

// Read returns a tensor's elements row by row, little endian, after it has compared the
// record's checksum. Tensors that share a record may share the returned bytes.
func (f *File) Read(t *Tensor) ([]byte, error) {
	width := t.Kind.Size()
	if width == 0 {
		return nil, fmt.Errorf("%s: elements of %s cannot be read", t.Name, t.Kind)
	}
	b, err := f.archive.read(t.Record(), 1<<56)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	out, err := tensor.Gather(b, t.view.offset, t.Shape, t.view.stride, width)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Name, err)
	}
	return out, nil
}

// Rows returns a reader of what Read returns, which does not hold it in memory; nil if the
// elements do not lie row by row in the file. It reads all of the record, and fails at its end
// if the checksum is wrong.
func (f *File) Rows(t *Tensor) (io.Reader, error) {
	width := int64(t.Kind.Size())
	n, _ := tensor.Elements(t.Shape)
	if width == 0 || !tensor.Contiguous(t.Shape, t.view.stride) {
		return nil, nil
	}
	r := f.archive.Find(t.Record())
	if r == nil {
		return nil, fmt.Errorf("%w: it has no record %s", errFile, t.Record())
	}
	in, err := r.Open()
	if err != nil {
		return nil, fmt.Errorf("%s: record %s: %w", t.Name, r.Name, err)
	}
	return &viewReader{in: in, skip: t.view.offset * width, left: n * width, name: t.Name}, nil
}

// Held returns how many bytes Read holds in memory.
func (f *File) Held(t *Tensor) int64 {
	if r := f.archive.Find(t.Record()); r != nil {
		return r.Size + t.Bytes()
	}
	return 0
}

// viewReader reads a part of a record, and all of it.
type viewReader struct {
	in         io.Reader
	skip, left int64
	name       string
}

func (v *viewReader) Read(b []byte) (int, error) {
	if v.skip > 0 {
		n, err := io.CopyN(io.Discard, v.in, v.skip)
		if v.skip -= n; err != nil {
			return 0, v.failed(err)
		}
	}
	if v.left == 0 { // the rest, with the checksum
		if _, err := io.Copy(io.Discard, v.in); err != nil {
			return 0, v.failed(err)
		}
		return 0, io.EOF
	}
	n, err := v.in.Read(b[:min(int64(len(b)), v.left)])
	v.left -= int64(n)
	switch {
	case err == io.EOF && v.left == 0:
		err = nil // the next call returns it
	case err != nil:
		err = v.failed(err)
	}
	return n, err
}

func (v *viewReader) failed(err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%s: %w", v.name, err)
}
