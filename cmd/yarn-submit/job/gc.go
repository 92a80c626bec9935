package job

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/client/submit"
	"holdfast/cmd/yarn-submit/cli"
)

type gcOptions struct {
	cli.Output
	days   float64
	dryRun bool
}

// NewGcCommand returns the command gc.
func NewGcCommand() *cobra.Command {
	o := &gcOptions{}
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "remove the directories of jobs that ended long ago",
		Long: `Gc removes the directories of your jobs, on this machine and on the cluster,
that have ended and in which nothing has changed for some time. What is not
known to have ended stays: a job that waits in its queue, one of another machine
with the same home directory, one of a cluster that does not know it.
Checkpoints stay.`,
		Example: `  yarn-submit gc --older-than 30 --dry-run
  yarn-submit gc --older-than 7`,
		Args: cli.Between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return runGc(cmd, o) },
	}
	cmd.Flags().Float64Var(&o.days, "older-than", 30, "for so many `DAYS`")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "only say what would be removed")
	o.Add(cmd)
	return cmd
}

func runGc(cmd *cobra.Command, o *gcOptions) error {
	keep := time.Duration(o.days * float64(24*time.Hour))
	if keep < submit.LeastAge || o.days > 36500 {
		return client.Usagef("--older-than %v: write a number of days, at least an hour (%.3f)", o.days, submit.LeastAge.Hours()/24)
	}
	ctx := cmd.Context()
	list, failed := submit.Collect(ctx, keep, o.dryRun)
	if o.JSON() {
		if list == nil {
			list = []submit.Collected{}
		}
		if err := cli.WriteJSON(cmd.OutOrStdout(), map[string]any{"directories": list}); err != nil {
			return err
		}
		return failed
	}
	for _, c := range list {
		said := "removed"
		switch {
		case o.dryRun:
			said = "would be removed"
		case !c.Removed:
			said = "stays"
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: %s (last changed %s)\n", c.ID, said, humanize.Time(c.Changed))
	}
	if len(list) == 0 && failed == nil {
		fmt.Fprintln(cmd.OutOrStdout(), "there is nothing to remove")
	}
	return failed
}
