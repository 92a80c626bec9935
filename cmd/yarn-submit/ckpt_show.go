package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/hdfsckpt"
)

type ckptShowOptions struct {
	output
	filter string
}

func newCkptShowCommand() *cobra.Command {
	o := &ckptShowOptions{}
	cmd := &cobra.Command{
		Use:   "show URI|JOB [STEP]",
		Short: "show a checkpoint: its files, and its tensors, largest first",
		Long:  "Show looks into one checkpoint, the newest complete one if no STEP is given.",
		Args:  between(1, 2, "URI|JOB [STEP]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runCkptShow(cmd, o, args[0], strings.Join(args[1:], ""))
		},
	}
	cmd.Flags().StringVar(&o.filter, "filter", "", "only tensors with `TEXT` in their names")
	o.add(cmd)
	return cmd
}

// shownCheckpoint is the JSON of ckpt show.
type shownCheckpoint struct {
	client.Checkpoint
	Files   []shownFile   `json:"files"`
	Tensors []shownTensor `json:"tensors"`
}

type shownFile struct {
	Name  string    `json:"name"`
	Bytes int64     `json:"bytes"`
	Time  time.Time `json:"time"`
}

type shownTensor struct {
	Name   string  `json:"name"`
	DType  string  `json:"dtype"`
	Shape  []int64 `json:"shape"`
	Bytes  int64   `json:"bytes"`
	Shard  int     `json:"shard"`  // -1 for one in slices
	Slices int     `json:"slices"` // 0 for one in one piece
}

func runCkptShow(cmd *cobra.Command, o *ckptShowOptions, ref, which string) error {
	if err := o.check(); err != nil {
		return err
	}
	return listed(cmd, ref, func(d client.Directory, list []hdfsckpt.Checkpoint) error {
		c, err := client.Choose(list, d.Store.URI(), which)
		if err != nil {
			return err
		}
		shown := shownCheckpoint{Files: []shownFile{}, Tensors: []shownTensor{}}
		for i := range list {
			if &list[i] == c {
				shown.Checkpoint = client.Describe(d.Store.URI(), list)[i]
			}
		}
		for _, f := range c.Files {
			shown.Files = append(shown.Files, shownFile{f.Name, f.Size, f.ModTime})
		}
		if c.Kind == hdfsckpt.TensorFlow {
			if shown.Tensors, err = tensors(cmd, d.Store, c, o.filter); err != nil && c.Whole() {
				return err
			}
		}
		if o.json() {
			return writeJSON(cmd.OutOrStdout(), shown)
		}
		return writeCheckpoint(cmd.OutOrStdout(), shown)
	})
}

// tensors lists what an index holds, largest first.
func tensors(cmd *cobra.Command, s hdfsckpt.Store, c *hdfsckpt.Checkpoint, filter string) ([]shownTensor, error) {
	list := []shownTensor{}
	x, err := hdfsckpt.ReadIndex(cmd.Context(), s, c.Name)
	if err != nil {
		return list, err
	}
	for _, e := range x.Tensors() {
		if !strings.Contains(e.Name, filter) {
			continue
		}
		t := shownTensor{Name: e.Name, DType: e.DType.String(), Shape: append([]int64{}, e.Shape...), Bytes: x.Bytes(e), Shard: e.Shard, Slices: len(e.Slices)}
		if e.Partitioned() {
			t.Shard = -1
		}
		list = append(list, t)
	}
	slices.SortStableFunc(list, func(a, b shownTensor) int { return int(min(1, max(-1, b.Bytes-a.Bytes))) })
	return list, nil
}

func writeCheckpoint(w io.Writer, c shownCheckpoint) error {
	fmt.Fprintf(w, "%s/%s  %s", c.Directory, c.Name, c.State)
	if c.Why != "" {
		fmt.Fprintf(w, ": %s", c.Why)
	}
	fmt.Fprintf(w, "\n%s, %s\n\n", humanize.IBytes(uint64(c.Bytes)), c.Time.Format(time.DateTime))
	t := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	fmt.Fprintln(t, "FILE\tSIZE")
	for _, f := range c.Files {
		fmt.Fprintf(t, "%s\t%s\n", f.Name, humanize.IBytes(uint64(f.Bytes)))
	}
	if len(c.Tensors) > 0 {
		fmt.Fprintln(t, "\t")
		fmt.Fprintln(t, "TENSOR\tSIZE\tDTYPE\tSHAPE\tSHARD")
	}
	for _, x := range c.Tensors {
		shard := fmt.Sprint(x.Shard)
		if x.Slices > 0 {
			shard = fmt.Sprintf("%d slices", x.Slices)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%v\t%s\n", x.Name, humanize.IBytes(uint64(x.Bytes)), x.DType, x.Shape, shard)
	}
	return t.Flush()
}
