package job

import (
	"fmt"

	"github.com/spf13/cobra"

	"holdfast/client/jobs"
	"holdfast/cmd/yarn-submit/cli"
	"holdfast/proto"
)

// NewKillCommand returns the command kill.
func NewKillCommand() *cobra.Command {
	o := &cli.Output{}
	cmd := &cobra.Command{
		Use:   "kill JOB [TASK]",
		Short: "end a job, or have a task restarted",
		Long: `Kill ends a job in good order, or by force if its application master does not
answer, and returns once it has ended. Of a job that had ended already it says
how, with exit code 0.

With TASK, the job goes on: the present attempt of that task is ended, as of one
that hangs, and the task restarted under its name, in the same container. Tasks
that restart together, as the ranks of an all-reduce, all do. It does not count
as a failure of the task, and the event log says who asked. A task that has
ended is not started again. Only the job's user may.

` + cli.WhichJobExactly,
		Example: `  yarn-submit kill mnist
  yarn-submit kill local-20260301-101500-ab3d
  yarn-submit kill mnist worker-1`,
		Args: cli.Between(1, 2, "JOB [TASK]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return runKillTask(cmd, o, args[0], args[1])
			}
			return runKill(cmd, o, args[0])
		},
	}
	cmd.ValidArgsFunction = cli.CompleteJobThenTask(false)
	o.Add(cmd)
	return cmd
}

func runKill(cmd *cobra.Command, o *cli.Output, ref string) error {
	ctx := cmd.Context()
	j, err := jobs.FindToChange(ctx, ref)
	if err != nil {
		return err
	}
	defer j.Close()
	s, already, err := j.Kill(ctx, "killed by yarn-submit kill")
	if err != nil {
		return err
	}
	if o.JSON() {
		return cli.WriteProtoWith(cmd.OutOrStdout(), s, "had_ended", already)
	}
	said := ""
	if already {
		said = "had already ended: "
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s%s\n", j.ID, said, proto.StateWord(s.State))
	return err
}

func runKillTask(cmd *cobra.Command, o *cli.Output, ref, task string) error {
	ctx := cmd.Context()
	j, t, err := findRunningTask(ctx, jobs.FindToChange, ref, task)
	if err != nil {
		return err
	}
	defer j.Close()
	if err := j.RestartTask(ctx, t.Task); err != nil {
		return err
	}
	if o.JSON() {
		s, err := j.Status(ctx)
		if err != nil {
			return err
		}
		return cli.WriteProto(cmd.OutOrStdout(), s)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s of %s: attempt %d is ended, and it is restarted\n", t.Task, j.ID, t.Attempt)
	return err
}
