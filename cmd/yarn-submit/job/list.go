package job

import (
	"fmt"

	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/client/jobs"
	"holdfast/cmd/yarn-submit/cli"
	"holdfast/proto"
)

type listOptions struct {
	cli.Output
	jobs.ListOptions
	wide bool
}

// listLimit is how many jobs list shows if it is not told.
const listLimit = 20

// NewListCommand returns the command list.
func NewListCommand() *cobra.Command {
	o := &listOptions{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list jobs, the newest first",
		Long: `List lists your jobs: those on this machine and, where HADOOP_CONF_DIR is set,
those on the cluster.`,
		Example: `  yarn-submit list --state running,waiting
  yarn-submit list --all --name 'mnist-*' --limit 100`,
		Args: cli.Between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return runList(cmd, o) },
	}
	f := cmd.Flags()
	f.BoolVarP(&o.Everybody, "all", "a", false, "also the cluster's jobs of other users")
	f.StringSliceVar(&o.States, "state", nil, "only jobs in one of these `STATES`, separated by commas")
	f.StringVar(&o.Name, "name", "", "only jobs whose names match a shell `PATTERN`")
	f.IntVar(&o.Limit, "limit", listLimit, "the newest `N` only; 0: all")
	f.BoolVar(&o.wide, "wide", false, "show queue and user too, and cut nothing")
	cli.CompleteWith(cmd, "state", jobs.StateWords()...)
	o.Add(cmd)
	return cmd
}

func runList(cmd *cobra.Command, o *listOptions) error {
	if o.Limit < 0 {
		return client.Usagef("--limit %d: write a number of jobs, or 0 for all", o.Limit)
	}
	o.Steps = true
	list, omitted, problems := jobs.List(cmd.Context(), o.ListOptions)
	if problems != nil && len(list) == 0 {
		return problems
	}
	var err error
	if o.JSON() {
		err = cli.WriteProto(cmd.OutOrStdout(), &proto.JobList{Jobs: list})
	} else {
		err = jobs.WriteList(cmd.OutOrStdout(), list, jobs.ListStyle{Width: cli.Columns(), Users: o.Everybody, Wide: o.wide})
	}
	if err == nil && omitted > 0 {
		cli.Note(cmd, fmt.Sprintf("%d older jobs are not shown; --limit 0 shows all", omitted))
	}
	if err != nil {
		return err
	}
	return problems
}
