package ckpt

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"holdfast/client"
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
		Short: "have TensorFlow go on from an older checkpoint",
		Long: `Rollback points the file "checkpoint" at the complete checkpoint of STEP, from
which TensorFlow restores at the next start. Newer checkpoints stay where they
are. Of those that the program has removed or saved over, the last one is
retained and can be gone back to. While a job that writes there is alive it is
refused.
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
	return change(cmd, &o.changeOptions, ref, inspect.PlanRollback(o.dir, wanted, proto.WritersJob),
		func(r *inspect.Rollback) {
			fmt.Fprintf(w, "%s: the next start goes on from %s; %d newer checkpoints stay, and are not restored from\n", r.Directory, r.To.Name, len(r.Newer))
			for _, c := range r.Newer {
				fmt.Fprintf(w, "  stays  %s  %s  %s\n", stepText(c), c.State, c.Name)
			}
		},
		func(r *inspect.Rollback) {
			if !r.Done {
				fmt.Fprintln(w, "nothing was changed")
			}
		})
}
