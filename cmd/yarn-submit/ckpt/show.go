package ckpt

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/client/checkpoints"
	"holdfast/client/terminal"
	"holdfast/cmd/yarn-submit/cli"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/inspect"
	"holdfast/hdfsckpt/store"
)

type showOptions struct {
	cli.Output
	filter string
	wide   bool
}

func newShowCommand() *cobra.Command {
	o := &showOptions{}
	cmd := &cobra.Command{
		Use:   "show URI|JOB [STEP]",
		Short: "show a checkpoint: its files, and its tensors, largest first",
		Long: `Show looks into one checkpoint, the newest complete one if no STEP is given: its
files and the hosts that have them, and its tensors. Tensors of PyTorch are
named by the keys that lead to them: model.layer.weight. Where --filter leaves
one tensor, it shows how its values are spread, as ckpt cat does.`,
		Example: `  yarn-submit ckpt show mnist
  yarn-submit ckpt show hdfs:///user/me/mnist 400 --filter 'dense*'`,
		Args: cli.Between(1, 2, "URI|JOB [STEP]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runShow(cmd, o, args[0], strings.Join(args[1:], ""))
		},
	}
	cmd.Flags().StringVar(&o.filter, "filter", "", filterUsage)
	cmd.Flags().BoolVar(&o.wide, "wide", false, wideUsage)
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
	return chosen(cmd, ref, which, func(c *checkpoints.Chosen) error {
		shown := inspect.Details{Checkpoint: c.Describe(), Files: inspect.Files(c.Checkpoint), Tensors: []inspect.Tensor{}}
		err := inspect.Locate(cmd.Context(), c.Store, shown.Files, cli.CountBar(cmd, "files"))
		cli.EraseBar(cmd)
		if err != nil {
			return err
		}
		var unseen error
		var only *inspect.Values
		if c.Contents() != nil {
			if shown.Tensors, only, err = shownTensors(cmd, c.Store, c.Checkpoint, o); c.Whole() {
				unseen = err // what is not whole says itself why
			}
		}
		switch {
		case err == nil && o.filter != "" && len(shown.Tensors) == 0:
			return noTensor(o.filter, ref, which)
		case !o.JSON():
			return errors.Join(writeCheckpoint(cmd.OutOrStdout(), shown, only, columns(o.wide)), unseen)
		case unseen != nil:
			return unseen
		}
		return cli.WriteJSON(cmd.OutOrStdout(), shown)
	})
}

// shownTensors lists what a checkpoint holds, largest first, and summarises the values of the
// only tensor that the filter selects, for people; nil if it selects others too, or that has no
// numbers.
func shownTensors(cmd *cobra.Command, s store.Store, c *format.Checkpoint, o *showOptions) ([]inspect.Tensor, *inspect.Values, error) {
	t, err := format.OpenTensors(cmd.Context(), s, c)
	if err != nil {
		return []inspect.Tensor{}, nil, err
	}
	defer t.Close()
	like := filtered(o.filter, t)
	selected := slices.DeleteFunc(slices.Clone(t.All()), func(x *format.Tensor) bool { return !like(x.Name) })
	list := inspect.DescribeTensors(selected)
	if o.JSON() || o.filter == "" || len(selected) != 1 || !hasNumbers(selected[0]) {
		return list, nil, nil
	}
	values, err := inspect.Summarise(cmd.Context(), selected[0], histogramBins, math.MaxInt64, cli.Bar(cmd, selected[0].Name))
	cli.EraseBar(cmd)
	if err != nil {
		return list, nil, fmt.Errorf("how the values of %s are spread is not known: %w", selected[0].Name, err)
	}
	return list, &values, nil
}

// noTensor is the error where a filter selects no tensor of a checkpoint.
func noTensor(filter, ref, which string) error {
	return client.Usagef("no tensor is like %q: see %s", filter, strings.TrimSpace("yarn-submit ckpt show "+ref+" "+which))
}

// writeCheckpoint writes a checkpoint for people, in tables of at most width columns (0: of any
// width). only are the values of its only tensor that is shown; nil: none are.
func writeCheckpoint(w io.Writer, c inspect.Details, only *inspect.Values, width int) error {
	fmt.Fprintf(w, "%s/%s  %s", c.Directory, c.Name, c.State)
	if c.Why != "" {
		fmt.Fprintf(w, ": %s", c.Why)
	}
	fmt.Fprintf(w, "\n%s, %s\n\n", humanize.IBytes(uint64(c.Bytes)), c.Time.Format(time.DateTime))
	files := terminal.NewTable("FILE", "SIZE", "HOSTS")
	files.Flexible = []string{"FILE", "HOSTS"}
	for _, f := range c.Files {
		files.Add(f.Name, humanize.IBytes(uint64(f.Bytes)), hosts(f))
	}
	if err := files.Write(w, width); err != nil || len(c.Tensors) == 0 {
		return err
	}
	fmt.Fprintln(w)
	tensors := terminal.NewTable("TENSOR", "SIZE", "DTYPE", "SHAPE", "IN")
	tensors.Flexible, tensors.Optional = []string{"TENSOR", "SHAPE", "IN"}, []string{"IN"}
	for _, x := range c.Tensors {
		in := path.Base(x.File)
		if x.Pieces > 1 {
			in = fmt.Sprintf("%d pieces", x.Pieces)
		}
		tensors.Add(x.Name, humanize.IBytes(uint64(x.Bytes)), string(x.DType), fmt.Sprint(x.Shape), in)
	}
	if err := tensors.Write(w, width); err != nil || only == nil {
		return err
	}
	fmt.Fprintln(w)
	writeValues(w, *only)
	return nil
}
