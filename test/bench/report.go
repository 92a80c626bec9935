package bench

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"holdfast/proto"
)

// series are the figures of one measurement.
type series []float64

func (s series) median() float64 {
	sorted := slices.Sorted(slices.Values(s))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func (s series) format(unit string, decimals int) string {
	if len(s) == 0 {
		return "nothing measured"
	}
	if len(s) == 1 {
		return fmt.Sprintf("%.*f%s", decimals, s[0], unit)
	}
	return fmt.Sprintf("%.*f%s (%.*f to %.*f, n=%d)", decimals, s.median(), unit, decimals, slices.Min(s), decimals, slices.Max(s), len(s))
}

// ratios divides pair by pair.
func ratios(ours, theirs series) series {
	var all series
	for i := range min(len(ours), len(theirs)) {
		all = append(all, ours[i]/theirs[i])
	}
	return all
}

// title heads the figures of one measurement, with how busy the machine was in
// the minute before.
func (b *bench) title(text string) { fmt.Fprintf(b.Out, "%s (load %s)\n", text, load()) }

// load is the kernel's load average over a minute.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	minute, _, _ := strings.Cut(string(text), " ")
	return minute
}

func line(w io.Writer, name, figures string) { fmt.Fprintf(w, "  %-48s %s\n", name, figures) }

// aimed adds what was aimed at, and whether the median is within it.
func aimed(figures string, median, aim float64, unit string) string {
	verdict := "met"
	if median > aim {
		verdict = "missed"
	}
	return fmt.Sprintf("%s; aim at most %g%s: %s", figures, aim, unit, verdict)
}

// ways are how several tasks came to run, from one stage to the next: where the
// time went.
type ways struct {
	names []string
	steps map[string]series
}

// add takes in the stages of one task. Agents' clocks and the master's are the
// same here.
func (w *ways) add(began time.Time, passed []*proto.Stage, ended time.Time) {
	at := began
	for _, p := range passed {
		w.step(p.Name, &at, time.UnixMilli(p.AtUnixMs))
		if p.Name == "ordered" { // what follows is heard of after it happened
			break
		}
	}
	w.step("running", &at, ended)
}

func (w *ways) step(name string, at *time.Time, next time.Time) {
	if w.steps == nil {
		w.steps = map[string]series{}
	}
	if w.steps[name] == nil {
		w.names = append(w.names, name)
	}
	w.steps[name] = append(w.steps[name], max(0, next.Sub(*at).Seconds()))
	*at = next
}

func (w *ways) print(out io.Writer, title string) {
	var parts []string
	for _, name := range w.names {
		parts = append(parts, fmt.Sprintf("%s %.2f", name, w.steps[name].median()))
	}
	line(out, title, strings.Join(parts, ", "))
}

// since is the time from a moment to a stage, in seconds.
func since(began time.Time, passed []*proto.Stage, name string) (float64, error) {
	for _, p := range passed {
		if p.Name == name {
			return time.UnixMilli(p.AtUnixMs).Sub(began).Seconds(), nil
		}
	}
	return 0, fmt.Errorf("there is no stage %q", name)
}
