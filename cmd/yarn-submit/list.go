package main

import (
	"github.com/spf13/cobra"

	"holdfast/client/jobs"
)

type listOptions struct {
	output
	jobs.ListOptions
}

func newListCommand() *cobra.Command {
	o := &listOptions{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list jobs, the newest first",
		Long: `List lists the jobs on this machine and, where HADOOP_CONF_DIR is set, yours on
the cluster.`,
		Args: between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return runList(cmd, o) },
	}
	cmd.Flags().BoolVar(&o.Everybody, "all-users", false, "also the cluster's jobs of other users")
	o.add(cmd)
	return cmd
}

func runList(cmd *cobra.Command, o *listOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	list, err := jobs.List(cmd.Context(), o.ListOptions)
	if err != nil {
		return err
	}
	if o.json() {
		if list == nil {
			list = []jobs.Entry{}
		}
		return writeJSON(cmd.OutOrStdout(), list)
	}
	return jobs.WriteList(cmd.OutOrStdout(), list)
}
