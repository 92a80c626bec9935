package job

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"holdfast/client/jobs"
	"holdfast/client/jobs/logs"
	"holdfast/cmd/yarn-submit/cli"
	"holdfast/proto"
)

type stacksOptions struct{ cli.Output }

// NewStacksCommand returns the command stacks.
func NewStacksCommand() *cobra.Command {
	o := &stacksOptions{}
	cmd := &cobra.Command{
		Use:   "stacks JOB [TASK|ROLE]",
		Short: "show where the Python of a task stands",
		Long: `Stacks has the processes of tasks that run print what each of their threads is
doing, and shows it: for tasks that hang. It works with Python programs and
Java. What they print goes to the task's output, too.

` + cli.WhichJob,
		Example: `  yarn-submit stacks mnist
  yarn-submit stacks mnist worker-1`,
		Args:              cli.Between(1, 2, "JOB [TASK|ROLE]"),
		ValidArgsFunction: cli.CompleteJobThenTask(true),
		RunE:              func(cmd *cobra.Command, args []string) error { return runStacks(cmd, o, args) },
	}
	o.Add(cmd)
	return cmd
}

func runStacks(cmd *cobra.Command, o *stacksOptions, args []string) error {
	ctx := cmd.Context()
	j, err := jobs.Find(ctx, args[0])
	if err != nil {
		return err
	}
	defer j.Close()
	s, err := j.Status(ctx)
	if err == nil {
		err = jobs.CheckRuns(s)
	}
	if err != nil {
		return err
	}
	of := ""
	if len(args) > 1 {
		of = args[1]
	}
	list, err := logs.Tasks(s, of)
	if err != nil {
		return err
	}
	var tasks []string
	for _, t := range list {
		if t.State == proto.TaskState_TASK_STATE_RUNNING || of != "" {
			tasks = append(tasks, t.Task)
		}
	}
	all := []jobs.TaskStacks{}
	err = j.Stacks(ctx, tasks, func(found jobs.TaskStacks) {
		all = append(all, found)
		if !o.JSON() {
			fmt.Fprintf(cmd.OutOrStdout(), "==> %s <==\n%s%s\n", found.Task, found.Stacks, found.Error)
		}
	})
	if o.JSON() && (err == nil || len(all) > 0) {
		err = errors.Join(err, cli.WriteJSON(cmd.OutOrStdout(), map[string]any{"tasks": all}))
	}
	if err != nil || o.JSON() {
		return err
	}
	if len(all) == 0 {
		cli.Note(cmd, "no task runs")
	}
	return nil
}
