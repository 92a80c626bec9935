package drawing

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"holdfast/am/web/text"
	"holdfast/proto"
)

const (
	// chartWidth and chartHeight are the units in which lines are drawn; the page scales
	// them to the room that it has.
	chartWidth, chartHeight = 1000, 100
	// readingsShown is how many parts of a chart tell their values.
	readingsShown = 50
	// lineColors is how many lines of a chart are told apart by their colors.
	lineColors = 8
	// maxGap is the longest time without a value that a line crosses, in parts of the
	// chart's width.
	maxGap = 0.05
)

// Chart shows series of one quantity over a part of the job's life.
type Chart struct {
	Title    string
	CSV      string // address of the same as text
	Log      bool   // the vertical axis is logarithmic
	Lines    []line
	Levels   []level
	Readings []reading
}

// line is a series: the mean in each interval, and the range around it.
type line struct {
	Title string
	Class string
	Path  string // of the means, in units of the chart
	Band  string // from the least to the greatest; "" where those are the means
	Last  string // value
}

// level is a tick of the vertical axis.
type level struct {
	Y     float64 // percent
	Label string
}

// reading tells the values in a part of the chart.
type reading struct {
	X, Width float64 // percent
	Title    string
}

// quantity is how values are shown.
type quantity struct {
	format   func(float64) string
	binary   bool // levels are round in KiB, MiB and so on
	fromZero bool
	grows    bool // the last value is the greatest of the last interval, not its mean
	log      bool
}

// NewChart draws the series of a group, on request with a logarithmic vertical axis; nil if
// none has a value in the axis's time.
func NewChart(a *Axis, g Group, log bool) *Chart {
	q := quantityOf(g.List[0])
	q.log = log
	c := &Chart{Title: g.Title, Log: log}
	low, high := math.Inf(1), math.Inf(-1)
	for _, s := range g.List {
		for i, at := range s.Times() {
			if a.Has(at) && s.Has(i) && (!q.log || s.Min[i] > 0) {
				low, high = min(low, float64(s.Min[i])), max(high, float64(s.Max[i]))
			}
		}
	}
	if low > high {
		return nil
	}
	scale := newScale(q, low, high)
	for _, v := range scale.levels() {
		c.Levels = append(c.Levels, level{Percent(100 - scale.at(v)), q.format(v)})
	}
	for i, s := range g.List {
		l := line{Title: nameOf(s), Class: "c" + strconv.Itoa(i%lineColors)}
		l.draw(a, scale, s)
		if last := a.last(s); last >= 0 {
			l.Last = q.format(float64(s.Mean[last]))
			if q.grows {
				l.Last = q.format(float64(s.Max[last]))
			}
		}
		c.Lines = append(c.Lines, l)
	}
	c.read(a, q, g.List)
	return c
}

// last returns the index of the last point of a series within the axis in which something was
// measured; -1 if there is none.
func (a *Axis) last(s *proto.Series) int {
	last := -1
	for i, at := range s.Times() {
		if a.Has(at) && s.Has(i) {
			last = i
		}
	}
	return last
}

// draw makes the line's path, and the band around it.
func (l *line) draw(a *Axis, scale scale, s *proto.Series) {
	type place struct{ x, low, mean, high float64 }
	var parts [][]place
	last := int64(math.MinInt64)
	gap := max(int64(maxGap*float64(a.To-a.From)), 2*s.IntervalMs)
	ranged := false
	for i, at := range s.Times() {
		if !a.Has(at) || !s.Has(i) || scale.log && s.Min[i] <= 0 {
			continue
		}
		if last == math.MinInt64 || at-last > gap {
			parts = append(parts, nil)
		}
		last = at
		y := func(v float32) float64 { return chartHeight - scale.at(float64(v))*chartHeight/100 }
		p := &parts[len(parts)-1]
		*p = append(*p, place{a.X(at) * chartWidth / 100, y(s.Min[i]), y(s.Mean[i]), y(s.Max[i])})
		ranged = ranged || s.Min[i] != s.Max[i]
	}
	var path, band strings.Builder
	for _, part := range parts {
		for i, p := range part {
			fmt.Fprintf(&path, "%c%s %s", "ML"[min(i, 1)], short(p.x), short(p.mean))
		}
		if len(part) == 1 {
			path.WriteString("h0") // a dot
			continue
		}
		if !ranged {
			continue
		}
		for i, p := range part {
			fmt.Fprintf(&band, "%c%s %s", "ML"[min(i, 1)], short(p.x), short(p.high))
		}
		for i := len(part) - 1; i >= 0; i-- {
			fmt.Fprintf(&band, "L%s %s", short(part[i].x), short(part[i].low))
		}
		band.WriteByte('Z')
	}
	l.Path, l.Band = path.String(), band.String()
}

// read says what the values are in each part of the chart in which there are any.
func (c *Chart) read(a *Axis, q quantity, list []*proto.Series) {
	const width = 100.0 / readingsShown
	of := make([][]string, readingsShown)
	at := make([]int64, readingsShown)
	for _, s := range list {
		values := make([]float64, readingsShown)
		counts := make([]int, readingsShown)
		for i, t := range s.Times() {
			if !a.Has(t) || !s.Has(i) {
				continue
			}
			part := min(int(a.X(t)/width), readingsShown-1)
			values[part] += float64(s.Mean[i])
			counts[part]++
			at[part] = t
		}
		for part, n := range counts {
			if n > 0 {
				of[part] = append(of[part], nameOf(s)+" "+q.format(values[part]/float64(n)))
			}
		}
	}
	for part, values := range of {
		if len(values) > 0 {
			c.Readings = append(c.Readings, reading{Percent(float64(part) * width), Percent(width), text.Moment(at[part]) + "\n" + strings.Join(values, "\n")})
		}
	}
}

// scale maps values to the vertical axis.
type scale struct {
	low, high, step float64 // of the logarithms if log
	log             bool
}

// levelsShown is about how many distances there are between levels, and decadesShown the most
// powers of ten that each have one.
const levelsShown, decadesShown = 3, 5

func newScale(q quantity, low, high float64) scale {
	if q.log {
		low, high = math.Log10(low), math.Log10(high)
		s := scale{low, high, math.Max(1, math.Ceil((high-low)/decadesShown)), true}
		if math.Floor(high) < math.Ceil(low) { // no power of ten is between them
			s.low, s.high = math.Floor(low), math.Ceil(high)
		}
		if s.low == s.high { // there is one value, which is a power of ten
			s.low, s.high = s.low-1, s.high+1
		}
		return s
	}
	if q.fromZero {
		low = min(0, low)
	}
	switch {
	case high == low && low == 0:
		high = 1
	case high == low:
		low, high = low-math.Abs(low)/10, high+math.Abs(high)/10
	}
	unit := 1.0
	for q.binary && high >= unit*1024 {
		unit *= 1024
	}
	step := unit * math.Pow(10, math.Floor(math.Log10((high-low)/levelsShown/unit)))
	for _, times := range []float64{5, 2} {
		if (high-low)/(step*times) >= levelsShown-1 {
			step *= times
			break
		}
	}
	return scale{low: low, high: high, step: step}
}

// at returns where a value is, in percent from the bottom.
func (s scale) at(v float64) float64 {
	if s.log {
		v = math.Log10(v)
	}
	return min(max(0, (v-s.low)*100/(s.high-s.low)), 100)
}

// levels are round values within the scale.
func (s scale) levels() (list []float64) {
	for v := math.Ceil(s.low/s.step-1e-9) * s.step; v <= s.high+s.step*1e-9 && len(list) < 10; v += s.step {
		switch {
		case s.log:
			list = append(list, math.Pow(10, v))
		case math.Abs(v) < s.step/1e6: // what is left of a sum
			list = append(list, 0)
		default:
			list = append(list, v)
		}
	}
	return list
}

// short is a coordinate, to a tenth of a unit.
func short(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

// plain shows a number with four digits.
func plain(v float64) string {
	if math.Abs(v) >= 1e4 && math.Abs(v) < 1e15 {
		return humanize.Comma(int64(math.Round(v)))
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// bytesShown shows a number of bytes.
func bytesShown(v float64) string { return cmp.Or(text.Size(int64(v)), "0") }
