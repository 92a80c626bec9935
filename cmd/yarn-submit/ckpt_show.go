package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"holdfast/client/checkpoints"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/inspect"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/tensor"
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
		Long: `Show looks into one checkpoint, the newest complete one if no STEP is given: its
files and the hosts that have them, and its tensors. Tensors of PyTorch are
named by the keys that lead to them: model.layer.weight.`,
		Example: `  yarn-submit ckpt show mnist
  yarn-submit ckpt show hdfs:///user/me/mnist 400 --filter 'dense*'`,
		Args: between(1, 2, "URI|JOB [STEP]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runCkptShow(cmd, o, args[0], strings.Join(args[1:], ""))
		},
	}
	cmd.Flags().StringVar(&o.filter, "filter", "", "only tensors whose names are like `GLOB` (* any text, ? one character), or have it in them")
	cmd.ValidArgsFunction = completeCheckpoints(1)
	o.add(cmd)
	return cmd
}

// shownCheckpoint is the JSON of ckpt show.
type shownCheckpoint struct {
	inspect.Checkpoint
	Files   []shownFile   `json:"files"`
	Tensors []shownTensor `json:"tensors"`
}

type shownFile struct {
	Name   string        `json:"name"`
	Bytes  int64         `json:"bytes"`
	Time   time.Time     `json:"time"`
	Blocks []store.Block `json:"blocks,omitempty"` // on HDFS
}

// hosts are those that have any of the file.
func (f shownFile) hosts() string {
	seen := map[string]bool{}
	for _, b := range f.Blocks {
		for _, h := range b.Hosts {
			seen[h] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(seen)), " ")
}

type shownTensor struct {
	Name   string      `json:"name"`
	DType  tensor.Kind `json:"dtype"`
	Shape  []int64     `json:"shape"`
	Bytes  int64       `json:"bytes"`
	File   string      `json:"file"`   // none for one that lies in several
	Pieces int         `json:"pieces"` // 1, or in how many it was cut
}

func runCkptShow(cmd *cobra.Command, o *ckptShowOptions, ref, which string) error {
	if err := o.check(); err != nil {
		return err
	}
	return listed(cmd, ref, func(d checkpoints.Directory, list []format.Checkpoint) error {
		c, err := checkpoints.Choose(list, d.Store.URI(), which)
		if err != nil {
			return err
		}
		shown := shownCheckpoint{Files: []shownFile{}, Tensors: []shownTensor{}}
		shown.Checkpoint = inspect.Describe(d.Store.URI(), []format.Checkpoint{*c}, list)[0]
		if shown.Files, err = shownFiles(cmd.Context(), d.Store, c); err != nil {
			return err
		}
		if c.Contents() != nil {
			if shown.Tensors, err = shownTensors(cmd.Context(), d.Store, c, o.filter); err != nil && c.Whole() {
				return err
			}
		}
		if o.json() {
			return writeJSON(cmd.OutOrStdout(), shown)
		}
		return writeCheckpoint(cmd.OutOrStdout(), shown)
	})
}

func shownFiles(ctx context.Context, s store.Store, c *format.Checkpoint) ([]shownFile, error) {
	files := make([]shownFile, len(c.Files))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i, f := range c.Files {
		group.Go(func() error {
			blocks, err := store.Locate(ctx, s, f.Name)
			files[i] = shownFile{f.Name, f.Size, f.ModTime, blocks}
			return err
		})
	}
	return files, group.Wait()
}

// shownTensors lists what a checkpoint holds, largest first.
func shownTensors(ctx context.Context, s store.Store, c *format.Checkpoint, filter string) ([]shownTensor, error) {
	list := []shownTensor{}
	t, err := format.OpenTensors(ctx, s, c)
	if err != nil {
		return list, err
	}
	defer t.Close()
	like := matcher(filter)
	for _, x := range t.All() {
		if like(x.Name) {
			list = append(list, shownTensor{x.Name, x.Kind, append([]int64{}, x.Shape...), x.Bytes, x.File, x.Pieces})
		}
	}
	slices.SortStableFunc(list, func(a, b shownTensor) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return list, nil
}

// matcher tells which names are like a pattern. Unlike in names of files, * goes
// over slashes and dots, which have no meaning here.
func matcher(glob string) func(string) bool {
	if !strings.ContainsAny(glob, "*?") {
		return func(name string) bool { return strings.Contains(name, glob) }
	}
	text := regexp.QuoteMeta(glob)
	text = strings.ReplaceAll(strings.ReplaceAll(text, `\*`, ".*"), `\?`, ".")
	return regexp.MustCompile("(?s)^" + text + "$").MatchString
}

func writeCheckpoint(w io.Writer, c shownCheckpoint) error {
	fmt.Fprintf(w, "%s/%s  %s", c.Directory, c.Name, c.State)
	if c.Why != "" {
		fmt.Fprintf(w, ": %s", c.Why)
	}
	fmt.Fprintf(w, "\n%s, %s\n\n", humanize.IBytes(uint64(c.Bytes)), c.Time.Format(time.DateTime))
	t := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	fmt.Fprintln(t, "FILE\tSIZE\tHOSTS")
	for _, f := range c.Files {
		fmt.Fprintf(t, "%s\t%s\t%s\n", f.Name, humanize.IBytes(uint64(f.Bytes)), f.hosts())
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
