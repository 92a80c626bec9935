package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"holdfast/client/jobs"
)

type statusOptions struct {
	output
	follow bool
}

func newStatusCommand() *cobra.Command {
	o := &statusOptions{}
	cmd := &cobra.Command{
		Use:   "status [JOB]",
		Short: "show a job's state, its tasks and its event log",
		Long:  "Status shows a job, running or ended.\n\n" + whichJob,
		Example: `  yarn-submit status
  yarn-submit status mnist --follow`,
		Args:              between(0, 1, "[JOB]"),
		ValidArgsFunction: completeJob,
		RunE:              func(cmd *cobra.Command, args []string) error { return runStatus(cmd, o, jobOf(args)) },
	}
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "go on until the job ends, as run does; the exit code is the job's")
	o.add(cmd)
	return cmd
}

// jobOf returns the first argument, which names a job; "" if there is none.
func jobOf(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// interruptible returns a context that ends with an interrupt.
func interruptible(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
}

func runStatus(cmd *cobra.Command, o *statusOptions, ref string) error {
	if err := o.check(); err != nil {
		return err
	}
	j, err := jobs.Find(cmd.Context(), ref)
	if err != nil {
		return err
	}
	defer j.Close()
	if o.follow {
		return follow(cmd, j, o.output, followStyle{onlooker: true})
	}
	s, err := j.Status(cmd.Context())
	if err != nil {
		return err
	}
	if o.json() {
		return writeProto(cmd.OutOrStdout(), s)
	}
	return jobs.WriteStatus(cmd.OutOrStdout(), s, columns())
}
