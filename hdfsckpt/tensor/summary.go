package tensor

import (
	"fmt"
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

// Summarise goes over the bytes of a tensor.
func Summarise(k Kind, b []byte, bins int) (Summary, error) {
	s := Summary{Min: math.Inf(1), Max: math.Inf(-1)}
	number, err := values(k)
	if err != nil {
		return Summary{}, err
	}
	width := k.Size()
	var sum, squares float64
	for at := 0; at+width <= len(b); at += width {
		v := number(b[at:])
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
	}
	finite := s.Elements - s.NaN - s.Inf
	if finite == 0 {
		s.Min, s.Max = 0, 0
		return s, nil
	}
	s.Mean, s.Norm = sum/float64(finite), math.Sqrt(squares)
	s.Histogram = make([]int64, bins)
	for at := 0; at+width <= len(b); at += width {
		v := number(b[at:])
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		bin := 0
		if s.Max > s.Min { // halves, for the difference may be infinite
			bin = min(bins-1, int((v/2-s.Min/2)/(s.Max/2-s.Min/2)*float64(bins)))
		}
		s.Histogram[bin]++
	}
	return s, nil
}
