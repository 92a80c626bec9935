package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/client/checkpoints"
	"holdfast/hdfsckpt"
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

// verified is the JSON of ckpt verify.
type verified struct {
	inspect.Checkpoint
	OK       bool      `json:"ok"`
	Problems []problem `json:"problems"`
}

type problem struct {
	File   string `json:"file"`
	Tensor string `json:"tensor"`
	Offset *int64 `json:"offset"` // where the tensor or record begins; null for the file as a whole
	Text   string `json:"text"`
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
		problems, err := hdfsckpt.Verify(cmd.Context(), d.Store, *c, bar(cmd, c.Name))
		if err != nil {
			return err
		}
		result := verified{Checkpoint: inspect.Describe(d.Store.URI(), []format.Checkpoint{*c}, list)[0], OK: len(problems) == 0, Problems: []problem{}}
		for _, p := range problems {
			shown := problem{File: p.File, Tensor: p.Tensor, Text: p.Text}
			if p.Offset >= 0 {
				shown.Offset = &p.Offset
			}
			result.Problems = append(result.Problems, shown)
		}
		if !result.OK {
			failed = errDamaged
		}
		if o.json() {
			return writeJSON(cmd.OutOrStdout(), result)
		}
		w := cmd.OutOrStdout()
		if result.OK {
			against := "the checksums that it has in itself"
			switch {
			case c.Manifest != nil:
				against = "its manifest"
			case c.Contents() == nil:
				against = "their lengths; it is not sealed, and has no checksums"
			}
			_, err = fmt.Fprintf(w, "%s/%s: all of its %s agree with %s\n", d.Store.URI(), c.Name, humanize.IBytes(uint64(c.Size)), against)
			return err
		}
		fmt.Fprintf(w, "%s/%s is damaged:\n", d.Store.URI(), c.Name)
		for _, p := range problems {
			fmt.Fprintf(w, "  %s\n", p)
		}
		return nil
	})
	return errors.Join(err, failed)
}
