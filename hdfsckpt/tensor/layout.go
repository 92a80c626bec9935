package tensor

import (
	"fmt"
	"slices"
)

// Elements returns the number of elements of a shape; false if it is no shape: a
// negative dimension, or more than an int64 can count in bytes.
func Elements(shape []int64) (int64, bool) {
	n := int64(1)
	for _, d := range shape {
		if d < 0 || d > 0 && n > (1<<56)/d {
			return 0, false
		}
		n *= d
	}
	return n, true
}

// Place copies the elements of a part, which begins at start and has the
// lengths given, to where they belong in the whole tensor of that shape. An
// element has width bytes.
func Place(whole []byte, shape []int64, part []byte, start, lengths []int64, width int) error {
	if len(start) != len(shape) || len(lengths) != len(shape) {
		return fmt.Errorf("a part of %d dimensions of a tensor of %d", len(start), len(shape))
	}
	for i := range shape {
		if start[i] < 0 || lengths[i] < 0 || start[i] > shape[i] || lengths[i] > shape[i]-start[i] {
			return fmt.Errorf("the part is not within the shape %v", shape)
		}
	}
	n, ok := Elements(lengths)
	all, fits := Elements(shape)
	if !ok || !fits || n*int64(width) != int64(len(part)) || all*int64(width) != int64(len(whole)) {
		return fmt.Errorf("the part has %d bytes instead of %d", len(part), n*int64(width))
	}
	if len(part) == 0 {
		return nil
	}
	strides := make([]int64, len(shape))
	step, first := int64(width), int64(0)
	for i := len(shape) - 1; i >= 0; i-- {
		strides[i] = step
		first += start[i] * step
		step *= shape[i]
	}
	eachRow(lengths, strides, width, func(at, row int64) {
		copy(whole[first+at:first+at+row], part)
		part = part[row:]
	})
	return nil
}

// Consecutive returns the order in which parts of a tensor of that shape, one after the other,
// are all of it row by row; false if there is none. A part begins at its start and has its
// lengths.
func Consecutive(shape []int64, starts, lengths [][]int64) (order []int, ok bool) {
	at := make([]int64, len(starts)) // elements before each part
	order = make([]int, len(starts))
	for i := range starts {
		if at[i], ok = place(shape, starts[i], lengths[i]); !ok {
			return nil, false
		}
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(max(-1, min(1, at[a]-at[b]))) })
	next := int64(0)
	for _, i := range order {
		n, _ := Elements(lengths[i])
		if n > 0 && at[i] != next {
			return nil, false
		}
		next += n
	}
	all, fits := Elements(shape)
	return order, fits && next == all
}

// place returns how many elements of the whole come before a part, if the part is one run of
// them: a single row of each dimension but one, and all of those after that.
func place(shape, start, lengths []int64) (at int64, ok bool) {
	if len(start) != len(shape) || len(lengths) != len(shape) {
		return 0, false
	}
	if _, ok := Elements(shape); !ok {
		return 0, false
	}
	single := true
	for i, d := range shape {
		if start[i] < 0 || lengths[i] < 0 || start[i] > d || lengths[i] > d-start[i] {
			return 0, false
		}
		if !single && lengths[i] != d {
			return 0, false
		}
		single = single && lengths[i] == 1
		at = at*d + start[i]
	}
	return at, true
}

// Gather puts the elements of a tensor that lie in storage with strides (in
// elements, from the element offset on) together.
func Gather(storage []byte, offset int64, shape, strides []int64, width int) ([]byte, error) {
	span, err := Span(offset, shape, strides)
	if err != nil {
		return nil, err
	}
	if span > int64(len(storage))/int64(width) {
		return nil, fmt.Errorf("it reaches to element %d of a storage of %d", span, len(storage)/width)
	}
	n, _ := Elements(shape)
	if n == 0 {
		return nil, nil
	}
	if Contiguous(shape, strides) {
		return storage[offset*int64(width) : (offset+n)*int64(width)], nil
	}
	if n > maxRepeated && n > int64(len(storage)) {
		return nil, fmt.Errorf("it repeats %d bytes of storage in %d elements", len(storage), n)
	}
	inBytes := make([]int64, len(strides))
	for i, s := range strides {
		inBytes[i] = s * int64(width)
	}
	out := make([]byte, 0, n*int64(width))
	eachRow(shape, inBytes, width, func(at, row int64) {
		from := offset*int64(width) + at
		out = append(out, storage[from:from+row]...)
	})
	return out, nil
}

// maxRepeated is how many elements strides of 0 may make of less storage.
const maxRepeated = 1 << 20

// Span returns the element after the last one that a tensor with strides reaches.
// Strides and offset must not be negative, as PyTorch's are not.
func Span(offset int64, shape, strides []int64) (int64, error) {
	n, ok := Elements(shape)
	if !ok || len(strides) != len(shape) || offset < 0 || offset > 1<<56 {
		return 0, fmt.Errorf("a shape of %v with the strides %v from %d", shape, strides, offset)
	}
	if n == 0 {
		return offset, nil
	}
	last := offset
	for i, d := range shape {
		if strides[i] < 0 || d > 1 && strides[i] > (1<<56)/(d-1) {
			return 0, fmt.Errorf("a shape of %v with the strides %v from %d", shape, strides, offset)
		}
		if last += (d - 1) * strides[i]; last > 1<<56 {
			return 0, fmt.Errorf("a shape of %v with the strides %v from %d", shape, strides, offset)
		}
	}
	return last + 1, nil
}

// Contiguous reports whether elements with strides lie row by row without gaps.
func Contiguous(shape, strides []int64) bool {
	step := int64(1)
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i] != 1 && strides[i] != step {
			return false
		}
		step *= shape[i]
	}
	return true
}

// eachRow calls f with the place and the length, in bytes, of each longest run
// of elements that lie together along the last dimension, in row order.
// lengths has no 0; strides are in bytes.
func eachRow(lengths, strides []int64, width int, f func(at, row int64)) {
	outer, row := len(lengths), int64(width)
	if outer > 0 && strides[outer-1] == row {
		outer--
		row *= lengths[outer]
	}
	index := make([]int64, outer)
	for {
		at := int64(0)
		for i, x := range index {
			at += x * strides[i]
		}
		f(at, row)
		i := outer - 1
		for ; i >= 0; i-- {
			if index[i]++; index[i] < lengths[i] {
				break
			}
			index[i] = 0
		}
		if i < 0 {
			return
		}
	}
}
