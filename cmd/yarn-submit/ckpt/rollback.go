package ckpt

import (
	"fmt"
	"io"
	"path"
	"strconv"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/client/checkpoints"
	"holdfast/client/terminal"
	"holdfast/cmd/yarn-submit/cli"
	"holdfast/hdfsckpt/inspect"
	"holdfast/proto"
)

type rollbackOptions struct {
	changeOptions
	dir string
}

func newRollbackCommand() *cobra.Command {
	o := &rollbackOptions{}
	cmd := &cobra.Command{
		Use:   "rollback URI|JOB STEP",
		Short: "have programs go on from an older checkpoint",
		Long: `Rollback has the next start go on from the complete checkpoint of STEP. Where a
file names the one that is restored (TensorFlow's "checkpoint", DeepSpeed's
"latest") it is pointed there, and newer checkpoints stay where they are. Other
programs take what is newest, so newer ones are moved aside, to .holdfast/aside,
for 30 days; a rollback to one of them restores it. Of those that the program
has removed or saved over, the last one is retained and can be gone back to.
The plan is shown first. While a job that writes there is alive it is refused.
Without a terminal to ask on it changes nothing and ends with 2; --yes agrees.`,
		Example: `  yarn-submit ckpt rollback mnist 400
  yarn-submit ckpt rollback hdfs:///user/me/mnist 400 --yes`,
		Args: cli.Between(2, 2, "URI|JOB STEP"),
		RunE: func(cmd *cobra.Command, args []string) error { return runRollback(cmd, o, args[0], args[1]) },
	}
	cmd.Flags().StringVar(&o.dir, "dir", "", "the `DIR` below URI, where several have a checkpoint of STEP")
	cmd.ValidArgsFunction = completeCheckpoints(1)
	o.add(cmd)
	return cmd
}

func runRollback(cmd *cobra.Command, o *rollbackOptions, ref, which string) error {
	wanted, err := strconv.ParseInt(which, 10, 64)
	if err != nil {
		return client.Usagef("%q is not a step: see yarn-submit ckpt ls %s", which, ref)
	}
	w := cmd.OutOrStdout()
	return change(cmd, &o.changeOptions, ref, inspect.PlanRollback(o.dir, wanted, checkpoints.User(), proto.WritersJob),
		func(r *inspect.Rollback) { showRollback(w, r) },
		func(r *inspect.Rollback) {
			if !r.Done {
				fmt.Fprintln(w, "nothing was changed")
			}
		})
}

func showRollback(w io.Writer, r *inspect.Rollback) {
	row := func(format string, args ...any) {
		line := fmt.Sprintf(format, args...)
		if width := cli.Columns(); width > 0 {
			line = terminal.Cut(line, width)
		}
		fmt.Fprintln(w, line)
	}
	to := r.To.Name
	for _, c := range r.Beside {
		to += " and " + c.Name
	}
	fmt.Fprintf(w, "%s: the next start goes on from %s", r.Directory, to)
	switch {
	case len(r.Newer) > 0:
		fmt.Fprintf(w, "; %d newer checkpoints stay, and are not restored from\n", len(r.Newer))
	case len(r.Moved) > 0:
		newer, are := "newer checkpoints", "are"
		if len(r.Moved) == 1 {
			newer, are = "newer checkpoint", "is"
		}
		fmt.Fprintf(w, "; %d %s, which would be used instead, %s moved aside, %s, to .holdfast/aside in the directory, for 30 days\n", len(r.Moved), newer, are, humanize.IBytes(uint64(r.Bytes)))
	default:
		fmt.Fprintln(w, "; none is newer")
	}
	for _, c := range r.Restored {
		row("  restores  %s  %s  %s", stepText(c), c.State, c.Name)
	}
	for _, c := range r.Newer {
		row("  stays  %s  %s  %s", stepText(c), c.State, c.Name)
	}
	again := ""
	for _, c := range r.Moved {
		row("  moves  %s  %s  %s  %s", stepText(c), c.State, humanize.IBytes(uint64(c.Bytes)), c.Name)
		if c.CanGoBackTo() {
			again = fmt.Sprintf("To have them back: yarn-submit ckpt rollback %s %d", r.Directory, *c.Step)
			if dir := path.Dir(c.Name); dir != "." {
				again += " --dir " + dir
			}
			again += "\n"
		}
	}
	for _, name := range r.Copied {
		fmt.Fprintf(w, "  copies %s to %s, where programs look for the last one\n", r.To.Name, name)
	}
	fmt.Fprint(w, again)
}
