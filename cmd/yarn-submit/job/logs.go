package job

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/client/jobs"
	"holdfast/client/jobs/logs"
	"holdfast/client/terminal"
	"holdfast/cmd/yarn-submit/cli"
)

type logsOptions struct {
	cli.Output
	logs.Options
	grep  string
	since string
}

// NewLogsCommand returns the command logs.
func NewLogsCommand() *cobra.Command {
	o := &logsOptions{}
	cmd := &cobra.Command{
		Use:   "logs [JOB] [TASK|ROLE|am]",
		Short: "print what a job's tasks wrote",
		Long: `Logs prints the output of a job's tasks, running or ended: of all of them, of
TASK (worker-0), or of all tasks of ROLE (worker). "am" is the application
master, and --agent asks for what the tasks' agents wrote, in all containers
that the tasks had. That they have written nothing is told on standard error,
with exit code 0.

When a line was written is known to the second; in the log of a task that has
written for days, to the minute or so. --since takes how long ago (10m, 2h), or
when (14:05, "2026-01-31 14:05"): 14:05 is by this machine's clock, and 14:05Z
is UTC, as the times of --timestamps are.

In a terminal, a progress bar is shown as it was last, and nothing that would
move the cursor or clear the screen is passed on; elsewhere all is as it was
written.

` + cli.WhichJob,
		Example: `  yarn-submit logs mnist worker --follow --tail 20
  yarn-submit logs mnist --since 10m --timestamps
  yarn-submit logs mnist worker-1 --previous --grep 'Error|Traceback'`,
		Args: cli.Between(0, 2, "[JOB] [TASK|ROLE|am]"),
		RunE: func(cmd *cobra.Command, args []string) error { return runLogs(cmd, o, args) },
	}
	f := cmd.Flags()
	f.BoolVarP(&o.Follow, "follow", "f", false, "go on until the job ends")
	f.IntVar(&o.Attempt, "attempt", logs.All, "only attempt `N`, counted from 0")
	f.BoolVarP(&o.Previous, "previous", "p", false, "only the attempt before the last one, of each task")
	f.IntVarP(&o.Tail, "tail", "n", logs.All, "only the last `N` lines of each log")
	f.Lookup("attempt").DefValue, f.Lookup("tail").DefValue = "all", "all"
	f.StringVar(&o.since, "since", "", "only what was written since a `TIME`, or for a duration")
	f.BoolVar(&o.Times, "timestamps", false, "when each line was written, in front of it (UTC)")
	f.StringVar(&o.grep, "grep", "", "only lines that match a regular `EXPRESSION` (RE2)")
	f.BoolVar(&o.Agents, "agent", false, "what the tasks' agents wrote")
	cmd.ValidArgsFunction = cli.CompleteJobThenTask(true)
	o.Add(cmd)
	return cmd
}

func runLogs(cmd *cobra.Command, o *logsOptions, args []string) error {
	switch {
	case o.Attempt < logs.All:
		return client.Usagef("--attempt %d: attempts are counted from 0", o.Attempt)
	case o.Tail < logs.All:
		return client.Usagef("--tail %d: write a number of lines", o.Tail)
	case o.Previous && o.Attempt >= 0:
		return client.Usagef("--previous and --attempt each name an attempt: leave one of them out")
	}
	if o.grep != "" {
		e, err := regexp.Compile(o.grep)
		if err != nil {
			return client.Usagef("--grep: %w", err)
		}
		o.Matches = e.MatchString
	}
	if len(args) > 1 {
		o.Of = args[1]
	}
	if o.since != "" {
		var err error
		if o.Since, err = logs.ParseSince(o.since, time.Now()); err != nil {
			return err
		}
	}
	if own := o.Agents || o.Of == logs.Master; own && (o.Times || o.since != "") {
		return client.Usagef("the application master and agents write the time into each line themselves: leave out --since and --timestamps, and use --grep")
	}
	o.Note = func(text string) { cli.Note(cmd, text) }
	ctx := cmd.Context()
	j, err := jobs.Find(ctx, cli.JobOf(args))
	if err != nil {
		return err
	}
	defer j.Close()
	return printLogs(ctx, cmd, j, o.Options, o.JSON())
}

// printLogs writes the selected lines to standard output.
func printLogs(ctx context.Context, cmd *cobra.Command, j *jobs.Job, o logs.Options, asJSON bool) error {
	out := bufio.NewWriter(terminal.Raw(cmd.OutOrStdout())) // a task's output is its own
	defer out.Flush()
	p := &linePrinter{out: out, heading: terminal.Printable(out), terminal: cli.Columns() > 0, colours: coloured(), o: o, json: asJSON, number: map[string]int{}, attempts: attempts{}}
	silence, err := logs.Read(ctx, j, o, func(l logs.Line) error {
		if err := p.print(l); err != nil {
			return err
		}
		if o.Follow {
			return out.Flush()
		}
		return nil
	})
	if silence != "" {
		cli.Note(cmd, silence)
	}
	return err
}

// coloured reports whether standard output shows colours, and its user wants them
// (no-color.org).
func coloured() bool {
	return cli.Columns() > 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// linePrinter writes lines of logs for people or for programs.
type linePrinter struct {
	out, heading io.Writer
	terminal     bool
	colours      bool
	json         bool
	o            logs.Options
	before       logs.Line
	number       map[string]int // of tasks, in the order in which they came
	attempts     attempts
}

// attempts are those of which lines of several tasks, as they come, were written last.
type attempts map[string]int // by task

// headed reports whether a line is the first of another attempt than the line of its task before
// it, or than the first one.
func (a attempts) headed(l logs.Line) bool {
	before := a[l.Task]
	a[l.Task] = l.Attempt
	return l.Attempt != before
}

// heading is the line above lines of an attempt.
func heading(l logs.Line) string {
	return fmt.Sprintf("==> %s%s, attempt %d <==", l.Task, processMark(l), l.Attempt)
}

func (p *linePrinter) print(l logs.Line) error {
	if p.json {
		line, err := json.Marshal(l)
		if err == nil {
			_, err = fmt.Fprintln(p.out, terminal.EscapeJSON(string(line)))
		}
		return err
	}
	switch {
	case p.o.Follow && (p.o.Of != l.Task || l.Process > 0):
		if _, known := p.number[l.Task]; !known {
			p.number[l.Task] = len(p.number)
		}
		if p.attempts.headed(l) {
			fmt.Fprintln(p.heading, heading(l))
		}
		prefix := terminal.Clean("[" + l.Task + processMark(l) + "]")
		if p.colours {
			prefix = terminal.Coloured(prefix, p.number[l.Task])
		}
		fmt.Fprint(p.out, prefix+" ")
	case p.o.Of == l.Task && (p.o.Attempt >= 0 || p.o.Previous) && l.Process == p.before.Process:
	case l.Task != p.before.Task || l.Attempt != p.before.Attempt || l.Process != p.before.Process:
		fmt.Fprintln(p.heading, heading(l))
	}
	p.before = l
	if l.Time != "" {
		fmt.Fprint(p.out, l.Time+" ")
	}
	if p.terminal {
		l.Text = terminal.Shown(l.Text, p.colours)
	}
	_, err := fmt.Fprintln(p.out, l.Text)
	return err
}

// processMark is what follows the task's name where it was not its first process that wrote a
// line: worker-0.1.
func processMark(l logs.Line) string {
	if l.Process == 0 {
		return ""
	}
	return fmt.Sprintf(".%d", l.Process)
}
