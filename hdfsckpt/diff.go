package hdfsckpt

import (
	"bytes"
	"fmt"
	"math"
	"slices"

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
}

// Diff compares two checkpoints, in the order of the tensors' names. Tensors
// that are the same are left out.
func Diff(a, b *format.Tensors) ([]Change, error) {
	var changes []Change
	for _, x := range a.All() {
		y := b.Find(x.Name)
		if y == nil {
			changes = append(changes, Change{Name: x.Name, Removed: true, From: x})
			continue
		}
		c, err := compare(x, y)
		if err != nil {
			return nil, fmt.Errorf("comparing the tensor %s: %w", x.Name, err)
		}
		if c.Reshaped || c.Different {
			changes = append(changes, c)
		}
	}
	for _, y := range b.All() {
		if a.Find(y.Name) == nil {
			changes = append(changes, Change{Name: y.Name, Added: true, To: y})
		}
	}
	return changes, nil
}

func compare(from, to *format.Tensor) (Change, error) {
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
	x, err := from.Read()
	if err != nil {
		return c, err
	}
	y, err := to.Read()
	if err != nil {
		return c, err
	}
	if bytes.Equal(x, y) {
		return c, nil
	}
	c.Different = true
	c.Norm, c.FormerNorm = distance(from.Kind, x, y)
	return c, nil
}

// distance is the norm of y - x, and that of x; 0 where there is none.
func distance(k tensor.Kind, x, y []byte) (float64, float64) {
	part, number := k, k.Number()
	if half, ok := map[tensor.Kind]tensor.Kind{"complex32": "float16", "complex64": "float32", "complex128": "float64"}[k]; ok {
		part, number = half, half.Number() // the norm is that of the parts
	}
	if number == nil || len(x) != len(y) {
		return 0, 0
	}
	var squares, former float64
	for at := 0; at+part.Size() <= len(x); at += part.Size() {
		u, v := number(x[at:]), number(y[at:])
		squares += (v - u) * (v - u)
		former += u * u
	}
	return math.Sqrt(squares), math.Sqrt(former)
}
