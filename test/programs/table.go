package programs

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// The columns of the table.
const (
	toTheEnd = iota
	processKilled
	containerKilled
	nodeLost
	checkpointsKnown
	continues
	stepsKnown
)

var columns = [...]string{"to the end", "process killed", "container killed", "node lost", "checkpoints sealed", "continues from the last", "steps known"}

// Result is what was seen of a program.
type Result struct {
	Program  Program
	Versions string
	cells    [len(columns)]cell
}

// cell is what was seen of one thing; empty if it was not tried.
type cell struct {
	text   string
	failed []string // why
}

func (r *Result) pass(column int, text string) { r.cells[column].text = text }
func (r *Result) fail(column int, why error) {
	r.cells[column].failed = append(r.cells[column].failed, why.Error())
}

func (c cell) String() string {
	switch {
	case len(c.failed) > 0:
		return "NO"
	case c.text == "":
		return "-"
	}
	return c.text
}

// Failures are what went wrong, one a line.
func (r Result) Failures() []string {
	var all []string
	for i, c := range r.cells {
		for _, why := range c.failed {
			all = append(all, fmt.Sprintf("%s, %s: %s", r.Program.Name, columns[i], why))
		}
	}
	return all
}

func (r Result) String() string {
	all := []string{r.Program.Name + " (" + r.Versions + ")"}
	for i, c := range r.cells {
		all = append(all, columns[i]+": "+c.String())
	}
	return strings.Join(all, "; ")
}

// Print prints the table, and below it why cells say NO. Those of losses are the times
// from the loss to the next step; what was not tried is "-".
func Print(w io.Writer, results []Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "program\tversions\t"+strings.Join(columns[:], "\t"))
	for _, r := range results {
		words := []string{r.Program.Name, r.Versions}
		for _, c := range r.cells {
			words = append(words, c.String())
		}
		fmt.Fprintln(t, strings.Join(words, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range results {
		for _, f := range r.Failures() {
			if _, err := fmt.Fprintln(w, f); err != nil {
				return err
			}
		}
	}
	return nil
}
