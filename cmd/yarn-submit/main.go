// Command yarn-submit runs distributed training on a Hadoop cluster, or on one
// machine. The same binary is the client, the application master (the hidden
// command am) and the agent in every container (agent).
//
// Each command has a file: newXCommand declares it, runX does it. Those about jobs
// are in job, those about checkpoints in ckpt, and those that containers run in
// incontainer; cli is what they share. Their work is in package client.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/client/spec"
	"holdfast/client/terminal"
	"holdfast/cmd/yarn-submit/ckpt"
	"holdfast/cmd/yarn-submit/cli"
	"holdfast/cmd/yarn-submit/incontainer"
	"holdfast/cmd/yarn-submit/job"
	"holdfast/internal/nodump"
)

func main() { os.Exit(run(context.Background(), os.Args[1:])) }

func run(ctx context.Context, args []string) int {
	root := newRootCommand(args)
	root.SetArgs(args)
	var mistaken error
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) { // it is also called for "NAME --help", whatever NAME is
		if mistaken = cli.UnknownCommand(cmd, cmd.Flags().Args()); mistaken == nil { // args begin with cmd's own name
			help(cmd, args)
		}
	})
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = mistaken
	}
	if err != nil && cli.Interrupted(cmd.Context()) && !client.IsReported(err) {
		err = client.WithExitCode(client.ExitInterrupted, fmt.Errorf("interrupted: %w", err))
	}
	if err != nil && !client.IsReported(err) {
		cli.WriteError(root.ErrOrStderr(), err, cli.WantsJSON(args))
	}
	return client.ExitCode(err)
}

func newRootCommand(args []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "yarn-submit",
		Short: "distributed training on a Hadoop cluster that is not lost",
		Long: `yarn-submit runs distributed training as an application on YARN, with its
checkpoints on HDFS, or with --local on this machine.

Exit codes: 0 done, 1 the job or the command failed, 2 usage, 3 the cluster or
HDFS cannot be reached, 4 not permitted, 130 interrupted.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.UnknownCommand(cmd, args); err != nil {
				return err
			}
			return cmd.Help()
		},
	}
	root.SetOut(terminal.Printable(os.Stdout))
	root.SetErr(terminal.Printable(os.Stderr))
	root.PersistentFlags().Bool("verbose", false, "say more, such as how the connections to DataNodes are protected")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if verbose, _ := cmd.Flags().GetBool("verbose"); verbose {
			logrus.SetLevel(logrus.DebugLevel)
		}
		if !slices.Contains(inContainers, cmd.Name()) {
			cmd.SetContext(cli.Interruptible(cmd.Context()))
		}
		if cmd.Name() == cobra.ShellCompRequestCmd {
			cmd.SetContext(cli.Completing(cmd.Context()))
		}
		if slices.Contains(makeNamespaces, cmd.Name()) {
			return nil
		}
		return nodump.Protect() // all others hold keys or tickets, or may
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(cli.FlagError)
	cli.WrapUsage(root)
	scanned := spec.Scan(args)
	addGroup(root, "Jobs:", job.NewRunCommand(scanned), job.NewRerunCommand(scanned), job.NewWaitCommand(), job.NewKillCommand(), job.NewScaleCommand(), job.NewRmCommand(), job.NewGcCommand())
	addGroup(root, "What a job does:", job.NewListCommand(), job.NewStatusCommand(), job.NewTopCommand(), newUICommand(), job.NewLogsCommand(), job.NewDescribeCommand(), job.NewStacksCommand(), job.NewExecCommand())
	addGroup(root, "Checkpoints:", ckpt.NewCommand())
	addGroup(root, "This machine and the cluster:", newDoctorCommand(), newVersionCommand())
	root.AddCommand(incontainer.NewDoctorMasterCommand(), incontainer.NewDoctorNodeCommand(), newManCommand(), incontainer.NewAMCommand(), incontainer.NewAgentCommand())
	addCompletion(root)
	cli.RefuseUnknownTopics(root)
	return root
}

// addGroup adds commands that --help shows together.
func addGroup(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, c := range commands {
		c.GroupID = title
		root.AddCommand(c)
	}
}

// makeNamespaces are the commands that make user namespaces, which a process whose
// memory is shut cannot. They shut it themselves: an agent when it has made its own, doctor and
// doctor-node when they have tried what can be made.
var makeNamespaces = []string{"agent", "doctor", "doctor-node"}

// inContainers are the commands that containers run: what a signal means there, each knows itself.
var inContainers = []string{"am", "agent", "doctor-am", "doctor-node"}
