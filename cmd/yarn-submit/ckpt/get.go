package ckpt

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/client/checkpoints"
	"holdfast/cmd/yarn-submit/cli"
	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/inspect"
	"holdfast/hdfsckpt/store"
)

func newGetCommand() *cobra.Command {
	o := &cli.Output{}
	cmd := &cobra.Command{
		Use:   "get URI|JOB STEP DIR",
		Short: "copy a checkpoint to a local directory",
		Long: `Get copies the checkpoint of STEP into the local directory DIR, which is made if
it is missing. For TensorFlow a file "checkpoint" there names it, so that the
directory can be restored from as it is. What an interrupted get has copied is
not copied again. Where other files are in the way, nothing is written.`,
		Example: `  yarn-submit ckpt get mnist 400 ./model
  yarn-submit ckpt get hdfs:///user/me/mnist 400 /tmp/model`,
		Args: cli.Between(3, 3, "URI|JOB STEP DIR"),
		RunE: func(cmd *cobra.Command, args []string) error { return runGet(cmd, o, args[0], args[1], args[2]) },
	}
	cmd.ValidArgsFunction = completeCheckpoints(1)
	o.Add(cmd)
	return cmd
}

// Got is the JSON of ckpt get.
type Got struct {
	inspect.Checkpoint
	To      string `json:"to"`
	Copied  int    `json:"copied"`  // files
	Present int    `json:"present"` // files that were there already, as they should be
}

func runGet(cmd *cobra.Command, o *cli.Output, ref, which, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	return chosen(cmd, ref, which, func(c *checkpoints.Chosen) error {
		if err := hdfsckpt.CheckDestination(c.Store, *c.Checkpoint, dir); err != nil {
			return client.Usagef("%w", err)
		}
		to, err := store.Open(cmd.Context(), dir, nil)
		if err != nil {
			return err
		}
		defer to.Close()
		done, err := hdfsckpt.Copy(cmd.Context(), c.Store, to, *c.Checkpoint, cli.Bar(cmd, c.Name))
		if errors.Is(err, fs.ErrExist) || err != nil && !c.Whole() {
			return client.Usagef("%w", err)
		}
		if err != nil {
			return err
		}
		if o.JSON() {
			return cli.WriteJSON(cmd.OutOrStdout(), Got{c.Describe(), dir, done.Files, done.Present})
		}
		note := ""
		if done.Present > 0 {
			note = fmt.Sprintf("; %d files were there already", done.Present)
		}
		if !c.Whole() {
			note += "; whether it is whole could not be checked: " + c.Why
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "copied %s, %s in %d files, to %s%s\n", c.Name, humanize.IBytes(uint64(done.Bytes)), done.Files, dir, note)
		return err
	})
}
