// Command yarn-submit runs distributed training on a Hadoop cluster, or on one
// machine. The same binary is the client, the application master (the hidden
// command am) and the agent in every container (agent).
//
// Each command has a file: newXCommand declares it, runX does it. Their work is
// in package client.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/client/terminal"
	"holdfast/internal/nodump"
)

func main() { os.Exit(run(context.Background(), os.Args[1:])) }

func run(ctx context.Context, args []string) int {
	root := newRootCommand(args)
	root.SetArgs(args)
	var mistaken error
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) { // it is also called for "NAME --help", whatever NAME is
		if mistaken = unknownCommand(cmd, args); mistaken == nil {
			help(cmd, args)
		}
	})
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = mistaken
	}
	if err != nil && !client.IsReported(err) {
		writeError(root.ErrOrStderr(), err, wantsJSON(args))
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
			if err := unknownCommand(cmd, args); err != nil {
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
		if slices.Contains(makeNamespaces, cmd.Name()) {
			return nil
		}
		return nodump.Protect() // all others hold keys or tickets, or may
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(flagError)
	wrapUsage(root)
	addGroup(root, "Jobs:", newRunCommand(args), newRerunCommand(args), newWaitCommand(), newKillCommand(), newRmCommand(), newGcCommand())
	addGroup(root, "What a job does:", newListCommand(), newStatusCommand(), newTopCommand(), newUICommand(), newLogsCommand(), newDescribeCommand(), newStacksCommand(), newExecCommand())
	addGroup(root, "Checkpoints:", newCheckpointCommand())
	addGroup(root, "This machine and the cluster:", newDoctorCommand(), newVersionCommand())
	root.AddCommand(newDoctorMasterCommand(), newDoctorNodeCommand(), newManCommand(), newAMCommand(), newAgentCommand())
	refuseUnknownTopics(root)
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
// memory is shut cannot. An agent shuts it when it has made its own; doctor and
// doctor-node, which try what can be made, do not.
var makeNamespaces = []string{"agent", "doctor", "doctor-node"}

// whichJob is what commands say of JOB: package jobs, Find.
const whichJob = `JOB is a job's id or name, or how one of them begins: of several jobs of one
name, the one that has not ended is meant, and of ended ones the newest. Where
several of the name have not ended, they are listed, and nothing is done (exit
code 2). Where JOB may be left out, your newest job is meant.`

// between demands a number of arguments, whose names are in usage.
func between(least, most int, usage string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			problem := "something is missing"
			if len(args) > most {
				problem = fmt.Sprintf("%q is one too many", args[most])
			}
			return client.Usagef("%s: write %s", problem, strings.TrimSpace(cmd.CommandPath()+" "+usage))
		}
		return nil
	}
}
