package job

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"holdfast/client/jobs"
	"holdfast/client/submit"
	"holdfast/cmd/yarn-submit/cli"
)

// NewRmCommand returns the command rm.
func NewRmCommand() *cobra.Command {
	o := &cli.Output{}
	cmd := &cobra.Command{
		Use:   "rm JOB...",
		Short: "remove the directories of jobs that have ended",
		Long: `Rm removes what is kept of jobs that have ended: spec, last state and logs.
Checkpoints stay, and so does what the cluster itself remembers.

` + cli.WhichJobExactly,
		Example: `  yarn-submit rm local-20260301-101500-ab3d
  yarn-submit rm mnist-1 mnist-2`,
		Args: cli.Between(1, 1000, "JOB..."),
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return cli.JobsToComplete(cmd), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runRm(cmd, o, args) },
	}
	o.Add(cmd)
	return cmd
}

func runRm(cmd *cobra.Command, o *cli.Output, refs []string) error {
	ctx := cmd.Context()
	removed := []string{}
	remove := func(ref string) error {
		j, err := jobs.FindToChange(ctx, ref)
		if err != nil {
			return err
		}
		defer j.Close()
		if err := submit.Remove(ctx, j, func(text string) { cli.Note(cmd, text) }); err != nil {
			return err
		}
		removed = append(removed, j.ID)
		if !o.JSON() {
			fmt.Fprintf(cmd.OutOrStdout(), "%s: removed\n", j.ID)
		}
		return nil
	}
	var failed error
	for _, ref := range refs {
		if failed = remove(ref); failed != nil {
			break
		}
	}
	if o.JSON() && (failed == nil || len(removed) > 0) {
		failed = errors.Join(failed, cli.WriteJSON(cmd.OutOrStdout(), map[string]any{"removed": removed}))
	}
	return failed
}
