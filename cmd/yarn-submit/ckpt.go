package main

import (
	"github.com/spf13/cobra"

	"holdfast/client/checkpoints"
	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
)

func newCheckpointCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ckpt",
		Short: "browse checkpoints",
		Long: `Ckpt looks at checkpoints where they are stored; no job needs to run.
They are named by the directory (hdfs://... or a local path) or by the job that
writes them, its id or name.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := unknownCommand(cmd, args); err != nil {
				return err
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(
		newCkptLsCommand(), newCkptShowCommand(), newCkptCatCommand(), newCkptDiffCommand(), newCkptVerifyCommand(),
		newCkptGetCommand(), newCkptPruneCommand(), newCkptRollbackCommand(),
	)
	return cmd
}

// listed opens what a user named and lists the checkpoints in it. The stores
// are closed when see has returned.
func listed(cmd *cobra.Command, ref string, see func(checkpoints.Directory, []format.Checkpoint) error) error {
	dirs, err := checkpoints.Directories(cmd.Context(), ref)
	if err != nil {
		return err
	}
	defer func() {
		for _, d := range dirs {
			d.Store.Close()
		}
	}()
	for _, d := range dirs {
		list, err := hdfsckpt.List(cmd.Context(), d.Store)
		if err != nil {
			return err
		}
		if err := see(d, list); err != nil {
			return err
		}
	}
	return nil
}
