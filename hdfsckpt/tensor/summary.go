package tensor

import (
	"fmt"
	"io"
	"math"
)

// Summary describes the numbers of a tensor; of complex numbers, their absolute
// values. Min, Max, Mean, Norm and Histogram are of the finite ones.
type Summary struct {
	Elements, NaN, Inf   int64
	Min, Max, Mean, Norm float64
	// Histogram counts in equal steps from Min to Max.
	Histogram []int64
}

// values returns what makes a real number of an element.
func values(k Kind) (func([]byte) float64, error) {
	if number := k.Number(); number != nil {
		return number, nil
	}
	if k.Size() > 0 {
		if _, _, ok := k.Complex(make([]byte, k.Size())); ok {
			return func(b []byte) float64 { re, im, _ := k.Complex(b); return math.Hypot(re, im) }, nil
		}
	}
	return nil, fmt.Errorf("elements of %s are no numbers", k)
}

// Summarise reads the elements of a tensor, whose order does not matter, and again for the
// histogram, which needs their range. open begins to read them. It takes a bounded amount of
// memory.
func Summarise(k Kind, open func() (io.Reader, error), bins int) (Summary, error) {
	s := Summary{Min: math.Inf(1), Max: math.Inf(-1)}
	number, err := values(k)
	if err != nil {
		return Summary{}, err
	}
	var sum, squares float64
	err = each(k, number, open, func(v float64) {
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
	if s.Max == s.Min {
		s.Histogram = make([]int64, bins)
		s.Histogram[0] = finite
		return s, nil
	}
	s.Histogram, err = Histogram(k, open, bins, s.Min, s.Max)
	return s, err
}

// Histogram counts the elements of a tensor in equal steps from least to most, which differ; those
// beyond count in the first and the last.
func Histogram(k Kind, open func() (io.Reader, error), bins int, least, most float64) ([]int64, error) {
	number, err := values(k)
	if err != nil {
		return nil, err
	}
	counts := make([]int64, bins)
	return counts, each(k, number, open, func(v float64) {
		if !math.IsNaN(v) && !math.IsInf(v, 0) { // halves, for the difference may be infinite
			counts[max(0, min(bins-1, int((v/2-least/2)/(most/2-least/2)*float64(bins))))]++
		}
	})
}

// blockSize is how many bytes are read at a time; a whole number of elements of any kind.
const blockSize = 256 << 10

// each calls f with each element as a number.
func each(k Kind, number func([]byte) float64, open func() (io.Reader, error), f func(float64)) error {
	in, err := open()
	if err != nil {
		return err
	}
	width := k.Size()
	block := make([]byte, blockSize)
	for {
		n, err := io.ReadFull(in, block)
		for at := 0; at+width <= n; at += width {
			f(number(block[at:]))
		}
		switch {
		case err == io.EOF || err == io.ErrUnexpectedEOF && n%width == 0:
			return nil
		case err == io.ErrUnexpectedEOF:
			return fmt.Errorf("it ends within an element of %s", k)
		case err != nil:
			return err
		}
	}
}
