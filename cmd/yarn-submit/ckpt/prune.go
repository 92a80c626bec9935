package ckpt

import (
	"fmt"
	"io"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/client/terminal"
	"holdfast/cmd/yarn-submit/cli"
	"holdfast/hdfsckpt/inspect"
)

type pruneOptions struct {
	changeOptions
	keep  int
	every int64
	wide  bool
}

func newPruneCommand() *cobra.Command {
	o := &pruneOptions{}
	cmd := &cobra.Command{
		Use:   "prune URI|JOB --keep N [--every M]",
		Short: "remove old checkpoints",
		Long: `Prune keeps the newest N complete checkpoints of each series, which are those of
a directory whose names differ in the step alone, and of the older ones those
whose step is a multiple of M. What is in progress, what the program goes
on from and the newest sealed checkpoint of each series stay in any case. It
shows what it will do and asks. Without a terminal to ask on it changes nothing
and ends with 2; --yes agrees.`,
		Example: `  yarn-submit ckpt prune mnist --keep 5
  yarn-submit ckpt prune mnist --keep 3 --every 1000 --yes`,
		Args: cli.Between(1, 1, "URI|JOB --keep N"),
		RunE: func(cmd *cobra.Command, args []string) error { return runPrune(cmd, o, args[0]) },
	}
	cmd.Flags().IntVar(&o.keep, "keep", 0, "keep the newest `N` checkpoints, at least 1")
	cmd.Flags().Int64Var(&o.every, "every", 0, "keep those, too, whose step is a multiple of `M`")
	cmd.Flags().BoolVar(&o.wide, "wide", false, wideUsage)
	cmd.ValidArgsFunction = completeCheckpoints(0)
	o.add(cmd)
	return cmd
}

func runPrune(cmd *cobra.Command, o *pruneOptions, ref string) error {
	if o.keep < 1 {
		return client.Usagef("say how many checkpoints to keep, for example --keep 3")
	}
	if cmd.Flags().Changed("every") && o.every < 1 {
		return client.Usagef("--every %d: write a number of steps, at least 1", o.every)
	}
	w := cmd.OutOrStdout()
	return change(cmd, &o.changeOptions, ref, inspect.PlanPrune(o.keep, o.every),
		func(p *inspect.Pruning) { writePruning(w, p, columns(o.wide)) },
		func(p *inspect.Pruning) {
			switch {
			case p.Done:
				fmt.Fprintf(w, "removed %d checkpoints, %s\n", len(p.Remove), humanize.IBytes(uint64(p.Bytes)))
			case len(p.Remove) > 0:
				fmt.Fprintln(w, "nothing was removed")
			}
		})
}

func writePruning(w io.Writer, p *inspect.Pruning, width int) {
	fmt.Fprintf(w, "%s: %d to remove (%s), %d stay\n", p.Directory, len(p.Remove), humanize.IBytes(uint64(p.Bytes)), len(p.Keep))
	if len(p.Remove)+len(p.Keep) == 0 {
		return
	}
	t := terminal.NewTable("", "STEP", "SIZE", "STATE", "NAME", "WHY")
	t.Flexible = []string{"NAME", "WHY"}
	for _, c := range p.Remove {
		t.Add("remove", stepText(c), humanize.IBytes(uint64(c.Bytes)), c.State, c.Name, "")
	}
	for _, k := range p.Keep {
		t.Add("keep", stepText(k.Checkpoint), humanize.IBytes(uint64(k.Bytes)), k.State, k.Name, k.Reason)
	}
	_ = t.Write(w, width) // as of the other lines here
}
