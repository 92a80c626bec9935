package ckpt

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/client/checkpoints"
	"holdfast/cmd/yarn-submit/cli"
	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/inspect"
	"holdfast/hdfsckpt/retain"
)

type rollbackOptions struct {
	cli.Output
	dir string
	yes bool
}

func newRollbackCommand() *cobra.Command {
	o := &rollbackOptions{}
	cmd := &cobra.Command{
		Use:   "rollback URI|JOB STEP",
		Short: "have TensorFlow go on from an older checkpoint",
		Long: `Rollback points the file "checkpoint" at the complete checkpoint of STEP, from
which TensorFlow restores at the next start. Newer checkpoints stay where they
are. Of those that the program has removed or saved over, the last one is
retained and can be gone back to. Do it while no job writes there.
Without a terminal to ask on it changes nothing and ends with 2; --yes agrees.`,
		Example: `  yarn-submit ckpt rollback mnist 400
  yarn-submit ckpt rollback hdfs:///user/me/mnist 400 --yes`,
		Args: cli.Between(2, 2, "URI|JOB STEP"),
		RunE: func(cmd *cobra.Command, args []string) error { return runRollback(cmd, o, args[0], args[1]) },
	}
	cmd.Flags().StringVar(&o.dir, "dir", "", "the `DIR` below URI, where several have a checkpoint of STEP")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do not ask")
	cmd.ValidArgsFunction = completeCheckpoints(1)
	o.Add(cmd)
	return cmd
}

// rolledBack is the JSON of ckpt rollback.
type rolledBack struct {
	Directory string               `json:"directory"`
	Done      bool                 `json:"done"`
	To        inspect.Checkpoint   `json:"to"`
	Newer     []inspect.Checkpoint `json:"newer"` // stay, and are not restored from
}

func runRollback(cmd *cobra.Command, o *rollbackOptions, ref, which string) error {
	wanted, err := strconv.ParseInt(which, 10, 64)
	if err != nil {
		return client.Usagef("%q is not a step: see yarn-submit ckpt ls %s", which, ref)
	}
	consent := cli.Asker{Cmd: cmd, Yes: o.yes}
	err = listed(cmd, ref, func(d checkpoints.Directory, list []format.Checkpoint) error {
		retained, err := retain.List(cmd.Context(), d.Store)
		if err != nil {
			return err
		}
		plan, err := hdfsckpt.PlanRollback(append(list, retained...), o.dir, wanted)
		if err != nil {
			return client.Usagef("%s: %w", d.Store.URI(), err)
		}
		uri := d.Store.URI()
		result := rolledBack{Directory: uri, To: inspect.Describe(uri, []format.Checkpoint{plan.To}, list)[0], Newer: inspect.Describe(uri, plan.Newer, list)}
		if !o.JSON() {
			fmt.Fprintf(cmd.OutOrStdout(), "%s: the next start goes on from %s; %d newer checkpoints stay, and are not restored from\n", uri, result.To.Name, len(plan.Newer))
			for i := range plan.Newer {
				fmt.Fprintf(cmd.OutOrStdout(), "  stays  %s  %s  %s\n", step(&plan.Newer[i]), plan.Newer[i].State, plan.Newer[i].Name)
			}
		}
		if consent.Given("Roll back?") {
			if err := plan.Execute(cmd.Context(), d.Store); err != nil {
				return err
			}
			result.Done = true
		}
		if o.JSON() {
			return cli.WriteJSON(cmd.OutOrStdout(), result)
		}
		if !result.Done {
			fmt.Fprintln(cmd.OutOrStdout(), "nothing was changed")
		}
		return nil
	})
	if err != nil {
		return err
	}
	return consent.Err()
}
