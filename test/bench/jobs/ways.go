package jobs

import (
	"fmt"
	"io"
	"strings"
	"time"

	"holdfast/proto"
	"holdfast/test/bench"
)

// ways are how several tasks came to run, from one stage to the next: where the
// time went.
type ways struct {
	names []string
	steps map[string]bench.Series
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
		w.steps = map[string]bench.Series{}
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
		parts = append(parts, fmt.Sprintf("%s %.2f", name, w.steps[name].Median()))
	}
	bench.Line(out, title, strings.Join(parts, ", "))
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
