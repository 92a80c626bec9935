package hdfsckpt

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

// Tensors reads the tensors of one checkpoint of TensorFlow or PyTorch. Its
// methods may be called from many goroutines.
type Tensors struct {
	all    []*Tensor
	byName map[string]*Tensor

	ctx context.Context
	s   store.Store

	mu    sync.Mutex
	files map[string]store.Reader
}

// Tensor is a tensor in a checkpoint.
type Tensor struct {
	Name   string // as its framework names it; of PyTorch the keys that lead to it: model.weight
	Kind   tensor.Kind
	Shape  []int64
	Bytes  int64
	File   string // in which it is, relative to the store's root; "" for one in several
	Pieces int    // 1, or in how many it was cut

	read    func() ([]byte, error)
	strings func() ([]string, error) // of a tensor of strings, instead of read
}

// OpenTensors finds the tensors of a checkpoint and reads none of their bytes.
// ctx is for all reads until Close.
func OpenTensors(ctx context.Context, s store.Store, c *Checkpoint) (*Tensors, error) {
	t := &Tensors{ctx: ctx, s: s, byName: map[string]*Tensor{}, files: map[string]store.Reader{}}
	find := map[Kind]func(*Checkpoint) ([]*Tensor, error){
		TensorFlow: t.tensorflow, Torch: t.torch, Distributed: t.distributed,
	}[c.Kind]
	if find == nil {
		return nil, fmt.Errorf("the checkpoint %s is neither TensorFlow's nor PyTorch's; what its files hold is known to its program only: %w", c.Name, syscall.EINVAL)
	}
	var err error
	if t.all, err = find(c); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot find the tensors of the checkpoint %s: %w", c.Name, err), t.Close())
	}
	slices.SortStableFunc(t.all, func(a, b *Tensor) int { return strings.Compare(a.Name, b.Name) })
	for _, x := range t.all {
		t.byName[x.Name] = x
	}
	return t, nil
}

// Close closes the files.
func (t *Tensors) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for _, r := range t.files {
		errs = append(errs, r.Close())
	}
	clear(t.files)
	return errors.Join(errs...)
}

// All are the tensors, sorted by name.
func (t *Tensors) All() []*Tensor { return t.all }

// Find finds a tensor; nil if there is none of that name.
func (t *Tensors) Find(name string) *Tensor { return t.byName[name] }

// Read returns a tensor's elements row by row, little endian. Checksums that
// the checkpoint has of them have been compared.
func (t *Tensor) Read() ([]byte, error) {
	if t.read == nil {
		return nil, fmt.Errorf("%s: elements of %s are no numbers: %w", t.Name, t.Kind, syscall.EINVAL)
	}
	return t.read()
}

// Strings returns the elements of a tensor of strings.
func (t *Tensor) Strings() ([]string, error) {
	if t.strings == nil {
		return nil, fmt.Errorf("%s: elements of %s are no strings: %w", t.Name, t.Kind, syscall.EINVAL)
	}
	return t.strings()
}

// open opens a file once.
func (t *Tensors) open(name string) (store.Reader, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.files[name]; r != nil {
		return r, nil
	}
	r, err := t.s.Open(t.ctx, name)
	if err != nil {
		return nil, err
	}
	t.files[name] = r
	return r, nil
}

// openBelow opens files by their names below a directory.
func (t *Tensors) openBelow(dir string) func(string) (io.ReaderAt, error) {
	return func(name string) (io.ReaderAt, error) { return t.open(path.Join(dir, name)) }
}
