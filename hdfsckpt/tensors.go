package hdfsckpt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"syscall"

	"holdfast/hdfsckpt/tfbundle"
)

// Tensors reads the tensors of one TensorFlow checkpoint. Its methods may be
// called from many goroutines.
type Tensors struct {
	Index *tfbundle.Index

	ctx  context.Context
	s    Store
	name string

	mu     sync.Mutex
	shards map[int]Reader
}

// OpenTensors reads a checkpoint's index. ctx is for all reads until Close.
func OpenTensors(ctx context.Context, s Store, c *Checkpoint) (*Tensors, error) {
	if c.Kind != TensorFlow {
		return nil, fmt.Errorf("the checkpoint %s is not TensorFlow's; what its files hold is known to its program only: %w", c.Name, syscall.EINVAL)
	}
	x, err := ReadIndex(ctx, s, c.Name)
	if err != nil {
		return nil, err
	}
	return &Tensors{Index: x, ctx: ctx, s: s, name: c.Name, shards: map[int]Reader{}}, nil
}

// Close closes the files.
func (t *Tensors) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for _, r := range t.shards {
		errs = append(errs, r.Close())
	}
	clear(t.shards)
	return errors.Join(errs...)
}

// Find finds a tensor; nil if there is none of that name.
func (t *Tensors) Find(name string) *tfbundle.Entry {
	for _, e := range t.Index.Tensors() {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// Read returns a tensor's bytes, checked (tfbundle.Index.Read).
func (t *Tensors) Read(e *tfbundle.Entry) ([]byte, error) { return t.Index.Read(t.open, e) }

// Strings returns the elements of a tensor of strings.
func (t *Tensors) Strings(e *tfbundle.Entry) ([]string, error) { return t.Index.Strings(t.open, e) }

func (t *Tensors) open(shard int) (io.ReaderAt, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.shards[shard]; r != nil {
		return r, nil
	}
	r, err := t.s.Open(t.ctx, tfbundle.DataFile(t.name, shard, t.Index.Header.Shards))
	if err != nil {
		return nil, err
	}
	t.shards[shard] = r
	return r, nil
}

// Summary describes the numbers of a tensor. Min, Max, Mean, Norm and Histogram
// are of the finite ones.
type Summary struct {
	Elements, NaN, Inf   int64
	Min, Max, Mean, Norm float64
	// Histogram counts in equal steps from Min to Max.
	Histogram []int64
}

// Summarise goes over the bytes of a tensor of real numbers.
func Summarise(d tfbundle.DType, b []byte, bins int) (Summary, error) {
	s := Summary{Min: math.Inf(1), Max: math.Inf(-1)}
	var sum, squares float64
	err := tfbundle.Numbers(d, b, func(v float64) {
		s.Elements++
		switch {
		case math.IsNaN(v):
			s.NaN++
		case math.IsInf(v, 0):
			s.Inf++
		default:
			s.Min, s.Max = min(s.Min, v), max(s.Max, v)
			sum += v
			squares += v * v
		}
	})
	if err != nil {
		return Summary{}, err
	}
	finite := s.Elements - s.NaN - s.Inf
	if finite == 0 {
		s.Min, s.Max = 0, 0
		return s, nil
	}
	s.Mean, s.Norm = sum/float64(finite), math.Sqrt(squares)
	s.Histogram = make([]int64, bins)
	err = tfbundle.Numbers(d, b, func(v float64) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return
		}
		at := 0
		if s.Max > s.Min {
			at = min(bins-1, int((v/2-s.Min/2)/(s.Max/2-s.Min/2)*float64(bins)))
		}
		s.Histogram[at]++
	})
	return s, err
}

// Change is how a tensor differs between two checkpoints.
type Change struct {
	Name       string
	Added      bool // only in the second
	Removed    bool // only in the first
	From, To   *tfbundle.Entry
	Reshaped   bool    // another shape or element type
	Different  bool    // other values
	Norm       float64 // of the difference, of real numbers
	FormerNorm float64 // of the first
}

// Diff compares two checkpoints, in the order of the tensors' names. Tensors
// that are the same are left out.
func Diff(a, b *Tensors) ([]Change, error) {
	var changes []Change
	seen := map[string]bool{}
	for _, e := range a.Index.Tensors() {
		seen[e.Name] = true
		o := b.Find(e.Name)
		if o == nil {
			changes = append(changes, Change{Name: e.Name, Removed: true, From: e})
			continue
		}
		c, err := compare(a, b, e, o)
		if err != nil {
			return nil, fmt.Errorf("comparing the tensor %s: %w", e.Name, err)
		}
		if c.Reshaped || c.Different {
			changes = append(changes, c)
		}
	}
	for _, e := range b.Index.Tensors() {
		if !seen[e.Name] {
			changes = append(changes, Change{Name: e.Name, Added: true, To: e})
		}
	}
	return changes, nil
}

func compare(a, b *Tensors, e, o *tfbundle.Entry) (Change, error) {
	c := Change{Name: e.Name, From: e, To: o}
	if e.DType != o.DType || fmt.Sprint(e.Shape) != fmt.Sprint(o.Shape) {
		c.Reshaped = true
		return c, nil
	}
	if e.DType == tfbundle.String {
		x, err := a.Strings(e)
		if err != nil {
			return c, err
		}
		y, err := b.Strings(o)
		c.Different = fmt.Sprintf("%q", x) != fmt.Sprintf("%q", y)
		return c, err
	}
	x, err := a.Read(e)
	if err != nil {
		return c, err
	}
	y, err := b.Read(o)
	if err != nil {
		return c, err
	}
	if string(x) == string(y) {
		return c, nil
	}
	c.Different = true
	var former []float64
	if tfbundle.Numbers(e.DType, x, func(v float64) { former = append(former, v) }) != nil {
		return c, nil // complex numbers and the like: different is all that is said
	}
	i, squares, formerSquares := 0, 0.0, 0.0
	err = tfbundle.Numbers(e.DType, y, func(v float64) {
		squares += (v - former[i]) * (v - former[i])
		formerSquares += former[i] * former[i]
		i++
	})
	c.Norm, c.FormerNorm = math.Sqrt(squares), math.Sqrt(formerSquares)
	return c, err
}
