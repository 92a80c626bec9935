package faults

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"
)

// Report is what Run saw.
type Report struct {
	Outcomes []Outcome
	Played   []Played // scenarios
	Wrong    []string // at the ends of jobs
}

// Failures are all that was wrong.
func (r *Report) Failures() []string {
	var all []string
	for _, o := range r.Outcomes {
		for _, w := range o.Wrong {
			all = append(all, fmt.Sprintf("%s (%v): %s", o.Round, o.What, w))
		}
	}
	for _, p := range r.Played {
		for _, w := range p.Wrong {
			all = append(all, fmt.Sprintf("%s: %s", p.Scenario, w))
		}
	}
	return append(all, r.Wrong...)
}

// Print prints a table of the rounds and one of the scenarios, those that there are.
func (r *Report) Print(w io.Writer) error {
	var err error
	if len(r.Outcomes) > 0 {
		err = r.printRounds(w)
	}
	if len(r.Played) > 0 && err == nil {
		err = r.printPlayed(w)
	}
	return err
}

// printPlayed prints for each scenario how long it took, and what that is, and how many
// steps were made again where they were counted.
func (r *Report) printPlayed(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "scenario\ttook, s\twhich is\tsteps made again\twrong")
	for _, p := range r.Played {
		again := "-"
		if p.Again >= 0 {
			again = strconv.FormatInt(p.Again, 10)
		}
		fmt.Fprintf(t, "%s\t%.1f\t%s\t%s\t%d\n", p.Scenario, p.Took.Seconds(), p.Scenario.took, again, len(p.Wrong))
	}
	return t.Flush()
}

// printRounds prints for each round the time from the first loss to steps again, of the
// chief and of all workers, the chief's longest pause, and how many steps were made again.
func (r *Report) printRounds(w io.Writer) error {
	by := map[string][]Outcome{}
	for _, o := range r.Outcomes {
		by[o.Round.String()] = append(by[o.Round.String()], o)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "fault\ttimes\tchief again, s\tits longest pause, s\tall workers again, s\tsteps made again\twrong")
	for _, name := range slices.Sorted(maps.Keys(by)) {
		var chiefs, pauses, all []time.Duration
		again, wrong := int64(0), 0
		for _, o := range by[name] {
			chiefs, pauses, all = append(chiefs, o.Chief), append(pauses, o.Pause), append(all, o.All)
			again, wrong = max(again, o.Again), wrong+len(o.Wrong)
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%d\t%d\n", name, len(all), spread(chiefs), spread(pauses), spread(all), again, wrong)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nMedian (least–most) from the first loss to the first step in a new session, or to the end of the longest pause; 0: the session went on, without a pause above "+undisturbed.String()+".\n")
	return nil
}

func spread(times []time.Duration) string {
	slices.Sort(times)
	return fmt.Sprintf("%.1f (%.1f–%.1f)", times[len(times)/2].Seconds(), times[0].Seconds(), times[len(times)-1].Seconds())
}
