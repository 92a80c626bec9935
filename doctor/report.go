package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"holdfast/client"
	"holdfast/doctor/check"
)

// Write writes findings for people: first those of this machine and of
// the cluster as a whole, then what is well on all nodes, a table of the rest, and
// what is to be done about it.
func Write(w io.Writer, list []check.Finding) error {
	var nodes, subjects []string
	worst := map[[2]string]check.Level{}
	type trouble struct {
		level         check.Level
		subject, text string
	}
	var troubles []trouble
	where := map[trouble][]string{}
	for _, f := range list {
		if f.Node == "" {
			if _, err := fmt.Fprintf(w, "%-4s  %s: %s\n", f.Level, f.Subject, f.Text); err != nil {
				return err
			}
			continue
		}
		if !slices.Contains(nodes, f.Node) {
			nodes = append(nodes, f.Node)
		}
		if !slices.Contains(subjects, f.Subject) {
			subjects = append(subjects, f.Subject)
		}
		if at := [2]string{f.Node, f.Subject}; worst[at] == "" || f.Level == check.Bad || worst[at] == check.Good {
			worst[at] = f.Level
		}
		if t := (trouble{f.Level, f.Subject, f.Text}); f.Level != check.Good {
			if where[t] == nil {
				troubles = append(troubles, t)
			}
			where[t] = append(where[t], f.Node)
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	var well, mixed []string
	for _, s := range subjects {
		if slices.ContainsFunc(nodes, func(n string) bool { return worst[[2]string{n, s}] != check.Good }) {
			mixed = append(mixed, s)
		} else {
			well = append(well, s)
		}
	}
	if _, err := fmt.Fprintf(w, "\n%d nodes (%s)\nok on all: %s\n", len(nodes), strings.Join(nodes, ", "), cmp.Or(strings.Join(well, ", "), "nothing")); err != nil || len(mixed) == 0 {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\nnode\t%s\n", strings.Join(mixed, "\t")) // Flush returns errors
	for _, n := range nodes {
		fmt.Fprint(table, n)
		for _, s := range mixed {
			level := string(worst[[2]string{n, s}])
			if level == "" {
				level = "-"
			}
			fmt.Fprint(table, "\t", level)
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, t := range troubles {
		if _, err := fmt.Fprintf(w, "\n%s  %s, on %s: %s\n", t.level, t.subject, strings.Join(where[t], ", "), t.text); err != nil {
			return err
		}
	}
	return nil
}

// Error returns an error if something is bad; the findings say what.
func Error(list []check.Finding) error {
	for _, f := range list {
		switch {
		case f.Level != check.Bad:
		case f.Node != "":
			return client.WithExitCode(client.ExitFailed, fmt.Errorf("%s: jobs cannot use the node %s as things are", f.Subject, f.Node))
		default:
			return client.WithExitCode(cmp.Or(f.Exit, client.ExitFailed), errors.New(f.Subject+": jobs cannot be run on the cluster as things are"))
		}
	}
	return nil
}
