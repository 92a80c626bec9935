package hdfsckpt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"syscall"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/tensor"
)

// Change is how a tensor differs between two checkpoints.
type Change struct {
	Name       string
	Added      bool // only in the second
	Removed    bool // only in the first
	From, To   *format.Tensor
	Reshaped   bool    // another shape or kind of elements
	Different  bool    // other values
	Norm       float64 // of the difference; 0 if the elements are no numbers
	FormerNorm float64 // of the first
	// NotCompared is why the values were not compared; empty for others.
	NotCompared string
}

// DiffOptions bound and watch a comparison.
type DiffOptions struct {
	// Limit is how many bytes of memory the elements of a tensor may take. Tensors that have
	// to be put together in memory, and are larger, are not compared.
	Limit int64
	// Select reports whether a tensor of a name is to be compared; nil: all are.
	Select func(name string) bool
	// Progress is told, now and again, how many bytes more were read. An error ends the
	// comparison. May be nil.
	Progress func(n int64) error
}

// Diff compares two checkpoints, in the order of the tensors' names. Tensors
// that are the same are left out.
func Diff(a, b *format.Tensors, o DiffOptions) ([]Change, error) {
	if o.Progress == nil {
		o.Progress = func(int64) error { return nil }
	}
	if o.Select == nil {
		o.Select = func(string) bool { return true }
	}
	var changes []Change
	for _, x := range a.All() {
		if !o.Select(x.Name) {
			continue
		}
		y := b.Find(x.Name)
		if y == nil {
			changes = append(changes, Change{Name: x.Name, Removed: true, From: x})
			continue
		}
		c, err := compare(x, y, o)
		if errors.Is(err, syscall.EFBIG) || errors.Is(err, syscall.ENOTSUP) || err != nil && x.Kind.Size() == 0 {
			c.NotCompared, err = err.Error(), nil
		}
		if err != nil {
			return nil, fmt.Errorf("comparing the tensor %s: %w", x.Name, err)
		}
		if c.Reshaped || c.Different || c.NotCompared != "" {
			changes = append(changes, c)
		}
	}
	for _, y := range b.All() {
		if o.Select(y.Name) && a.Find(y.Name) == nil {
			changes = append(changes, Change{Name: y.Name, Added: true, To: y})
		}
	}
	return changes, nil
}

func compare(from, to *format.Tensor, o DiffOptions) (Change, error) {
	c := Change{Name: from.Name, From: from, To: to}
	if from.Kind != to.Kind || !slices.Equal(from.Shape, to.Shape) {
		c.Reshaped = true
		return c, nil
	}
	if from.Kind == tensor.StringKind {
		x, err := from.Strings()
		if err != nil {
			return c, err
		}
		y, err := to.Strings()
		c.Different = !slices.Equal(x, y)
		return c, err
	}
	x, err := from.Rows(o.Limit)
	if err != nil {
		return c, err
	}
	y, err := to.Rows(o.Limit)
	if err != nil {
		return c, err
	}
	d := distance{}
	d.part, d.number = from.Kind, from.Kind.Number()
	if half, ok := map[tensor.Kind]tensor.Kind{"complex32": "float16", "complex64": "float32", "complex128": "float64"}[from.Kind]; ok {
		d.part, d.number = half, half.Number() // the norm is that of the parts
	}
	if err := d.read(x, y, o.Progress); err != nil {
		return c, err
	}
	if d.different {
		c.Different, c.Norm, c.FormerNorm = true, math.Sqrt(d.squares), math.Sqrt(d.former)
	}
	return c, nil
}

// distance is how far two tensors are from each other.
type distance struct {
	part            tensor.Kind
	number          func([]byte) float64 // nil where elements are no numbers
	different       bool
	squares, former float64 // of the difference, and of the first
}

// compareSize is how many bytes of each tensor are compared at a time; a whole number of
// elements of any kind.
const compareSize = 256 << 10

// read reads both tensors to their ends.
func (d *distance) read(x, y io.Reader, progress func(n int64) error) error {
	a, b := make([]byte, compareSize), make([]byte, compareSize)
	for {
		n, err := io.ReadFull(x, a)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return err
		}
		m, err := io.ReadFull(y, b)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return err
		}
		d.add(a[:n], b[:m])
		if err := progress(int64(n + m)); err != nil {
			return err
		}
		if n < len(a) && m < len(b) {
			return nil
		}
	}
}

func (d *distance) add(x, y []byte) {
	if !bytes.Equal(x, y) {
		d.different = true
	}
	if d.number == nil || len(x) != len(y) {
		return
	}
	for at := 0; at+d.part.Size() <= len(x); at += d.part.Size() {
		u, v := d.number(x[at:]), d.number(y[at:])
		d.squares += (v - u) * (v - u)
		d.former += u * u
	}
}
