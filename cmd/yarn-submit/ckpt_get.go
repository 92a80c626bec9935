package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"holdfast/client"
	"holdfast/hdfsckpt"
)

func newCkptGetCommand() *cobra.Command {
	o := &output{}
	cmd := &cobra.Command{
		Use:   "get URI|JOB STEP DIR",
		Short: "copy a checkpoint to a local directory",
		Long: `Get copies the checkpoint of STEP into the local directory DIR, which is made if
it is missing, with a file "checkpoint" that names it: TensorFlow restores from
the directory as it is.`,
		Args: between(3, 3, "URI|JOB STEP DIR"),
		RunE: func(cmd *cobra.Command, args []string) error { return runCkptGet(cmd, o, args[0], args[1], args[2]) },
	}
	o.add(cmd)
	return cmd
}

// got is the JSON of ckpt get.
type got struct {
	client.Checkpoint
	To string `json:"to"`
}

func runCkptGet(cmd *cobra.Command, o *output, ref, which, dir string) error {
	if err := o.check(); err != nil {
		return err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	return listed(cmd, ref, func(d client.Directory, list []hdfsckpt.Checkpoint) error {
		c, err := client.Choose(list, d.Store.URI(), which)
		if err != nil {
			return err
		}
		if !c.Whole() {
			return client.Usagef("the checkpoint %s in %s is %s: %s; it cannot be restored from", c.Name, d.Store.URI(), c.State, c.Why)
		}
		to, err := hdfsckpt.Open(cmd.Context(), dir, nil)
		if err != nil {
			return err
		}
		defer to.Close()
		if err := copyCheckpoint(cmd.Context(), d.Store, to, c); err != nil {
			return err
		}
		if o.json() {
			return writeJSON(cmd.OutOrStdout(), got{client.Describe(d.Store.URI(), []hdfsckpt.Checkpoint{*c})[0], dir})
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "copied %s, %s in %d files, to %s\n", c.Name, humanize.IBytes(uint64(c.Size)), len(c.Files), dir)
		return err
	})
}

// copyCheckpoint copies a checkpoint's files, below the directory in which they
// were, and says by which name TensorFlow finds them.
func copyCheckpoint(ctx context.Context, from, to hdfsckpt.Store, c *hdfsckpt.Checkpoint) error {
	base := path.Dir(c.Name)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for _, f := range c.Files {
		group.Go(func() error { return copyFile(groupCtx, from, to, f.Name, base) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("copying the checkpoint %s from %s to %s: %w", c.Name, from.URI(), to.URI(), err)
	}
	if c.Kind != hdfsckpt.TensorFlow {
		return nil
	}
	name := path.Base(c.Name)
	state := hdfsckpt.SavedState{Current: name, All: []string{name}}
	return hdfsckpt.WriteFile(ctx, to, hdfsckpt.StateFile, state.Bytes(), 0o644)
}

func copyFile(ctx context.Context, from, to hdfsckpt.Store, name, base string) error {
	target, err := filepath.Rel(base, name)
	if err != nil {
		return err
	}
	if err := hdfsckpt.MkdirAll(ctx, to, path.Dir(target), 0o755); err != nil {
		return err
	}
	r, err := from.Open(ctx, name)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := to.Create(ctx, target, 0o644)
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, io.NewSectionReader(r, 0, r.Size())); err != nil {
		return errors.Join(err, w.Abort())
	}
	return w.Close()
}
