// Package text is how numbers, sizes and times are written on pages.
package text

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// Value returns a number of a tensor.
func Value(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// ValueOf is Value for one that may be too large for a number.
func ValueOf(v *float64) string {
	if v == nil {
		return "infinite"
	}
	return Value(*v)
}

// Milliseconds returns so many of them.
func Milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// Span returns the time between two moments in milliseconds since 1970; 0 for the end
// means now.
func Span(from, to int64) string {
	end := time.Now()
	if to != 0 {
		end = time.UnixMilli(to)
	}
	return Duration(end.Sub(time.UnixMilli(from)))
}

// Duration rounds a time for people: "230 ms", "4.2 s", "59 s", "12m 5s", "3h 20m", "4d 2h".
func Duration(d time.Duration) string {
	d = max(0, d)
	pair := func(big, small time.Duration, units string) string {
		n := d.Round(small)
		return humanize.Comma(int64(n/big)) + units[:1] + " " + humanize.Comma(int64(n%big/small)) + units[1:]
	}
	switch {
	case d < time.Second:
		return humanize.Comma(d.Milliseconds()) + " ms"
	case d < 10*time.Second:
		return humanize.FtoaWithDigits(d.Seconds(), 1) + " s"
	case d < time.Minute-time.Second/2:
		return humanize.Comma(int64(d.Round(time.Second)/time.Second)) + " s"
	case d < time.Hour-time.Second/2:
		return pair(time.Minute, time.Second, "ms")
	case d < 24*time.Hour-time.Minute/2:
		return pair(time.Hour, time.Minute, "hm")
	}
	return pair(24*time.Hour, time.Hour, "dh")
}

// Size returns a number of bytes; "" for 0.
func Size(n int64) string {
	if n <= 0 {
		return ""
	}
	return humanize.IBytes(uint64(n))
}

// Flow returns bytes a second.
func Flow(perSecond float64) string {
	return cmp.Or(Size(int64(perSecond+0.5)), "0 B") + "/s"
}

// Rate returns steps a second, or seconds a step where those are slow.
func Rate(perSecond float64) string {
	switch {
	case perSecond <= 0:
		return "–"
	case perSecond < 0.1:
		return humanize.FtoaWithDigits(1/perSecond, 1) + " s a step"
	case perSecond < 10:
		return humanize.FtoaWithDigits(perSecond, 2) + " a second"
	}
	return humanize.Comma(int64(perSecond+0.5)) + " a second"
}

// Moment returns a time in milliseconds since 1970, in UTC.
func Moment(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05") }

// MomentTitle says what happened at a time, in a line.
func MomentTitle(ms int64, text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return Moment(ms) + " " + text
}
