package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/client/jobs"
	"holdfast/cmd/yarn-submit/cli"
	"holdfast/proto"
)

// NewWaitCommand returns the command wait.
func NewWaitCommand() *cobra.Command {
	o := &cli.Output{}
	limit := time.Duration(0)
	cmd := &cobra.Command{
		Use:   "wait [JOB]",
		Short: "wait until a job has ended",
		Long: `Wait returns when a job has ended, and says how. Its exit code is that of the
job: 0 if it succeeded, 1 if it did not.

` + cli.WhichJob,
		Example: `  yarn-submit wait mnist && yarn-submit ckpt get mnist 400 ./model
  yarn-submit wait --timeout 2h`,
		Args:              cli.Between(0, 1, "[JOB]"),
		ValidArgsFunction: cli.CompleteJob,
		RunE:              func(cmd *cobra.Command, args []string) error { return runWait(cmd, o, cli.JobOf(args), limit) },
	}
	cmd.Flags().DurationVar(&limit, "timeout", 0, "give up after a `DURATION`, with exit code 1 (default never)")
	o.Add(cmd)
	return cmd
}

func runWait(cmd *cobra.Command, o *cli.Output, ref string, limit time.Duration) error {
	if cmd.Flags().Changed("timeout") && limit <= 0 {
		return client.Usagef("--timeout %v: write a length of time, as in 90s, 10m or 2h; without it, wait never gives up", limit)
	}
	ctx := cmd.Context()
	j, err := jobs.Find(ctx, ref)
	if err != nil {
		return err
	}
	defer j.Close()
	waiting, cancel := ctx, context.CancelFunc(func() {})
	if limit != 0 {
		waiting, cancel = context.WithTimeout(ctx, limit)
	}
	defer cancel()
	s, err := j.Watch(waiting, func(*proto.JobStatus) {})
	switch {
	case err != nil && errors.Is(waiting.Err(), context.DeadlineExceeded):
		return client.WithExitCode(client.ExitFailed, fmt.Errorf("%s has not ended within %s", j.ID, limit))
	case err != nil:
		return err
	case o.JSON():
		err = cli.WriteProto(cmd.OutOrStdout(), s)
	case s.State == proto.JobState_JOB_STATE_SUCCEEDED:
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s succeeded\n", s.Id)
	default:
		err = jobs.WriteFailure(cmd.OutOrStdout(), s)
	}
	if err == nil && s.State != proto.JobState_JOB_STATE_SUCCEEDED {
		return client.ErrJobFailed
	}
	return err
}
