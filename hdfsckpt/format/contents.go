package format

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/tensor"
)

// Contents is a Format whose tensors can be read, and whose files have checksums.
type Contents interface {
	Format
	// Tensors finds the tensors of a checkpoint, and reads none of their bytes.
	Tensors(o *Opener, c *Checkpoint) ([]*Tensor, error)
	// Parts finds the parts of a checkpoint's files that have checksums of their own,
	// and what is wrong with files as far as they were read for that. What the
	// checkpoint's state says already is no problem.
	Parts(ctx context.Context, s store.Store, c *Checkpoint) ([]Part, []Problem, error)
}

// Part is a part of a file that has a checksum of its own.
type Part struct {
	File         string // relative to the store's root
	Offset, Size int64
	Tensor       string // empty if it is no tensor's
	Check        func() Checker
}

// Checker takes a part's bytes, in order and in whatever pieces.
type Checker interface {
	Write(b []byte) (int, error)
	End() error
}

// Problem is something that is wrong with a checkpoint.
type Problem struct {
	File   string // relative to the store's root
	Tensor string // empty where it is the file as a whole, or a part that is no tensor's
	Offset int64  // in bytes, where the tensor or the part begins; -1 for the file as a whole
	Text   string
}

func (p Problem) String() string {
	switch {
	case p.Tensor != "":
		return fmt.Sprintf("%s: at byte %d, tensor %s: %s", p.File, p.Offset, p.Tensor, p.Text)
	case p.Offset >= 0:
		return fmt.Sprintf("%s: at byte %d: %s", p.File, p.Offset, p.Text)
	}
	return p.File + ": " + p.Text
}

// Tensor is a tensor in a checkpoint.
type Tensor struct {
	Name   string // as its framework names it; of PyTorch the keys that lead to it: model.weight
	Kind   tensor.Kind
	Shape  []int64
	Bytes  int64
	File   string // in which it is, relative to the store's root; empty for one in several
	Pieces int    // 1, or in how many it was cut

	Source Source // set by the format
}

// Source is how a tensor's elements are read. It has Read or Strings, or neither if they
// cannot be shown.
type Source struct {
	Read    func() ([]byte, error)
	Strings func() ([]string, error) // of a tensor of strings
	// Rows returns a reader of what Read returns, and Parts of the same elements in whatever
	// order, which hold at most limit bytes in memory; nil where only Read can put them
	// together, which holds so many bytes.
	Rows, Parts func(limit int64) (io.Reader, error)
	Held        int64
}

// Read returns a tensor's elements row by row, little endian. Checksums that the
// checkpoint has of them have been compared.
func (t *Tensor) Read() ([]byte, error) {
	if t.Source.Read == nil {
		return nil, fmt.Errorf("%s: elements of %s are no numbers: %w", t.Name, t.Kind, syscall.EINVAL)
	}
	return t.Source.Read()
}

// Rows returns a reader of what Read returns. It holds no more than limit bytes in memory:
// EFBIG for a tensor that has to be put together in memory and is larger. Checksums have been
// compared at its end.
func (t *Tensor) Rows(limit int64) (io.Reader, error) { return t.reader(t.Source.Rows, limit) }

// Elements is Rows without an order of the elements.
func (t *Tensor) Elements(limit int64) (io.Reader, error) { return t.reader(t.Source.Parts, limit) }

func (t *Tensor) reader(open func(limit int64) (io.Reader, error), limit int64) (io.Reader, error) {
	if t.Source.Read != nil && open != nil {
		r, err := open(limit)
		if err != nil {
			return nil, err
		}
		if r != nil {
			return t.whole(r), nil
		}
	}
	if t.Source.Held > limit {
		return nil, fmt.Errorf("%s: its elements do not lie row by row, and putting them together takes %d bytes of memory, more than the %d that are allowed here: %w", t.Name, t.Source.Held, limit, syscall.EFBIG)
	}
	b, err := t.Read()
	return bytes.NewReader(b), err
}

// whole has a reader fail that ends before the last element or does not end there.
func (t *Tensor) whole(r io.Reader) io.Reader {
	n, ok := tensor.Elements(t.Shape)
	if width := int64(t.Kind.Size()); ok && width > 0 {
		return &exactReader{r, t.Name, n * width}
	}
	return r
}

// exactReader reads a number of bytes, and fails if there are fewer or more.
type exactReader struct {
	r    io.Reader
	name string
	left int64
}

func (x *exactReader) Read(b []byte) (int, error) {
	n, err := x.r.Read(b)
	switch x.left -= int64(n); {
	case x.left < 0:
		return n, fmt.Errorf("%s has more bytes than its shape says: %w", x.name, syscall.EIO)
	case err == io.EOF && x.left > 0:
		return n, fmt.Errorf("%s ends %d bytes before its last element: %w", x.name, x.left, syscall.EIO)
	}
	return n, err
}

// Strings returns the elements of a tensor of strings.
func (t *Tensor) Strings() ([]string, error) {
	if t.Source.Strings == nil {
		return nil, fmt.Errorf("%s: elements of %s are no strings: %w", t.Name, t.Kind, syscall.EINVAL)
	}
	return t.Source.Strings()
}

// Opener opens each file of a checkpoint once. Its methods may be called by many
// goroutines.
type Opener struct {
	ctx      context.Context
	s        store.Store
	maxIndex int64 // bytes of what is read into memory to find tensors

	mu    sync.Mutex
	files map[string]store.Reader
}

// Open opens a file by its name in the store.
func (o *Opener) Open(name string) (store.Reader, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.files[name]; r != nil {
		return r, nil
	}
	r, err := o.s.Open(o.ctx, name)
	if err != nil {
		return nil, err
	}
	o.files[name] = r
	return r, nil
}

// NewOpener returns one whose files are opened with ctx, and which admits maxIndex bytes (Admit).
func NewOpener(ctx context.Context, s store.Store, maxIndex int64) *Opener {
	return &Opener{ctx: ctx, s: s, maxIndex: maxIndex, files: map[string]store.Reader{}}
}

// Context is for all reads until the tensors are closed.
func (o *Opener) Context() context.Context { return o.ctx }

// Store is where the files are.
func (o *Opener) Store() store.Store { return o.s }

// Admit reports whether so many bytes of a file may be read into memory to find tensors.
// EFBIG if not.
func (o *Opener) Admit(name string, size int64) error {
	if size > o.maxIndex {
		return fmt.Errorf("%s: finding its tensors takes %d bytes in memory, more than the %d that are allowed here: %w", name, size, o.maxIndex, syscall.EFBIG)
	}
	return nil
}

// AdmitFile is Admit for all of a file.
func (o *Opener) AdmitFile(name string) error {
	r, err := o.Open(name)
	if err != nil {
		return err
	}
	return o.Admit(name, r.Size())
}

// Below opens files by their names below a directory.
func (o *Opener) Below(dir string) func(string) (io.ReaderAt, error) {
	return func(name string) (io.ReaderAt, error) { return o.Open(path.Join(dir, name)) }
}

// Close closes the files.
func (o *Opener) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	var errs []error
	for _, r := range o.files {
		errs = append(errs, r.Close())
	}
	clear(o.files)
	return errors.Join(errs...)
}

// Tensors reads the tensors of one checkpoint. Its methods may be called by many
// goroutines.
type Tensors struct {
	all    []*Tensor
	byName map[string]*Tensor
	files  *Opener
}

// OpenTensors finds the tensors of a checkpoint, and reads none of their bytes. ctx is
// for all reads until Close. EINVAL if the format's tensors cannot be read.
func OpenTensors(ctx context.Context, s store.Store, c *Checkpoint) (*Tensors, error) {
	return OpenTensorsWithin(ctx, s, c, math.MaxInt64)
}

// OpenTensorsWithin is OpenTensors that reads no index, header or the like of more than
// maxIndex bytes: EFBIG. Reading one takes a few times its size of memory.
func OpenTensorsWithin(ctx context.Context, s store.Store, c *Checkpoint, maxIndex int64) (*Tensors, error) {
	contents := c.Contents()
	if contents == nil {
		return nil, fmt.Errorf("the checkpoint %s has the format %s, whose tensors cannot be read; what its files hold is known to its program only: %w", c.Name, c.Kind, syscall.EINVAL)
	}
	t := &Tensors{byName: map[string]*Tensor{}, files: NewOpener(ctx, s, maxIndex)}
	var err error
	if t.all, err = contents.Tensors(t.files, c); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot find the tensors of the checkpoint %s: %w", c.Name, err), t.Close())
	}
	slices.SortStableFunc(t.all, func(a, b *Tensor) int { return strings.Compare(a.Name, b.Name) })
	for _, x := range t.all {
		t.byName[x.Name] = x
	}
	return t, nil
}

// Close closes the files.
func (t *Tensors) Close() error { return t.files.Close() }

// All returns the tensors, sorted by name.
func (t *Tensors) All() []*Tensor { return t.all }

// Find returns a tensor by its name; nil if there is none.
func (t *Tensors) Find(name string) *Tensor { return t.byName[name] }
