package format

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// Source is how a tensor's elements are read. It has one of the two, or none if they cannot
// be shown.
type Source struct {
	Read    func() ([]byte, error)
	Strings func() ([]string, error) // of a tensor of strings
}

// Read returns a tensor's elements row by row, little endian. Checksums that the
// checkpoint has of them have been compared.
func (t *Tensor) Read() ([]byte, error) {
	if t.Source.Read == nil {
		return nil, fmt.Errorf("%s: elements of %s are no numbers: %w", t.Name, t.Kind, syscall.EINVAL)
	}
	return t.Source.Read()
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
	ctx context.Context
	s   store.Store

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

// Context is for all reads until the tensors are closed.
func (o *Opener) Context() context.Context { return o.ctx }

// Store is where the files are.
func (o *Opener) Store() store.Store { return o.s }

// Below opens files by their names below a directory.
func (o *Opener) Below(dir string) func(string) (io.ReaderAt, error) {
	return func(name string) (io.ReaderAt, error) { return o.Open(path.Join(dir, name)) }
}

func (o *Opener) close() error {
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
	contents := c.Contents()
	if contents == nil {
		return nil, fmt.Errorf("the checkpoint %s has the format %s, whose tensors cannot be read; what its files hold is known to its program only: %w", c.Name, c.Kind, syscall.EINVAL)
	}
	t := &Tensors{byName: map[string]*Tensor{}, files: &Opener{ctx: ctx, s: s, files: map[string]store.Reader{}}}
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
func (t *Tensors) Close() error { return t.files.close() }

// All returns the tensors, sorted by name.
func (t *Tensors) All() []*Tensor { return t.all }

// Find returns a tensor by its name; nil if there is none.
func (t *Tensors) Find(name string) *Tensor { return t.byName[name] }
