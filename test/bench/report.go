package bench

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Series are the figures of one measurement.
type Series []float64

// Median is 0 of none.
func (s Series) Median() float64 {
	sorted := slices.Sorted(slices.Values(s))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Format gives the median and the range, for the report.
func (s Series) Format(unit string, decimals int) string {
	if len(s) == 0 {
		return "nothing measured"
	}
	if len(s) == 1 {
		return fmt.Sprintf("%.*f%s", decimals, s[0], unit)
	}
	return fmt.Sprintf("%.*f%s (%.*f to %.*f, n=%d)", decimals, s.Median(), unit, decimals, slices.Min(s), decimals, slices.Max(s), len(s))
}

// Ratios divides pair by pair.
func Ratios(ours, theirs Series) Series {
	var all Series
	for i := range min(len(ours), len(theirs)) {
		all = append(all, ours[i]/theirs[i])
	}
	return all
}

// Title heads the figures of one measurement, with how busy the machine was in
// the minute before.
func (b *Bench) Title(text string) { fmt.Fprintf(b.Out, "%s (load %s)\n", text, load()) }

// load is the kernel's load average over a minute.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	minute, _, _ := strings.Cut(string(text), " ")
	return minute
}

// Line prints a figure of a measurement under its name.
func Line(w io.Writer, name, figures string) { fmt.Fprintf(w, "  %-48s %s\n", name, figures) }

// Aimed is Format with what was aimed at, and whether the median is within it, which that
// of nothing is not.
func (s Series) Aimed(unit string, decimals int, aim float64) string {
	verdict := "met"
	if len(s) == 0 || s.Median() > aim {
		verdict = "missed"
	}
	return fmt.Sprintf("%s; aim at most %g%s: %s", s.Format(unit, decimals), aim, unit, verdict)
}
