package drawing

import (
	"math"
	"time"

	"holdfast/am/web/text"
	"holdfast/proto"
)

// ticksShown is the most distances between ticks of an axis, which fit a phone.
const ticksShown = 4

// spans are the parts of a job's life that can be shown; 0: all of it.
var spans = []struct {
	Key string
	d   time.Duration
}{{"", 0}, {"24h", 24 * time.Hour}, {"3h", 3 * time.Hour}, {"30m", 30 * time.Minute}, {"5m", 5 * time.Minute}}

// Axis is a part of a job's life, from left to right: the timeline and the plots have it in
// common.
type Axis struct {
	Span  string // key of spans
	Spans []spanLink
	Ticks []tick

	From, To int64 // milliseconds since 1970
}

type spanLink struct {
	Key, Title string
}

type tick struct {
	X     float64 // percent
	Label string
}

// NewAxis returns the axis of the last part of a job's life; nil if it has not begun.
func NewAxis(status *proto.JobStatus, span string, now time.Time) *Axis {
	a := &Axis{From: status.StartedUnixMs, To: now.UnixMilli()}
	if status.EndedUnixMs != 0 {
		a.To = status.EndedUnixMs
	}
	if a.From == 0 {
		return nil
	}
	a.To = max(a.To, a.From+time.Second.Milliseconds())
	life := time.Duration(a.To-a.From) * time.Millisecond
	for _, s := range spans {
		if s.d >= life {
			continue
		}
		title := "all " + text.Duration(life)
		if s.d != 0 {
			title = "last " + s.Key
		}
		a.Spans = append(a.Spans, spanLink{s.Key, title})
		if s.Key == span && s.d != 0 {
			a.Span, a.From = s.Key, a.To-s.d.Milliseconds()
		}
	}
	a.addTicks()
	return a
}

// Has reports whether a moment is within the axis.
func (a *Axis) Has(ms int64) bool { return ms >= a.From && ms <= a.To }

// X returns where a moment is, in percent of the axis's width.
func (a *Axis) X(ms int64) float64 {
	x := float64(ms-a.From) * 100 / float64(a.To-a.From)
	return Percent(min(max(0, x), 100))
}

func (a *Axis) addTicks() {
	span := time.Duration(a.To-a.From) * time.Millisecond
	step, layout := 7*24*time.Hour, "01-02"
	for _, s := range []time.Duration{
		time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 48 * time.Hour,
	} {
		if span/s <= ticksShown {
			step = s
			break
		}
	}
	switch {
	case step < time.Minute:
		layout = "15:04:05"
	case step < 24*time.Hour:
		layout = "15:04"
	}
	at := time.UnixMilli(a.From).UTC().Truncate(step)
	for ; at.UnixMilli() <= a.To; at = at.Add(step) {
		// A label at the very edge would be cut off.
		if x := a.X(at.UnixMilli()); at.UnixMilli() >= a.From && x >= 1 && x <= 95 {
			a.Ticks = append(a.Ticks, tick{x, at.Format(layout)})
		}
	}
}

// Percent rounds a part of a drawing to what can be seen of it.
func Percent(v float64) float64 { return math.Round(v*100) / 100 }
