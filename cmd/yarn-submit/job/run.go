// Package job is the commands that start, show, follow and end jobs: a file for each.
package job

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"holdfast/client/cluster"
	"holdfast/client/jobs"
	"holdfast/client/spec"
	"holdfast/client/submit"
	"holdfast/client/terminal"
	"holdfast/cmd/yarn-submit/cli"
	"holdfast/internal/hadoop/conf"
	"holdfast/proto"
)

type runOptions struct {
	cli.Output
	flags                *spec.Flags
	detach, dryRun, logs bool
}

// NewRunCommand returns the command run.
func NewRunCommand(args *spec.Args) *cobra.Command {
	o := &runOptions{}
	cmd := &cobra.Command{
		Use:   "run [-f job.yaml] [flags] -- COMMAND...",
		Short: "start a job, and follow it",
		Long: `Run starts a job and follows it to its end.

` + cli.Wrapped(spec.Replaced()) + `
Ctrl-C in a terminal asks whether to kill the job or to leave it running; a
second one kills it. Elsewhere SIGINT and SIGTERM kill it. What the tasks write
is shown with --logs, and at any time by yarn-submit logs.`,
		Example: `  yarn-submit run --local --ps 2 --worker 2 --files train.py \
      --checkpoint ./train_logs=/tmp/logs -- \
      python train.py --job_name={role} --task_index={index} \
      --ps_hosts={ps_hosts} --worker_hosts={worker_hosts}
  yarn-submit run -f job.yaml --worker 8 --queue research`,
		RunE: func(cmd *cobra.Command, args []string) error { return runRun(cmd, o, args) },
	}
	cmd.Flags().SetInterspersed(false)
	o.flags = spec.AddFlags(cmd, args, cli.CompleteQueue)
	o.addHow(cmd)
	cmd.SetUsageFunc(func(cmd *cobra.Command) error { return runUsage(cmd, o.flags) })
	return cmd
}

// addHow declares the flags that say how a job is started and followed.
func (o *runOptions) addHow(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&o.detach, "detach", "d", false, "do not follow the job once it is submitted")
	cmd.Flags().BoolVar(&o.logs, "logs", false, "show what the tasks write, too")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "check the job and print it as YAML; start nothing")
	o.Add(cmd)
}

// runUsage writes the flags of run under headings.
func runUsage(cmd *cobra.Command, flags *spec.Flags) error {
	out := cmd.OutOrStderr()
	fmt.Fprintf(out, "Usage:\n  %s\n\nExamples:\n%s\n", cmd.UseLine(), cmd.Example)
	own := pflag.NewFlagSet("run", pflag.ContinueOnError)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !flags.Has(f.Name) {
			own.AddFlag(f)
		}
	})
	for _, g := range append(flags.Groups(), spec.Group{Heading: "This command", Flags: own}) {
		fmt.Fprintf(out, "\n%s:\n%s", g.Heading, g.Flags.FlagUsagesWrapped(cli.UsageWidth))
	}
	return nil
}

func runRun(cmd *cobra.Command, o *runOptions, command []string) error {
	draft, err := o.flags.Draft(command)
	if err != nil {
		return err
	}
	return runDraft(cmd, o, draft)
}

// runDraft checks the job that a draft describes, and starts and follows it.
func runDraft(cmd *cobra.Command, o *runOptions, draft *spec.Draft) error {
	job, err := draft.Spec()
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if job.Files, err = spec.Collect(ctx, draft.Inputs, job.Checkpoints); err != nil {
		return err
	}
	if err := spec.CheckCommands(job); err != nil {
		return err
	}
	for _, n := range spec.Notes(job) {
		cli.Note(cmd, n)
	}
	if n := draft.FrameworkNote(job); n != "" {
		cli.Note(cmd, n)
	}
	if o.dryRun {
		return dryRun(ctx, cmd, o, draft, job)
	}
	j, err := start(ctx, cmd, draft, job)
	if err != nil {
		return err
	}
	defer j.Close()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s was started meanwhile and goes on; to end it: yarn-submit kill %[1]s: %w", j.ID, err)
	}
	if err := saveDraft(ctx, j, draft, job); err != nil {
		cli.Note(cmd, fmt.Sprintf("the job was started, but rerun will not know it: %v", err))
	}
	noteNamesakes(cmd, j, job.Name)
	if o.detach {
		if o.JSON() {
			return cli.WriteJSON(cmd.OutOrStdout(), map[string]string{"id": j.ID, "name": job.Name, "directory": j.URI()})
		}
		fmt.Fprintf(cmd.ErrOrStderr(), `yarn-submit: started; next:
  yarn-submit status %[1]s
  yarn-submit logs %[1]s --follow
  yarn-submit wait %[1]s
  yarn-submit kill %[1]s
`, j.ID)
		_, err := fmt.Fprintln(cmd.OutOrStdout(), j.ID)
		return err
	}
	out := cmd.OutOrStdout()
	if o.JSON() {
		out = cmd.ErrOrStderr()
	}
	fmt.Fprintf(out, "started %s (%s)\n", j.ID, job.Name)
	return follow(cmd, j, o.Output, followStyle{logs: o.logs})
}

// namesakesTimeout bounds the search for jobs of the same name.
const namesakesTimeout = 2 * time.Second

// noteNamesakes says that another job of the same name has not ended: the name alone does
// not tell them apart. That they cannot be listed is said by commands that need it.
func noteNamesakes(cmd *cobra.Command, j *jobs.Job, name string) {
	ctx, cancel := context.WithTimeout(cmd.Context(), namesakesTimeout)
	defer cancel()
	list, _, err := jobs.List(ctx, jobs.ListOptions{})
	if err != nil {
		return
	}
	for _, e := range list {
		if e.Name == name && e.Id != j.ID && !e.State.Done() {
			cli.Note(cmd, fmt.Sprintf("%s is called %q like another job that has not ended (%s): name each by its id", j.ID, terminal.Clean(name), e.Id))
			return
		}
	}
}

// dryRun prints the job, once the cluster, if one is configured, has been
// asked what a submission asks it.
func dryRun(ctx context.Context, cmd *cobra.Command, o *runOptions, draft *spec.Draft, job *proto.JobSpec) error {
	switch {
	case job.Local:
		if err := submit.CheckLocal(job); err != nil {
			return err
		}
	case os.Getenv(conf.EnvDir) == "":
		cli.Note(cmd, fmt.Sprintf("no cluster was asked about the job: %s is not set", conf.EnvDir))
	default:
		c, err := connect(cmd, draft)
		if err != nil {
			return err
		}
		defer c.Close()
		if err := submit.Check(ctx, c, job); err != nil {
			return err
		}
	}
	if o.JSON() {
		return cli.WriteProto(cmd.OutOrStdout(), job)
	}
	text, err := draft.YAML(job)
	if err != nil {
		return err
	}
	_, err = cmd.OutOrStdout().Write(text)
	return err
}

// connect connects to the cluster as the one whom the job is to run as.
func connect(cmd *cobra.Command, draft *spec.Draft) (*cluster.Cluster, error) {
	c, err := cluster.ConnectAs(draft.Principal, draft.Keytab)
	if err != nil {
		return nil, err
	}
	for _, w := range c.Warnings() {
		cli.Note(cmd, w)
	}
	return c, nil
}

// start starts the job where its spec says.
func start(ctx context.Context, cmd *cobra.Command, draft *spec.Draft, job *proto.JobSpec) (*jobs.Job, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the program itself: %w", err)
	}
	var mu sync.Mutex // submit tells from many goroutines
	notify := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		cli.EraseBar(cmd)
		cli.Note(cmd, text)
	}
	if job.Local {
		return submit.Local(ctx, job, exe, notify)
	}
	c, err := connect(cmd, draft)
	if err != nil {
		return nil, err
	}
	j, err := submit.ToYARN(ctx, c, job, exe, notify, cli.Uploads(cmd))
	if err != nil {
		cli.EraseBar(cmd)
		c.Close()
	}
	return j, err
}
