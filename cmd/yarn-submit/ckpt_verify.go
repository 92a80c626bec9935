package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/client/checkpoints"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/inspect"
)

func newCkptVerifyCommand() *cobra.Command {
	o := &output{}
	cmd := &cobra.Command{
		Use:   "verify URI|JOB [STEP]",
		Short: "read every byte of a checkpoint and check it",
		Long: `Verify reads every byte of one checkpoint, the newest complete one if no STEP is
given, and compares it with the checksums in its manifest, if it is sealed, and
with those that TensorFlow keeps of each tensor and PyTorch of each record. The
exit code is 1 if anything is wrong.`,
		Example: `  yarn-submit ckpt verify mnist
  yarn-submit ckpt verify hdfs:///user/me/mnist 400 --output json`,
		Args: between(1, 2, "URI|JOB [STEP]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runCkptVerify(cmd, o, args[0], strings.Join(args[1:], ""))
		},
	}
	cmd.ValidArgsFunction = completeCheckpoints(1)
	o.add(cmd)
	return cmd
}

// errDamaged ends verify where something is wrong, which has been told.
var errDamaged = fmt.Errorf("the checkpoint is damaged: %w", client.ErrJobFailed)

func runCkptVerify(cmd *cobra.Command, o *output, ref, which string) error {
	if err := o.check(); err != nil {
		return err
	}
	var failed error
	err := listed(cmd, ref, func(d checkpoints.Directory, list []format.Checkpoint) error {
		c, err := checkpoints.Choose(list, d.Store.URI(), which)
		if err != nil {
			return err
		}
		result, err := inspect.Verify(cmd.Context(), d.Store, c, inspect.Describe(d.Store.URI(), []format.Checkpoint{*c}, list)[0], bar(cmd, c.Name))
		if err != nil {
			return err
		}
		if !result.OK {
			failed = errDamaged
		}
		if o.json() {
			return writeJSON(cmd.OutOrStdout(), result)
		}
		w := cmd.OutOrStdout()
		if result.OK {
			_, err = fmt.Fprintf(w, "%s/%s: all of its %s agree with %s\n", d.Store.URI(), c.Name, humanize.IBytes(uint64(c.Size)), inspect.VerifiedBy(c))
			return err
		}
		fmt.Fprintf(w, "%s/%s is damaged:\n", d.Store.URI(), c.Name)
		for _, p := range result.Problems {
			fmt.Fprintf(w, "  %s\n", p)
		}
		return nil
	})
	return errors.Join(err, failed)
}
