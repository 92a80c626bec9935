package ckpt

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/client/checkpoints"
	"holdfast/cmd/yarn-submit/cli"
	"holdfast/hdfsckpt/inspect"
)

func newVerifyCommand() *cobra.Command {
	o := &cli.Output{}
	cmd := &cobra.Command{
		Use:   "verify URI|JOB [STEP]",
		Short: "read every byte of a checkpoint and check it",
		Long: `Verify reads every byte of one checkpoint, the newest complete one if no STEP is
given, and compares it with the checksums in its manifest, if it is sealed, and
with those that TensorFlow keeps of each tensor and PyTorch of each record. The
exit code is 1 if anything is wrong.`,
		Example: `  yarn-submit ckpt verify mnist
  yarn-submit ckpt verify hdfs:///user/me/mnist 400 --output json`,
		Args: cli.Between(1, 2, "URI|JOB [STEP]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runVerify(cmd, o, args[0], strings.Join(args[1:], ""))
		},
	}
	cmd.ValidArgsFunction = completeCheckpoints(1)
	o.Add(cmd)
	return cmd
}

// errDamaged ends verify where something is wrong, which has been told.
var errDamaged = fmt.Errorf("the checkpoint is damaged: %w", client.ErrJobFailed)

func runVerify(cmd *cobra.Command, o *cli.Output, ref, which string) error {
	var failed error
	err := chosen(cmd, ref, which, func(c *checkpoints.Chosen) error {
		result, err := inspect.Verify(cmd.Context(), c.Store, c.Checkpoint, c.Describe(), cli.Bar(cmd, c.Name))
		if err != nil {
			return err
		}
		if !result.OK {
			failed = errDamaged
		}
		if o.JSON() {
			return cli.WriteJSON(cmd.OutOrStdout(), result)
		}
		w := cmd.OutOrStdout()
		if result.OK {
			_, err = fmt.Fprintf(w, "%s/%s: read all %s; %s\n", c.Store.URI(), c.Name, humanize.IBytes(uint64(c.Size)), inspect.Agreed(c.Checkpoint))
			return err
		}
		fmt.Fprintf(w, "%s/%s is damaged:\n", c.Store.URI(), c.Name)
		for _, p := range result.Problems {
			fmt.Fprintf(w, "  %s\n", p)
		}
		return nil
	})
	return errors.Join(err, failed)
}
