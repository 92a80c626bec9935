package proto

import (
	"fmt"
	"iter"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"
)

// AllTasks in SamplesRequest.Tasks selects the series of all tasks.
const AllTasks = "*"

// Names of the series that are no scalars.
const (
	SeriesStep           = "step"
	SeriesStepsPerSecond = "steps_per_second"
	SeriesCompleteStep   = "complete_step"
	SeriesCPU            = "cpu_cores"
	SeriesMemory         = "rss_bytes"
	SeriesSent           = "sent_bytes_per_second"
	SeriesReceived       = "received_bytes_per_second"
	SeriesGPU            = "gpu_percent"
	SeriesGPUMemory      = "gpu_memory_bytes"
)

// Selects reports whether the request asks for a series with this name, of this task ("" if
// it is of several).
func (r *SamplesRequest) Selects(name, task string) bool {
	if len(r.GetNames()) > 0 && !slices.Contains(r.GetNames(), name) {
		return false
	}
	return task == "" || slices.Contains(r.GetTasks(), task) || slices.Contains(r.GetTasks(), AllTasks)
}

// Reduce merges neighboring points until there are at most so many, and returns the series.
// 0 means no limit.
func (s *Series) Reduce(points int) *Series {
	n := len(s.Mean)
	if points <= 0 || n <= points {
		return s
	}
	by := (n + points - 1) / points
	s.IntervalMs *= int64(by)
	none := float32(math.NaN())
	for i := 0; i*by < n; i++ {
		low, sum, count, high := none, 0.0, 0, none
		for j := i * by; j < min(n, (i+1)*by); j++ {
			if !s.Has(j) {
				continue
			}
			if count == 0 {
				low, high = s.Min[j], s.Max[j]
			}
			low, high = min(low, s.Min[j]), max(high, s.Max[j])
			sum += float64(s.Mean[j])
			count++
		}
		s.Min[i], s.Mean[i], s.Max[i] = low, float32(sum/float64(count)), high // not a number without any
	}
	n = (n + by - 1) / by
	s.Min, s.Mean, s.Max = s.Min[:n], s.Mean[:n], s.Max[:n]
	return s
}

// Times returns the index of each point and when its interval begins, in milliseconds since
// 1970.
func (s *Series) Times() iter.Seq2[int, int64] {
	return func(yield func(int, int64) bool) {
		for i := range s.GetMean() {
			if !yield(i, s.StartUnixMs+int64(i)*s.IntervalMs) {
				return
			}
		}
	}
}

// Has reports whether something was measured in point i.
func (s *Series) Has(i int) bool { return s.Mean[i] == s.Mean[i] }

// dropInfinite takes what was measured out of points that are not finite, which cannot be drawn.
func (s *Series) dropInfinite() {
	for i := range s.Mean {
		for _, v := range []float32{s.Min[i], s.Mean[i], s.Max[i]} {
			if v-v != 0 { // nor is it a number if v is none
				none := float32(math.NaN())
				s.Min[i], s.Mean[i], s.Max[i] = none, none, none
			}
		}
	}
}

// Cut drops the points that are not about a time between two moments, in milliseconds since
// 1970, and returns the series; 0 for to means no end.
func (s *Series) Cut(from, to int64) *Series {
	if s.IntervalMs <= 0 {
		return s
	}
	n := int64(len(s.Mean))
	first := min(max(0, (from-s.StartUnixMs)/s.IntervalMs), n)
	end := n
	if to != 0 {
		end = max(first, min(n, (to-s.StartUnixMs)/s.IntervalMs+1))
	}
	s.Min, s.Mean, s.Max = s.Min[first:end], s.Mean[first:end], s.Max[first:end]
	s.StartUnixMs += first * s.IntervalMs
	return s
}

// SelectSamples returns what a request asks for of all samples of a job, which it changes.
func SelectSamples(all *JobSamples, r *SamplesRequest) *JobSamples {
	selected := &JobSamples{Id: all.GetId()}
	pick := func(list []*Series) (picked []*Series) {
		for _, s := range list {
			if r.Selects(s.Name, s.Task) {
				picked = append(picked, s.Reduce(int(r.GetPoints())))
			}
		}
		return picked
	}
	selected.Series, selected.Recent = pick(all.GetSeries()), pick(all.GetRecent())
	return selected
}

// UnmarshalSamples reads the text of SamplesFile. A point that is not finite is one in which
// nothing was measured.
func UnmarshalSamples(text []byte) (*JobSamples, error) {
	s := &JobSamples{}
	if err := proto.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("%s: %w", SamplesFile, err)
	}
	for _, list := range [][]*Series{s.Series, s.Recent} {
		for _, x := range list {
			if len(x.Min) != len(x.Mean) || len(x.Max) != len(x.Mean) || x.IntervalMs <= 0 {
				return nil, fmt.Errorf("%s: the series %s of %s makes no sense", SamplesFile, x.Name, x.Task)
			}
			x.dropInfinite()
		}
	}
	return s, nil
}
