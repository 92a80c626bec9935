package ckpt

import (
	"fmt"
	"math"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"holdfast/client/checkpoints"
	"holdfast/cmd/yarn-submit/cli"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/inspect"
)

func newDiffCommand() *cobra.Command {
	o := &cli.Output{}
	cmd := &cobra.Command{
		Use:   "diff URI|JOB STEP STEP",
		Short: "compare two checkpoints: tensors added, removed, reshaped, changed",
		Example: `  yarn-submit ckpt diff mnist 300 400
  yarn-submit ckpt diff ./ck 300 400 --output json`,
		Args: cli.Between(3, 3, "URI|JOB STEP STEP"),
		RunE: func(cmd *cobra.Command, args []string) error { return runDiff(cmd, o, args[0], args[1], args[2]) },
	}
	cmd.ValidArgsFunction = completeCheckpoints(2)
	o.Add(cmd)
	return cmd
}

func runDiff(cmd *cobra.Command, o *cli.Output, ref, first, second string) error {
	return listed(cmd, ref, func(d checkpoints.Directory, list []format.Checkpoint) error {
		var both [2]*format.Checkpoint
		for i, which := range []string{first, second} {
			var err error
			if both[i], err = checkpoints.Choose(list, d.Store.URI(), which); err != nil {
				return err
			}
		}
		result, err := inspect.Compare(cmd.Context(), d.Store, both[0], both[1], inspect.Limits{Index: math.MaxInt64, Tensor: math.MaxInt64}, nil)
		if err != nil {
			return err
		}
		if o.JSON() {
			return cli.WriteJSON(cmd.OutOrStdout(), map[string]any{"changes": result})
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
			if c.Why != "" {
				fmt.Fprintf(t, "\t%s", c.Why)
			}
			fmt.Fprintln(t)
		}
		return t.Flush()
	})
}
