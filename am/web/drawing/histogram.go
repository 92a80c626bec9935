package drawing

import (
	"fmt"
	"math"

	"github.com/dustin/go-humanize"

	"holdfast/hdfsckpt/inspect"
)

// Histogram is a drawing of how the values of a tensor are spread.
type Histogram struct {
	Bars  []histogramBar
	Ticks []histogramTick
	Most  string // the greatest count
}

// histogramBar is one bar. X and Width are in percent; Y and Height in the unit of the drawing,
// which is histogramHeight high.
type histogramBar struct {
	X, Width, Y, Height float64
	Title               string
}

type histogramTick struct {
	X      float64
	Anchor string // start, middle or end
	Label  string
}

const histogramHeight = 180

// DrawHistogram draws a histogram, on request with the logarithms of the counts; nil if there
// is nothing to draw.
func DrawHistogram(v inspect.Values, log bool) *Histogram {
	var most int64
	for _, n := range v.Histogram {
		most = max(most, n)
	}
	if most == 0 {
		return nil
	}
	height := func(n int64) float64 {
		part := float64(n) / float64(most)
		if log {
			part = math.Log1p(float64(n)) / math.Log1p(float64(most))
		}
		if n == 0 {
			return 0
		}
		return max(1, math.Round(part*histogramHeight*10)/10) // what is there can be seen
	}
	finite := v.Elements - v.NaN - v.Inf
	bins := v.Histogram
	if v.Min == v.Max {
		bins = bins[:1] // one value
	}
	h := &Histogram{Most: humanize.Comma(most)}
	width := 100 / float64(len(bins))
	// at is a limit between two bins; in halves, for the difference may be infinite.
	at := func(i int) float64 { return v.Min + 2*((v.Max/2-v.Min/2)*(float64(i)/float64(len(bins)))) }
	for i, n := range bins {
		bar := histogramBar{X: Percent(float64(i) * width), Width: Percent(width * .92), Height: height(n)}
		bar.Y = math.Round((histogramHeight-bar.Height)*10) / 10
		share := 100 * float64(n) / float64(max(1, finite))
		if len(bins) == 1 {
			bar.X, bar.Width = 46, 8
			bar.Title = fmt.Sprintf("%.6g: %s", v.Min, humanize.Comma(n))
		} else {
			bar.Title = fmt.Sprintf("%.4g to %.4g: %s, %.3g %%", at(i), at(i+1), humanize.Comma(n), share)
		}
		h.Bars = append(h.Bars, bar)
	}
	if len(bins) == 1 {
		h.Ticks = []histogramTick{{50, "middle", fmt.Sprintf("%.6g", v.Min)}}
		return h
	}
	for i, anchor := range []string{"start", "middle", "middle", "middle", "end"} {
		h.Ticks = append(h.Ticks, histogramTick{Percent(float64(i) * 25), anchor, fmt.Sprintf("%.4g", at(i*len(bins)/4))})
	}
	return h
}
