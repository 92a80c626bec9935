package ckpt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"holdfast/client/checkpoints"
	"holdfast/cmd/yarn-submit/cli"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/inspect"
	"holdfast/hdfsckpt/store"
)

type showOptions struct {
	cli.Output
	filter string
}

func newShowCommand() *cobra.Command {
	o := &showOptions{}
	cmd := &cobra.Command{
		Use:   "show URI|JOB [STEP]",
		Short: "show a checkpoint: its files, and its tensors, largest first",
		Long: `Show looks into one checkpoint, the newest complete one if no STEP is given: its
files and the hosts that have them, and its tensors. Tensors of PyTorch are
named by the keys that lead to them: model.layer.weight.`,
		Example: `  yarn-submit ckpt show mnist
  yarn-submit ckpt show hdfs:///user/me/mnist 400 --filter 'dense*'`,
		Args: cli.Between(1, 2, "URI|JOB [STEP]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runShow(cmd, o, args[0], strings.Join(args[1:], ""))
		},
	}
	cmd.Flags().StringVar(&o.filter, "filter", "", "only tensors whose names are like `GLOB` (* any text, ? one character), or have it in them")
	cmd.ValidArgsFunction = completeCheckpoints(1)
	o.Add(cmd)
	return cmd
}

// hosts are those that have any of a file.
func hosts(f inspect.File) string {
	seen := map[string]bool{}
	for _, b := range f.Blocks {
		for _, h := range b.Hosts {
			seen[h] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(seen)), " ")
}

func runShow(cmd *cobra.Command, o *showOptions, ref, which string) error {
	return listed(cmd, ref, func(d checkpoints.Directory, list []format.Checkpoint) error {
		c, err := checkpoints.Choose(list, d.Store.URI(), which)
		if err != nil {
			return err
		}
		shown := inspect.Details{Checkpoint: inspect.Describe(d.Store.URI(), []format.Checkpoint{*c}, list)[0], Files: inspect.Files(c), Tensors: []inspect.Tensor{}}
		if err := inspect.Locate(cmd.Context(), d.Store, shown.Files); err != nil {
			return err
		}
		var unseen error
		if c.Contents() != nil {
			if shown.Tensors, err = shownTensors(cmd.Context(), d.Store, c, o.filter); c.Whole() {
				unseen = err // what is not whole says itself why
			}
		}
		switch {
		case !o.JSON():
			return errors.Join(writeCheckpoint(cmd.OutOrStdout(), shown), unseen)
		case unseen != nil:
			return unseen
		}
		return cli.WriteJSON(cmd.OutOrStdout(), shown)
	})
}

// shownTensors lists what a checkpoint holds, largest first.
func shownTensors(ctx context.Context, s store.Store, c *format.Checkpoint, filter string) ([]inspect.Tensor, error) {
	t, err := format.OpenTensors(ctx, s, c)
	if err != nil {
		return []inspect.Tensor{}, err
	}
	defer t.Close()
	like := inspect.Like(filter)
	return inspect.DescribeTensors(slices.DeleteFunc(slices.Clone(t.All()), func(x *format.Tensor) bool { return !like(x.Name) })), nil
}

func writeCheckpoint(w io.Writer, c inspect.Details) error {
	fmt.Fprintf(w, "%s/%s  %s", c.Directory, c.Name, c.State)
	if c.Why != "" {
		fmt.Fprintf(w, ": %s", c.Why)
	}
	fmt.Fprintf(w, "\n%s, %s\n\n", humanize.IBytes(uint64(c.Bytes)), c.Time.Format(time.DateTime))
	t := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	fmt.Fprintln(t, "FILE\tSIZE\tHOSTS")
	for _, f := range c.Files {
		fmt.Fprintf(t, "%s\t%s\t%s\n", f.Name, humanize.IBytes(uint64(f.Bytes)), hosts(f))
	}
	if err := t.Flush(); err != nil || len(c.Tensors) == 0 {
		return err
	}
	fmt.Fprintln(w)
	fmt.Fprintln(t, "TENSOR\tSIZE\tDTYPE\tSHAPE\tIN")
	for _, x := range c.Tensors {
		in := path.Base(x.File)
		if x.Pieces > 1 {
			in = fmt.Sprintf("%d pieces", x.Pieces)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%v\t%s\n", x.Name, humanize.IBytes(uint64(x.Bytes)), x.DType, x.Shape, in)
	}
	return t.Flush()
}
