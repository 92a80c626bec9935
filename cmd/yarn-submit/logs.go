package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/client/jobs"
	"holdfast/client/terminal"
)

type logsOptions struct {
	output
	jobs.LogOptions
}

func newLogsCommand() *cobra.Command {
	o := &logsOptions{}
	cmd := &cobra.Command{
		Use:   "logs JOB [TASK|ROLE]",
		Short: "print what a job's tasks wrote",
		Long: `Logs prints the output of a job's tasks, running or ended: of all of them, of
TASK (worker-0), or of all tasks of ROLE (worker). That they have written
nothing is told on standard error, with exit code 0.

` + whichJob,
		Args: between(1, 2, "JOB [TASK|ROLE]"),
		RunE: func(cmd *cobra.Command, args []string) error { return runLogs(cmd, o, args) },
	}
	cmd.Flags().BoolVarP(&o.Follow, "follow", "f", false, "go on until the job ends")
	cmd.Flags().IntVar(&o.Attempt, "attempt", -1, "only attempt `N`, counted from 0 (default all)")
	o.add(cmd)
	return cmd
}

func runLogs(cmd *cobra.Command, o *logsOptions, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.Attempt < -1 {
		return client.Usagef("--attempt %d: attempts are counted from 0", o.Attempt)
	}
	if len(args) > 1 {
		o.Task = args[1]
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	j, err := jobs.Find(ctx, args[0])
	if err != nil {
		return err
	}
	defer j.Close()
	out := bufio.NewWriter(terminal.Raw(cmd.OutOrStdout())) // a task's output is its own
	defer out.Flush()
	heading := terminal.Printable(out)
	var before jobs.LogLine
	silence, err := j.Logs(ctx, o.LogOptions, func(l jobs.LogLine) error {
		switch {
		case o.json():
			line, err := json.Marshal(l)
			if err != nil {
				return err
			}
			fmt.Fprintln(out, terminal.EscapeJSON(string(line)))
		case o.Follow && (o.Task != l.Task || l.Process > 0):
			fmt.Fprintf(heading, "[%s%s] ", l.Task, processMark(l))
			fmt.Fprintln(out, l.Text)
		case o.Task == l.Task && o.Attempt >= 0 && l.Process == 0:
			fmt.Fprintln(out, l.Text)
		default:
			if l.Task != before.Task || l.Attempt != before.Attempt || l.Process != before.Process {
				fmt.Fprintf(heading, "==> %s%s, attempt %d <==\n", l.Task, processMark(l), l.Attempt)
			}
			fmt.Fprintln(out, l.Text)
		}
		before = l
		if o.Follow {
			return out.Flush()
		}
		return nil
	})
	if silence != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), "yarn-submit: note:", silence)
	}
	return err
}

// processMark names the process that wrote a line, unless it is the first of its attempt:
// worker-0.1.
func processMark(l jobs.LogLine) string {
	if l.Process == 0 {
		return ""
	}
	return fmt.Sprintf(".%d", l.Process)
}
