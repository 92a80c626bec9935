package job

import (
	"github.com/spf13/cobra"

	"holdfast/client/jobs"
	"holdfast/cmd/yarn-submit/cli"
)

type statusOptions struct {
	cli.Output
	follow bool
}

// NewStatusCommand returns the command status.
func NewStatusCommand() *cobra.Command {
	o := &statusOptions{}
	cmd := &cobra.Command{
		Use:   "status [JOB]",
		Short: "show a job's state, its tasks and its event log",
		Long:  "Status shows a job, running or ended.\n\n" + cli.WhichJob,
		Example: `  yarn-submit status
  yarn-submit status mnist --follow`,
		Args:              cli.Between(0, 1, "[JOB]"),
		ValidArgsFunction: cli.CompleteJob,
		RunE:              func(cmd *cobra.Command, args []string) error { return runStatus(cmd, o, cli.JobOf(args)) },
	}
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "go on until the job ends, as run does; the exit code is the job's")
	o.Add(cmd)
	return cmd
}

func runStatus(cmd *cobra.Command, o *statusOptions, ref string) error {
	j, err := jobs.Find(cmd.Context(), ref)
	if err != nil {
		return err
	}
	defer j.Close()
	if o.follow {
		return follow(cmd, j, o.Output, followStyle{onlooker: true})
	}
	s, err := j.Status(cmd.Context())
	if err != nil {
		return err
	}
	if o.JSON() {
		return cli.WriteProto(cmd.OutOrStdout(), s)
	}
	return jobs.WriteStatus(cmd.OutOrStdout(), s, cli.Columns())
}
