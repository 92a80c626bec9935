package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"holdfast/client/checkpoints"
	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
)

func newCkptDiffCommand() *cobra.Command {
	o := &output{}
	cmd := &cobra.Command{
		Use:   "diff URI|JOB STEP STEP",
		Short: "compare two checkpoints: tensors added, removed, reshaped, changed",
		Example: `  yarn-submit ckpt diff mnist 300 400
  yarn-submit ckpt diff ./ck 300 400 --output json`,
		Args: between(3, 3, "URI|JOB STEP STEP"),
		RunE: func(cmd *cobra.Command, args []string) error { return runCkptDiff(cmd, o, args[0], args[1], args[2]) },
	}
	cmd.ValidArgsFunction = completeCheckpoints(2)
	o.add(cmd)
	return cmd
}

// changed is a tensor in the JSON of ckpt diff.
type changed struct {
	Name   string   `json:"name"`
	Change string   `json:"change"` // added, removed, reshaped, changed
	From   string   `json:"from"`
	To     string   `json:"to"`
	Norm   *float64 `json:"norm"`        // of the difference
	Former *float64 `json:"former_norm"` // of the first
}

func runCkptDiff(cmd *cobra.Command, o *output, ref, first, second string) error {
	if err := o.check(); err != nil {
		return err
	}
	return listed(cmd, ref, func(d checkpoints.Directory, list []format.Checkpoint) error {
		var both [2]*format.Tensors
		for i, which := range []string{first, second} {
			c, err := checkpoints.Choose(list, d.Store.URI(), which)
			if err != nil {
				return err
			}
			if both[i], err = format.OpenTensors(cmd.Context(), d.Store, c); err != nil {
				return err
			}
			defer both[i].Close()
		}
		changes, err := hdfsckpt.Diff(both[0], both[1])
		if err != nil {
			return err
		}
		result := []changed{}
		for _, c := range changes {
			result = append(result, describeChange(c))
		}
		if o.json() {
			return writeJSON(cmd.OutOrStdout(), map[string]any{"changes": result})
		}
		if len(result) == 0 {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "all tensors are the same")
			return err
		}
		t := tabwriter.NewWriter(cmd.OutOrStdout(), 2, 8, 2, ' ', 0)
		for _, c := range result {
			what := c.From
			if c.Change == "added" {
				what = c.To
			}
			if c.Change == "reshaped" {
				what += " -> " + c.To
			}
			fmt.Fprintf(t, "%s\t%s\t%s", c.Change, c.Name, what)
			if c.Norm != nil && c.Former != nil {
				fmt.Fprintf(t, "\tby %g, of %g", *c.Norm, *c.Former)
			}
			fmt.Fprintln(t)
		}
		return t.Flush()
	})
}

func describeChange(c hdfsckpt.Change) changed {
	kind := func(t *format.Tensor) string {
		if t == nil {
			return ""
		}
		return fmt.Sprintf("%s %v", t.Kind, t.Shape)
	}
	r := changed{Name: c.Name, From: kind(c.From), To: kind(c.To)}
	switch {
	case c.Added:
		r.Change = "added"
	case c.Removed:
		r.Change = "removed"
	case c.Reshaped:
		r.Change = "reshaped"
	default:
		r.Change = "changed"
		r.Norm, r.Former = finite(c.Norm), finite(c.FormerNorm)
	}
	return r
}
