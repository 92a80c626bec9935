package drawing

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"holdfast/am/web/text"
	"holdfast/proto"
)

// ticksShown is the most distances between ticks of an axis, which fit a phone.
const ticksShown = 4

// spans are the last parts of a job's life that can be shown; 0: all of it.
var spans = []span{{"", 0}, {"24h", 24 * time.Hour}, {"3h", 3 * time.Hour}, {"30m", 30 * time.Minute}, {"5m", 5 * time.Minute}}

type span struct {
	Key string
	d   time.Duration
}

// leastPart is the shortest part of a job's life that is shown.
const leastPart = 10 * time.Second

// Part is a part of a job's life, as the parameters of an address say it: span is the last so
// long, and from and to are moments, of which one can be left out. The zero Part is all of it.
type Part struct {
	Span     string // key of spans
	From, To int64  // milliseconds since 1970; 0: not given
}

// ParsePart reads a part from the parameters span, from and to. What is none of theirs is left
// out. Moments are in UTC where they do not say another zone.
func ParsePart(p url.Values) Part {
	q := Part{From: parseMoment(p.Get("from")), To: parseMoment(p.Get("to"))}
	if q.From == 0 && q.To == 0 {
		q.Span = p.Get("span")
	}
	return q
}

// CheckPart returns an error for parameters of which ParsePart would leave one out, and for those of
// a part without length.
func CheckPart(p url.Values) error {
	if key := p.Get("span"); !slices.ContainsFunc(spans, func(s span) bool { return s.Key == key }) {
		return fmt.Errorf("span=%s is none of 24h, 3h, 30m and 5m", key)
	}
	for _, name := range []string{"from", "to"} {
		if at := p.Get(name); at != "" && parseMoment(at) == 0 {
			return fmt.Errorf("%s=%s is no time: write it as in 2026-11-25T02:00", name, at)
		}
	}
	if q := ParsePart(p); q.From != 0 && q.To != 0 && q.To <= q.From {
		return fmt.Errorf("from=%s is not before to=%s", p.Get("from"), p.Get("to"))
	}
	return nil
}

// momentLayouts are how moments are written: in addresses, by browsers' own fields, and by hand.
var momentLayouts = []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime, "2006-01-02 15:04", time.DateOnly}

func parseMoment(s string) int64 {
	for _, layout := range momentLayouts {
		if at, err := time.Parse(layout, strings.TrimSpace(s)); err == nil && at.Year() >= 1970 && at.Year() < 10000 {
			return at.UnixMilli()
		}
	}
	return 0
}

// Put sets the parameters that say the part, and removes those of another.
func (q Part) Put(p url.Values) {
	for key, value := range map[string]string{"span": q.Span, "from": momentOf(q.From, time.RFC3339), "to": momentOf(q.To, time.RFC3339)} {
		if p.Del(key); value != "" {
			p.Set(key, value)
		}
	}
}

// Values returns the parameters that say the part.
func (q Part) Values() url.Values {
	p := url.Values{}
	q.Put(p)
	return p
}

// FromField and ToField are the moments as fields of browsers (datetime-local) take them.
func (q Part) FromField() string { return momentOf(q.From, "2006-01-02T15:04:05") }
func (q Part) ToField() string   { return momentOf(q.To, "2006-01-02T15:04:05") }

func momentOf(ms int64, layout string) string {
	if ms == 0 {
		return ""
	}
	return time.UnixMilli(ms).UTC().Format(layout)
}

// Axis is a part of a job's life, from left to right: the timeline and the plots have it in
// common.
type Axis struct {
	Part  Part       // as it was asked for, as far as it can be shown
	Links []partLink // to others
	Ticks []tick

	From, To   int64 // milliseconds since 1970
	Begin, End int64 // of the job; End is now while it runs
}

// partLink names another part of the job's life.
type partLink struct {
	Part    Part
	Title   string
	Current bool
}

type tick struct {
	X     float64 // percent
	Label string
}

// NewAxis returns the axis of a part of a job's life; nil if it has not begun.
func NewAxis(status *proto.JobStatus, part Part, now time.Time) *Axis {
	a := &Axis{Begin: status.StartedUnixMs, End: now.UnixMilli()}
	if status.EndedUnixMs != 0 {
		a.End = status.EndedUnixMs
	}
	if a.Begin == 0 {
		return nil
	}
	a.End = max(a.End, a.Begin+time.Second.Milliseconds())
	a.From, a.To = a.Begin, a.End
	life := time.Duration(a.End-a.Begin) * time.Millisecond
	if part.From != 0 || part.To != 0 {
		a.cut(part)
	}
	for _, s := range spans {
		if s.d >= life {
			continue
		}
		l := partLink{Part: Part{Span: s.Key}, Title: "all " + text.Duration(life)}
		if s.d != 0 {
			l.Title = "last " + s.Key
		}
		if s.Key == part.Span && s.d != 0 {
			a.Part, a.From = l.Part, a.To-s.d.Milliseconds()
		}
		a.Links = append(a.Links, l)
	}
	for i := range a.Links {
		a.Links[i].Current = a.Links[i].Part == a.Part
	}
	a.addSteps()
	a.addTicks()
	return a
}

// cut sets the axis to what there is of a part between two moments: all of the job's life where
// there is nothing of it.
func (a *Axis) cut(part Part) {
	least := leastPart.Milliseconds()
	from, to := max(part.From, a.Begin), a.End
	if part.To != 0 {
		to = min(part.To, a.End)
	}
	if to <= from {
		return
	}
	if to-from < least { // around what was asked for
		middle := (from + to) / 2
		from = max(a.Begin, min(middle-least/2, a.End-least))
		to = min(a.End, from+least)
	}
	if from <= a.Begin && to >= a.End {
		return
	}
	a.From, a.To = from, to
	a.Part = Part{From: from, To: to}
	if part.To == 0 { // it goes on as the job does
		a.Part.To = 0
	}
}

// Misses reports whether a part is before the job's life, or after it. A nil Axis is missed by none.
func (a *Axis) Misses(q Part) bool {
	return a != nil && (q.From > a.End || q.To != 0 && q.To < a.Begin)
}

// addSteps adds the links that move the part, and make it shorter and longer.
func (a *Axis) addSteps() {
	width := a.To - a.From
	add := func(title string, from, to int64) {
		from, to = max(from, a.Begin), min(to, a.End)
		// Addresses have whole seconds: more of the job's life rather than less.
		q := Part{From: from / 1000 * 1000, To: (to + 999) / 1000 * 1000}
		if from <= a.Begin && to >= a.End {
			q = Part{}
		}
		a.Links = append(a.Links, partLink{Part: q, Title: title})
	}
	if a.From > a.Begin {
		from := max(a.Begin, a.From-width/2)
		add("earlier", from, from+width)
	}
	if a.To < a.End {
		to := min(a.End, a.To+width/2)
		add("later", to-width, to)
	}
	if width >= 2*leastPart.Milliseconds() {
		add("closer", a.From+width/4, a.To-width/4)
	}
	if a.From > a.Begin || a.To < a.End {
		add("wider", a.From-width/2, a.To+width/2)
	}
}

// Whole reports whether it is all of the job's life.
func (a *Axis) Whole() bool { return a == nil || a.Part == Part{} }

// Shown says which part it is, where that is between two moments.
func (a *Axis) Shown() string {
	if a.Part.From == 0 && a.Part.To == 0 {
		return ""
	}
	from, to := text.Moment(a.From), text.Moment(a.To)
	if day := len(time.DateOnly); from[:day] == to[:day] {
		to = to[day+1:]
	}
	return from + " – " + to
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
	for span/step > ticksShown {
		step *= 2
	}
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
