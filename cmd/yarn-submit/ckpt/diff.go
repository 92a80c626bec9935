package ckpt

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/client/checkpoints"
	"holdfast/client/terminal"
	"holdfast/cmd/yarn-submit/cli"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/inspect"
)

type diffOptions struct {
	cli.Output
	filter string
	wide   bool
}

func newDiffCommand() *cobra.Command {
	o := &diffOptions{}
	cmd := &cobra.Command{
		Use:   "diff URI|JOB STEP STEP",
		Short: "compare two checkpoints: tensors added, removed, reshaped, changed",
		Long: `Diff lists the tensors that differ between two checkpoints, and by how much.
Where --filter leaves one tensor, it shows how its values are spread in both.`,
		Example: `  yarn-submit ckpt diff mnist 300 400
  yarn-submit ckpt diff ./ck 300 400 --filter dense/kernel`,
		Args: cli.Between(3, 3, "URI|JOB STEP STEP"),
		RunE: func(cmd *cobra.Command, args []string) error { return runDiff(cmd, o, args[0], args[1], args[2]) },
	}
	cmd.Flags().StringVar(&o.filter, "filter", "", filterUsage)
	cmd.Flags().BoolVar(&o.wide, "wide", false, wideUsage)
	cmd.ValidArgsFunction = completeCheckpoints(2)
	o.Add(cmd)
	return cmd
}

func runDiff(cmd *cobra.Command, o *diffOptions, ref, first, second string) error {
	return listed(cmd, ref, func(dirs []checkpoints.Listed) error {
		var both [2]*checkpoints.Chosen
		for i, which := range []string{first, second} {
			var err error
			if both[i], err = checkpoints.Choose(dirs, which); err != nil {
				return err
			}
		}
		ctx, titles := cmd.Context(), [2]string{both[0].Name, both[1].Name}
		a, err := format.OpenTensors(ctx, both[0].Store, both[0].Checkpoint)
		if err != nil {
			return err
		}
		defer a.Close()
		b, err := format.OpenTensors(ctx, both[1].Store, both[1].Checkpoint)
		if err != nil {
			return err
		}
		defer b.Close()
		selected := filtered(o.filter, a, b)
		names := selectedNames(selected, a, b)
		if len(names) == 0 && o.filter != "" {
			return noTensor(o.filter, ref, first)
		}
		result, err := inspect.CompareTensors(ctx, a, b, selected, math.MaxInt64, cli.Bar(cmd, strings.Join(titles[:], ", ")))
		cli.EraseBar(cmd)
		if err != nil {
			return err
		}
		if o.JSON() {
			return cli.WriteJSON(cmd.OutOrStdout(), map[string]any{"changes": result})
		}
		w := cmd.OutOrStdout()
		if err := writeChanges(w, result, len(names), columns(o.wide)); err != nil || o.filter == "" || len(names) != 1 {
			return err
		}
		return writeSpread(cmd, titles, a.Find(names[0]), b.Find(names[0]))
	})
}

// selectedNames returns the names of the tensors of two checkpoints that are selected.
func selectedNames(selected func(name string) bool, a, b *format.Tensors) []string {
	var names []string
	for _, x := range a.All() {
		if selected(x.Name) {
			names = append(names, x.Name)
		}
	}
	for _, y := range b.All() {
		if selected(y.Name) && a.Find(y.Name) == nil {
			names = append(names, y.Name)
		}
	}
	return names
}

// writeChanges writes what differs between two checkpoints, of so many tensors, in a table of at
// most width columns; 0: of any width.
func writeChanges(w io.Writer, list []inspect.Change, of, width int) error {
	if len(list) == 0 {
		said := "all tensors are the same"
		if of == 1 {
			said = "the tensor is the same"
		}
		_, err := fmt.Fprintln(w, said)
		return err
	}
	t := terminal.NewTable("CHANGE", "TENSOR", "TYPE", "BY", "OF", "NOTE")
	t.Flexible, t.Optional = []string{"TENSOR", "TYPE", "NOTE"}, []string{"TYPE", "OF"}
	for _, c := range list {
		what, by, former := c.From, "", ""
		if c.Change == "added" {
			what = c.To
		}
		if c.Change == "reshaped" {
			what += " -> " + c.To
		}
		if c.Norm != nil && c.Former != nil {
			by, former = fmt.Sprintf("%.4g", *c.Norm), fmt.Sprintf("%.4g", *c.Former)
		}
		t.Add(c.Change, c.Name, what, by, former, c.Why)
	}
	return t.Write(w, width)
}

// writeSpread writes how the values of a tensor are spread in two checkpoints, of which one may
// not have it, as far as they are numbers.
func writeSpread(cmd *cobra.Command, titles [2]string, x, y *format.Tensor) error {
	w := cmd.OutOrStdout()
	only := x
	if x == nil {
		only = y
	}
	progress := cli.Bar(cmd, only.Name)
	defer cli.EraseBar(cmd)
	switch {
	case hasNumbers(x) && hasNumbers(y):
		both, least, most, err := inspect.SummariseBoth(cmd.Context(), x, y, histogramBins, math.MaxInt64, progress)
		if err != nil {
			return err
		}
		cli.EraseBar(cmd)
		fmt.Fprintln(w)
		writeBoth(w, titles, both, least, most)
	case (x == nil || y == nil) && hasNumbers(only):
		v, err := inspect.Summarise(cmd.Context(), only, histogramBins, math.MaxInt64, progress)
		if err != nil {
			return err
		}
		cli.EraseBar(cmd)
		fmt.Fprintln(w)
		writeValues(w, v)
	}
	return nil
}
