package web

import (
	"time"

	"holdfast/proto"
)

// ticksShown is the most distances between ticks of an axis, which fit a phone.
const ticksShown = 4

// spans are the parts of a job's life that can be shown; 0: all of it.
var spans = []struct {
	Key string
	d   time.Duration
}{{"", 0}, {"24h", 24 * time.Hour}, {"3h", 3 * time.Hour}, {"30m", 30 * time.Minute}, {"5m", 5 * time.Minute}}

// axis is a part of a job's life, from left to right: the timeline and the plots have it in
// common.
type axis struct {
	Span  string // key of spans
	Spans []spanLink
	Ticks []tick

	from, to int64 // milliseconds since 1970
}

type spanLink struct {
	Key, Title string
}

type tick struct {
	X     float64 // percent
	Label string
}

// newAxis returns the axis of the last part of a job's life; nil if it has not begun.
func newAxis(status *proto.JobStatus, span string, now time.Time) *axis {
	a := &axis{from: status.StartedUnixMs, to: now.UnixMilli()}
	if status.EndedUnixMs != 0 {
		a.to = status.EndedUnixMs
	}
	if a.from == 0 {
		return nil
	}
	a.to = max(a.to, a.from+time.Second.Milliseconds())
	life := time.Duration(a.to-a.from) * time.Millisecond
	for _, s := range spans {
		if s.d >= life {
			continue
		}
		title := "all " + duration(life)
		if s.d != 0 {
			title = "last " + s.Key
		}
		a.Spans = append(a.Spans, spanLink{s.Key, title})
		if s.Key == span && s.d != 0 {
			a.Span, a.from = s.Key, a.to-s.d.Milliseconds()
		}
	}
	a.addTicks()
	return a
}

// has reports whether a moment is within the axis.
func (a *axis) has(ms int64) bool { return ms >= a.from && ms <= a.to }

// x returns where a moment is, in percent of the axis's width.
func (a *axis) x(ms int64) float64 {
	x := float64(ms-a.from) * 100 / float64(a.to-a.from)
	return percent(min(max(0, x), 100))
}

func (a *axis) addTicks() {
	span := time.Duration(a.to-a.from) * time.Millisecond
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
	at := time.UnixMilli(a.from).UTC().Truncate(step)
	for ; at.UnixMilli() <= a.to; at = at.Add(step) {
		// A label at the very edge would be cut off.
		if x := a.x(at.UnixMilli()); at.UnixMilli() >= a.from && x >= 1 && x <= 95 {
			a.Ticks = append(a.Ticks, tick{x, at.Format(layout)})
		}
	}
}
