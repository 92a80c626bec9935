package main

import (
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
		Use:   "status JOB",
		Short: "show a job's state, its tasks and its event log",
		Long:  "Status shows a job, running or ended.\n\n" + whichJob,
		Args:  between(1, 1, "JOB"),
		RunE:  func(cmd *cobra.Command, args []string) error { return runStatus(cmd, o, args[0]) },
	}
	cmd.Flags().BoolVar(&o.follow, "follow", false, "go on until the job ends, as run does; the exit code is the job's")
	o.add(cmd)
	return cmd
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
		return follow(cmd, j, o.output, true)
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
