package job

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/client/jobs"
	"holdfast/client/terminal"
	"holdfast/cmd/yarn-submit/cli"
)

// NewExecCommand returns the command exec.
func NewExecCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "exec JOB TASK -- COMMAND...",
		Short: "run a command beside a task, in its container",
		Long: `Exec runs a command in the container of a task that runs: in its directory, with
its environment, and with the checkpoint directories and peers as the task sees
them. Its standard input is empty, and what it prints, on standard output and
standard error, comes on standard output. The exit code is the command's; 1 if
a signal ended it or it could not be run. It is ended by Ctrl-C. Only the job's
user may; the event log says what was run.

` + cli.WhichJobExactly,
		Example: `  yarn-submit exec mnist worker-0 -- ls -l ./train_logs
  yarn-submit exec mnist ps-1 -- sh -c 'nvidia-smi; df -h .'`,
		ValidArgsFunction: cli.CompleteJobThenTask(false),
		RunE:              runExec,
	}
	return cmd
}

func runExec(cmd *cobra.Command, args []string) error {
	at := cmd.ArgsLenAtDash()
	if at != 2 || len(args) < 3 {
		return client.Usagef("write yarn-submit exec JOB TASK -- COMMAND...")
	}
	ctx := cmd.Context()
	j, t, err := findRunningTask(ctx, jobs.FindToChange, args[0], args[1])
	if err != nil {
		return err
	}
	defer j.Close()
	code, err := j.Exec(ctx, t.Task, args[at:], false, terminal.Raw(cmd.OutOrStdout()))
	switch {
	case err != nil:
		return err
	case code < 0:
		return client.WithExitCode(client.ExitFailed, errors.New("a signal ended the command"))
	case code > 0:
		return client.WithExitCode(code, fmt.Errorf("the command ended with exit code %d", code))
	}
	return nil
}
