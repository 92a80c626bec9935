package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/internal/hadoop/conf"
	"holdfast/proto"
)

type runOptions struct {
	output
	flags          *client.Flags
	detach, dryRun bool
}

func newRunCommand(args []string) *cobra.Command {
	o := &runOptions{}
	cmd := &cobra.Command{
		Use:   "run [-f job.yaml] [flags] -- COMMAND...",
		Short: "start a job, and follow it",
		Long: `Run starts a job and follows it to its end.

In COMMAND and in --env values, {role}, {index}, {task}, {attempt}, {port}, {host},
{rank}, {world_size}, {node_rank}, {master_addr}, {master_port}, {cluster_json} and
{ROLE_hosts} of any role (as in {ps_hosts}, name:port separated by commas) are
replaced for each task. Each role has flags of its own: --ROLE, --ROLE-memory, --ROLE-vcores and
--ROLE-gpus, for ps, worker, chief, evaluator and tensorboard, and for those that
--role or the YAML file name.

Ctrl-C in a terminal asks whether to kill the job or to leave it running; a second
one kills it. Elsewhere SIGINT and SIGTERM kill it.`,
		Example: `  yarn-submit run --local --ps 2 --worker 2 --files train.py \
      --checkpoint ./train_logs=/tmp/logs -- \
      python train.py --job_name={role} --task_index={index} \
      --ps_hosts={ps_hosts} --worker_hosts={worker_hosts}
  yarn-submit run -f job.yaml --worker 8 --queue research`,
		RunE: func(cmd *cobra.Command, args []string) error { return runRun(cmd, o, args) },
	}
	cmd.Flags().SetInterspersed(false)
	o.flags = client.AddFlags(cmd.Flags(), client.RolesIn(args))
	cmd.Flags().BoolVar(&o.detach, "detach", false, "do not follow the job once it is submitted")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "check the job as for a submission, ask the cluster if one is configured, print it as YAML for -f, and start nothing")
	o.add(cmd)
	return cmd
}

func runRun(cmd *cobra.Command, o *runOptions, command []string) error {
	if err := o.check(); err != nil {
		return err
	}
	draft, err := o.flags.Draft(command)
	if err != nil {
		return err
	}
	spec, err := draft.Spec()
	if err != nil {
		return err
	}
	// Before the job runs, an interrupt only has to stop what is being done.
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if spec.Files, err = client.Collect(ctx, draft.Inputs); err != nil {
		return err
	}
	if err := client.CheckCommands(spec); err != nil {
		return err
	}
	for _, note := range client.Notes(spec) {
		fmt.Fprintln(cmd.ErrOrStderr(), "yarn-submit: note:", note)
	}
	if o.dryRun {
		return rehearse(ctx, cmd, o, draft, spec)
	}
	job, closeJob, err := start(ctx, cmd, draft, spec)
	if err != nil {
		return err
	}
	defer closeJob()
	stop()
	if job.Note != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), "yarn-submit: note:", job.Note)
	}
	if o.detach {
		if o.json() {
			return writeJSON(cmd.OutOrStdout(), map[string]string{"id": job.ID, "directory": job.URI()})
		}
		_, err := fmt.Fprintln(cmd.OutOrStdout(), job.ID)
		return err
	}
	out := cmd.OutOrStdout()
	if o.json() {
		out = cmd.ErrOrStderr()
	}
	fmt.Fprintf(out, "started %s (%s)\n", job.ID, spec.Name)
	return follow(cmd, job, o.output, false)
}

// rehearse prints the job, once the cluster, if one is configured, has been
// asked what a submission asks it.
func rehearse(ctx context.Context, cmd *cobra.Command, o *runOptions, draft *client.Draft, spec *proto.JobSpec) error {
	switch {
	case spec.Local:
	case os.Getenv(conf.EnvDir) == "":
		fmt.Fprintf(cmd.ErrOrStderr(), "yarn-submit: note: no cluster was asked about the job: %s is not set\n", conf.EnvDir)
	default:
		c, err := connect(cmd, draft)
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.Check(ctx, spec); err != nil {
			return err
		}
	}
	if o.json() {
		return writeProto(cmd.OutOrStdout(), spec)
	}
	text, err := draft.YAML(spec)
	if err != nil {
		return err
	}
	_, err = cmd.OutOrStdout().Write(text)
	return err
}

// connect connects to the cluster as the one whom the job is to run as.
func connect(cmd *cobra.Command, draft *client.Draft) (*client.Cluster, error) {
	c, err := client.ConnectAs(draft.Principal, draft.Keytab)
	if err != nil {
		return nil, err
	}
	for _, w := range c.Warnings() {
		fmt.Fprintln(cmd.ErrOrStderr(), "yarn-submit: note:", w)
	}
	return c, nil
}

// start starts the job where the spec says.
func start(ctx context.Context, cmd *cobra.Command, draft *client.Draft, spec *proto.JobSpec) (*client.Job, func(), error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("find the program itself: %w", err)
	}
	tell := func(note string) { fmt.Fprintln(cmd.ErrOrStderr(), "yarn-submit: note:", note) }
	if spec.Local {
		j, err := client.StartLocal(ctx, spec, exe, tell)
		if err != nil {
			return nil, nil, err
		}
		return j, j.Close, nil
	}
	c, err := connect(cmd, draft)
	if err != nil {
		return nil, nil, err
	}
	j, err := c.Submit(ctx, spec, exe, tell)
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	return j, j.Close, nil
}
