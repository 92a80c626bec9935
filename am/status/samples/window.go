package samples

import (
	"math"
	"slices"

	"holdfast/proto"
)

// point sums up what was measured in one interval; mean is not a number if that is nothing.
type point struct{ min, mean, max float32 }

var nothing = point{float32(math.NaN()), float32(math.NaN()), float32(math.NaN())}

func (p point) empty() bool { return p.mean != p.mean }

// finite reports whether it is of numbers, none of which is too large.
func (p point) finite() bool {
	for _, v := range []float32{p.min, p.mean, p.max} {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return false
		}
	}
	return true
}

// merge returns the point of two neighbors, which count alike.
func merge(a, b point) point {
	switch {
	case a.empty():
		return b
	case b.empty():
		return a
	}
	return point{min(a.min, b.min), between(a.mean, b.mean, 2), max(a.max, b.max)}
}

// between returns what lies one part of so many parts of the way from a to b, which may be further
// from each other than any number is from 0.
func between(a, b float32, parts uint32) float32 {
	return float32(float64(a) + (float64(b)-float64(a))/float64(parts))
}

// window is a series of at most limit points of equal length in time. When time passes its
// end, a window that slides drops its oldest points; another merges its points in pairs,
// and its interval doubles.
type window struct {
	start, interval int64 // milliseconds: since 1970, and of a point
	limit           int32 // even
	slides          bool
	count           uint32 // of the values in the last point
	points          []point
}

// add takes in a value that was measured at a time, or the sum of several; one that is not finite
// is left out. The clock may go backwards: then the value counts for the last point.
func (w *window) add(at int64, p point) {
	if !p.finite() {
		return
	}
	i := w.reach(at)
	if i < len(w.points)-1 {
		i = len(w.points) - 1
	}
	w.grow(i + 1)
	for len(w.points) <= i {
		w.points = append(w.points, nothing)
		w.count = 0
	}
	last := &w.points[i]
	if w.count == 0 || last.empty() {
		*last, w.count = p, 1
		return
	}
	w.count++
	last.min, last.max = min(last.min, p.min), max(last.max, p.max)
	last.mean = between(last.mean, p.mean, w.count)
}

// reach returns the index of the point that a time belongs to, for which it makes room.
func (w *window) reach(at int64) int {
	i := max(0, at-w.start) / w.interval
	if over := i - int64(w.limit) + 1; w.slides && over > 0 {
		w.points = slices.Delete(w.points, 0, int(min(over, int64(len(w.points)))))
		w.start += over * w.interval
		return int(w.limit) - 1
	}
	for i >= int64(w.limit) {
		w.halve()
		i = max(0, at-w.start) / w.interval
	}
	return int(i)
}

// halve merges points in pairs.
func (w *window) halve() {
	for i := 0; i < len(w.points); i += 2 {
		p := w.points[i]
		if i+1 < len(w.points) {
			p = merge(p, w.points[i+1])
		}
		w.points[i/2] = p
	}
	w.points = w.points[:(len(w.points)+1)/2]
	w.interval *= 2
	w.count = min(w.count, 1)
}

// grow sees to room for n points, without more of it than the limit.
func (w *window) grow(n int) {
	if n <= cap(w.points) {
		return
	}
	all := make([]point, len(w.points), min(max(8, 2*cap(w.points), n), int(w.limit)))
	copy(all, w.points)
	w.points = all
}

// series writes the window into a series.
func (w *window) series(s *proto.Series) *proto.Series {
	s.StartUnixMs, s.IntervalMs = w.start, w.interval
	s.Min, s.Mean, s.Max = make([]float32, len(w.points)), make([]float32, len(w.points)), make([]float32, len(w.points))
	for i, p := range w.points {
		s.Min[i], s.Mean[i], s.Max[i] = p.min, p.mean, p.max
	}
	return s
}

// restore reads what series has written; what does not fit is ignored.
func (w *window) restore(s *proto.Series) {
	n := len(s.Mean)
	if s.IntervalMs <= 0 || len(s.Min) != n || len(s.Max) != n || n > int(w.limit) {
		return
	}
	w.start, w.interval = s.StartUnixMs, s.IntervalMs
	w.points, w.count = nil, 1
	w.grow(n)
	for i := range n {
		w.points = append(w.points, point{s.Min[i], s.Mean[i], s.Max[i]})
	}
}
