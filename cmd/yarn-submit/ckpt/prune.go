package ckpt

import (
	"fmt"
	"text/tabwriter"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/client/checkpoints"
	"holdfast/cmd/yarn-submit/cli"
	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/inspect"
)

type pruneOptions struct {
	cli.Output
	keep  int
	every int64
	yes   bool
}

func newPruneCommand() *cobra.Command {
	o := &pruneOptions{}
	cmd := &cobra.Command{
		Use:   "prune URI|JOB --keep N [--every M]",
		Short: "remove old checkpoints",
		Long: `Prune keeps the newest N complete checkpoints, and of the older ones those whose
step is a multiple of M. What is in progress, what the program goes on from and
the newest sealed checkpoint stay in any case. It shows what it will do and
asks. Without a terminal to ask on it changes nothing and ends with 2; --yes
agrees.`,
		Example: `  yarn-submit ckpt prune mnist --keep 5
  yarn-submit ckpt prune mnist --keep 3 --every 1000 --yes`,
		Args: cli.Between(1, 1, "URI|JOB --keep N"),
		RunE: func(cmd *cobra.Command, args []string) error { return runPrune(cmd, o, args[0]) },
	}
	cmd.Flags().IntVar(&o.keep, "keep", 0, "keep the newest `N` checkpoints, at least 1")
	cmd.Flags().Int64Var(&o.every, "every", 0, "keep those, too, whose step is a multiple of `M`")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do not ask")
	cmd.ValidArgsFunction = completeCheckpoints(0)
	o.Add(cmd)
	return cmd
}

// pruned is the JSON of ckpt prune.
type pruned struct {
	Directory string               `json:"directory"`
	Done      bool                 `json:"done"`
	Bytes     int64                `json:"bytes"`
	Remove    []inspect.Checkpoint `json:"remove"`
	Keep      []inspect.Checkpoint `json:"keep"`
}

func runPrune(cmd *cobra.Command, o *pruneOptions, ref string) error {
	if o.keep < 1 {
		return client.Usagef("say how many checkpoints to keep, for example --keep 3")
	}
	consent := cli.Asker{Cmd: cmd, Yes: o.yes}
	err := listed(cmd, ref, func(d checkpoints.Directory, list []format.Checkpoint) error {
		plan := hdfsckpt.PlanPrune(list, o.keep, o.every)
		result := pruned{Directory: d.Store.URI(), Bytes: plan.Bytes, Remove: inspect.Describe(d.Store.URI(), plan.Remove, list), Keep: []inspect.Checkpoint{}}
		for _, k := range plan.Keep {
			result.Keep = append(result.Keep, inspect.Describe(d.Store.URI(), []format.Checkpoint{k.Checkpoint}, list)...)
		}
		if !o.JSON() {
			writePlan(cmd, d.Store.URI(), plan)
		}
		if len(plan.Remove) > 0 && consent.Given(fmt.Sprintf("Remove %d checkpoints?", len(plan.Remove))) {
			if err := plan.Execute(cmd.Context(), d.Store); err != nil {
				return err
			}
			result.Done = true
		}
		if o.JSON() {
			return cli.WriteJSON(cmd.OutOrStdout(), result)
		}
		switch {
		case result.Done:
			fmt.Fprintf(cmd.OutOrStdout(), "removed %d checkpoints, %s\n", len(plan.Remove), humanize.IBytes(uint64(plan.Bytes)))
		case len(plan.Remove) > 0:
			fmt.Fprintln(cmd.OutOrStdout(), "nothing was removed")
		}
		return nil
	})
	if err != nil {
		return err
	}
	return consent.Err()
}

func writePlan(cmd *cobra.Command, uri string, plan hdfsckpt.PrunePlan) {
	w := cmd.OutOrStdout()
	fmt.Fprintf(w, "%s: %d to remove (%s), %d stay\n", uri, len(plan.Remove), humanize.IBytes(uint64(plan.Bytes)), len(plan.Keep))
	t := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	for i := range plan.Remove {
		c := &plan.Remove[i]
		fmt.Fprintf(t, "remove\t%s\t%s\t%s\t%s\n", step(c), humanize.IBytes(uint64(c.Size)), c.State, c.Name)
	}
	for _, k := range plan.Keep {
		fmt.Fprintf(t, "keep\t%s\t%s\t%s\t%s (%s)\n", step(&k.Checkpoint), humanize.IBytes(uint64(k.Size)), k.State, k.Name, k.Reason)
	}
	t.Flush()
}
