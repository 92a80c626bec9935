package job

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/client/jobs"
	"holdfast/client/spec"
	"holdfast/cmd/yarn-submit/cli"
	"holdfast/proto"
)

// NewRerunCommand returns the command rerun.
func NewRerunCommand(args *spec.Args) *cobra.Command {
	o := &runOptions{}
	cmd := &cobra.Command{
		Use:   "rerun [JOB] [flags] [-- COMMAND...]",
		Short: "run a job again, with other flags if you like",
		Long: `Rerun starts a job as another was started, and follows it. Flags, which are
those of run, override what that job was given; those that can be repeated add
to it. The job's files and archives are read anew from where they were.

` + cli.WhichJob,
		Example: `  yarn-submit rerun mnist
  yarn-submit rerun mnist --worker 8 --worker-memory 4g --detach`,
		ValidArgsFunction: cli.CompleteJob,
		RunE:              func(cmd *cobra.Command, args []string) error { return runRerun(cmd, o, args) },
	}
	o.flags = spec.AddFlags(cmd, args, cli.CompleteQueue)
	if err := cmd.Flags().MarkHidden("file"); err != nil {
		panic(err) // AddFlags has declared it
	}
	o.addHow(cmd)
	cmd.SetUsageFunc(func(cmd *cobra.Command) error { return runUsage(cmd, o.flags) })
	return cmd
}

func runRerun(cmd *cobra.Command, o *runOptions, args []string) error {
	if cmd.Flags().Changed("file") {
		return client.Usagef("rerun takes the job from JOB, not from a file: use run -f")
	}
	named, command := args, []string(nil)
	if at := cmd.ArgsLenAtDash(); at >= 0 {
		named, command = args[:at], args[at:]
	}
	if err := cli.Between(0, 1, "[JOB] [flags] [-- COMMAND...]")(cmd, named); err != nil {
		return err
	}
	draft, err := savedDraft(cmd.Context(), cli.JobOf(named))
	if err != nil {
		return err
	}
	if draft, err = o.flags.Override(draft, command); err != nil {
		return err
	}
	return runDraft(cmd, o, draft)
}

// savedDraft reads how a job was described when it was started.
func savedDraft(ctx context.Context, ref string) (*spec.Draft, error) {
	j, err := jobs.Find(ctx, ref)
	if err != nil {
		return nil, err
	}
	defer j.Close()
	text, err := j.Draft(ctx)
	if err != nil {
		return nil, err
	}
	d, err := spec.ParseDraft(text, "")
	if err != nil {
		return nil, fmt.Errorf("read how %s was described: %w", j.ID, err)
	}
	return d, nil
}

// saveDraft keeps how a job was described, for rerun.
func saveDraft(ctx context.Context, j *jobs.Job, draft *spec.Draft, job *proto.JobSpec) error {
	text, err := draft.YAML(job)
	if err != nil {
		return err
	}
	return j.SaveDraft(ctx, text)
}
