package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/client/jobs"
	"holdfast/client/jobs/logs"
	"holdfast/client/terminal"
	"holdfast/proto"
)

func newExecCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "exec JOB TASK -- COMMAND...",
		Short: "run a command beside a task, in its container",
		Long: `Exec runs a command in the container of a task that runs: in its directory, with
its environment, and with the checkpoint directories and peers as the task sees
them. Its standard input is empty, and what it prints, on standard output and
standard error, comes on standard output. The exit code is the command's; 1 if
a signal ended it or it could not be run. It is ended by Ctrl-C. Only the job's
user may; the event log says what was run.

` + whichJob,
		Example: `  yarn-submit exec mnist worker-0 -- ls -l ./train_logs
  yarn-submit exec mnist ps-1 -- sh -c 'nvidia-smi; df -h .'`,
		ValidArgsFunction: completeJobThenTask(false),
		RunE:              runExec,
	}
	return cmd
}

func runExec(cmd *cobra.Command, args []string) error {
	at := cmd.ArgsLenAtDash()
	if at != 2 || len(args) < 3 {
		return client.Usagef("write yarn-submit exec JOB TASK -- COMMAND...")
	}
	ctx, stop := interruptible(cmd)
	defer stop()
	j, t, err := findTask(ctx, args[0], args[1])
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

// findTask returns a job and one of its tasks. The caller closes the job.
func findTask(ctx context.Context, ref, task string) (*jobs.Job, *proto.TaskStatus, error) {
	j, err := jobs.Find(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	s, err := j.Status(ctx)
	var t *proto.TaskStatus
	if err == nil {
		t, err = oneTask(s, task)
	}
	if err != nil {
		j.Close()
		return nil, nil, err
	}
	return j, t, nil
}

type stacksOptions struct{ output }

func newStacksCommand() *cobra.Command {
	o := &stacksOptions{}
	cmd := &cobra.Command{
		Use:   "stacks JOB [TASK|ROLE]",
		Short: "show where the Python of a task stands",
		Long: `Stacks has the processes of tasks that run print what each of their threads is
doing, and shows it: for tasks that hang. It works with Python programs and
Java. What they print goes to the task's output, too.

` + whichJob,
		Example: `  yarn-submit stacks mnist
  yarn-submit stacks mnist worker-1`,
		Args:              between(1, 2, "JOB [TASK|ROLE]"),
		ValidArgsFunction: completeJobThenTask(true),
		RunE:              func(cmd *cobra.Command, args []string) error { return runStacks(cmd, o, args) },
	}
	o.add(cmd)
	return cmd
}

// taskStacks is the JSON of the stacks of a task.
type taskStacks struct {
	Task   string `json:"task"`
	Stacks string `json:"stacks"`
	Error  string `json:"error"` // why there are none
}

func runStacks(cmd *cobra.Command, o *stacksOptions, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	ctx, stop := interruptible(cmd)
	defer stop()
	j, err := jobs.Find(ctx, args[0])
	if err != nil {
		return err
	}
	defer j.Close()
	s, err := j.Status(ctx)
	if err != nil {
		return err
	}
	of := ""
	if len(args) > 1 {
		of = args[1]
	}
	list, err := logs.Tasks(s, of)
	if err != nil {
		return err
	}
	all := []taskStacks{}
	for _, t := range list {
		if t.State != proto.TaskState_TASK_STATE_RUNNING && of == "" {
			continue
		}
		var b writerOfText
		_, err := j.Exec(ctx, t.Task, nil, true, &b)
		if err != nil && (!errors.Is(err, jobs.ErrNotRun) || len(list) == 1) {
			return err
		}
		found := taskStacks{Task: t.Task, Stacks: string(b)}
		if err != nil {
			found.Error = err.Error()
		}
		all = append(all, found)
		if !o.json() {
			fmt.Fprintf(cmd.OutOrStdout(), "==> %s <==\n%s%s\n", t.Task, found.Stacks, found.Error)
		}
	}
	if o.json() {
		return writeJSON(cmd.OutOrStdout(), map[string]any{"tasks": all})
	}
	if len(all) == 0 {
		note(cmd, "no task runs")
	}
	return nil
}

// writerOfText keeps what is written.
type writerOfText []byte

var _ io.Writer = (*writerOfText)(nil)

func (w *writerOfText) Write(b []byte) (int, error) {
	*w = append(*w, b...)
	return len(b), nil
}
