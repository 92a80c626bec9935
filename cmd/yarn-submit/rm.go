package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"holdfast/client/jobs"
	"holdfast/client/submit"
)

func newRmCommand() *cobra.Command {
	o := &output{}
	cmd := &cobra.Command{
		Use:   "rm JOB...",
		Short: "remove the directories of jobs that have ended",
		Long: `Rm removes what is kept of jobs that have ended: spec, last state and logs.
Checkpoints stay, and so does what the cluster itself remembers.

` + whichJob,
		Example: `  yarn-submit rm local-20260301-101500-ab3d
  yarn-submit rm mnist-1 mnist-2`,
		Args: between(1, 1000, "JOB..."),
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return jobsToComplete(cmd), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runRm(cmd, o, args) },
	}
	o.add(cmd)
	return cmd
}

func runRm(cmd *cobra.Command, o *output, refs []string) error {
	if err := o.check(); err != nil {
		return err
	}
	ctx, stop := interruptible(cmd)
	defer stop()
	removed := []string{}
	remove := func(ref string) error {
		j, err := jobs.Find(ctx, ref)
		if err != nil {
			return err
		}
		defer j.Close()
		if err := submit.Remove(ctx, j); err != nil {
			return err
		}
		removed = append(removed, j.ID)
		if !o.json() {
			fmt.Fprintf(cmd.OutOrStdout(), "%s: removed\n", j.ID)
		}
		return nil
	}
	for _, ref := range refs {
		if err := remove(ref); err != nil {
			return err
		}
	}
	if o.json() {
		return writeJSON(cmd.OutOrStdout(), map[string]any{"removed": removed})
	}
	return nil
}
