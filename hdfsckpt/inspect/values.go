package inspect

import (
	"context"
	"io"
	"math"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/tensor"
)

// Values summarises a tensor in JSON. A mean or norm that is not finite is null.
type Values struct {
	Name      string      `json:"name"`
	DType     tensor.Kind `json:"dtype"`
	Shape     []int64     `json:"shape"`
	Elements  int64       `json:"elements"`
	NaN       int64       `json:"nan"`
	Inf       int64       `json:"inf"`
	Min       float64     `json:"min"`
	Max       float64     `json:"max"`
	Mean      *float64    `json:"mean"`
	Norm      *float64    `json:"norm"`
	Histogram []int64     `json:"histogram"` // equal steps from min to max
}

// Progress is told, now and again, how many bytes were read and how many that will be at most.
type Progress func(done, total int64)

// Summarise reads a tensor of numbers, and holds no more than limit bytes of it in memory: see
// format.Tensor.Elements. Complex numbers count by their absolute values.
func Summarise(ctx context.Context, x *format.Tensor, bins int, limit int64, progress Progress) (Values, error) {
	m := meter{ctx: ctx, total: 2 * x.Bytes, progress: progress} // it is read twice
	s, err := tensor.Summarise(x.Kind, func() (io.Reader, error) {
		r, err := x.Elements(limit)
		return m.reader(r), err
	}, bins)
	return Values{
		Name: x.Name, DType: x.Kind, Shape: append([]int64{}, x.Shape...), Elements: s.Elements,
		NaN: s.NaN, Inf: s.Inf, Min: s.Min, Max: s.Max, Mean: finite(s.Mean), Norm: finite(s.Norm), Histogram: s.Histogram,
	}, err
}

// SummariseBoth summarises two tensors as Summarise does, but with histograms in the same steps:
// from the least value of either to the greatest.
func SummariseBoth(ctx context.Context, x, y *format.Tensor, bins int, limit int64, progress Progress) (both [2]Values, least, most float64, err error) {
	done, total := int64(0), 3*(x.Bytes+y.Bytes)
	part := func(n, _ int64) {
		if progress != nil {
			progress(done+n, total)
		}
	}
	tensors := []*format.Tensor{x, y}
	for i, t := range tensors {
		if both[i], err = Summarise(ctx, t, bins, limit, part); err != nil {
			return both, 0, 0, err
		}
		done += 2 * t.Bytes
	}
	least, most = min(both[0].Min, both[1].Min), max(both[0].Max, both[1].Max)
	for i, t := range tensors {
		if least == most || both[i].Histogram == nil {
			continue
		}
		m := meter{ctx: ctx, total: t.Bytes, progress: part}
		both[i].Histogram, err = tensor.Histogram(t.Kind, func() (io.Reader, error) {
			r, err := t.Elements(limit)
			return m.reader(r), err
		}, bins, least, most)
		if err != nil {
			return both, 0, 0, err
		}
		done += t.Bytes
	}
	return both, least, most, nil
}

func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// meter counts what is read, and fails when ctx has ended.
type meter struct {
	ctx         context.Context
	done, total int64
	progress    Progress
}

func (m *meter) count(n int64) error {
	m.done += n
	if m.progress != nil {
		m.progress(m.done, m.total)
	}
	return m.ctx.Err()
}

func (m *meter) reader(r io.Reader) io.Reader { return &meterReader{m, r} }

type meterReader struct {
	*meter
	r io.Reader
}

func (m *meterReader) Read(b []byte) (int, error) {
	n, err := m.r.Read(b)
	if ended := m.count(int64(n)); ended != nil {
		err = ended
	}
	return n, err
}
