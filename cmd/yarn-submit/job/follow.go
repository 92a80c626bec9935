package job

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"holdfast/client/jobs"
	"holdfast/client/jobs/logs"
	"holdfast/client/terminal"
	"holdfast/cmd/yarn-submit/cli"
)

// followStyle is how follow shows a job.
type followStyle struct {
	onlooker bool // an interrupt does nothing to the job
	logs     bool // what tasks write is shown
}

// readLines sends what a job's tasks write, until the job or ctx ends, and closes lines.
func readLines(ctx context.Context, j *jobs.Job, lines chan<- string) error {
	defer close(lines)
	send := func(line string) error {
		select {
		case lines <- line:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	before := attempts{}
	_, err := logs.Read(ctx, j, logs.Options{Attempt: logs.All, Tail: logs.All, Follow: true}, func(l logs.Line) error {
		text := terminal.Clean("["+l.Task+processMark(l)+"] ") + terminal.Shown(l.Text, false)
		if before.headed(l) { // with it, so that nothing else comes in between
			text = terminal.Clean(heading(l)) + "\n" + text
		}
		return send(text)
	})
	return err
}

// follow follows a job. With JSON the progress goes to standard error and the
// final state to standard output.
func follow(cmd *cobra.Command, j *jobs.Job, o cli.Output, style followStyle) error {
	interrupts, giveBack := cli.TakeInterrupts(cmd.Context())
	defer giveBack()
	options := jobs.FollowOptions{Out: cmd.OutOrStdout(), Width: cli.Width(), In: os.Stdin, Interrupts: interrupts, LeaveOnInterrupt: style.onlooker}
	if o.JSON() {
		options.Out, options.Width = cmd.ErrOrStderr(), 0
	}
	if style.logs {
		reading, stop := context.WithCancel(cmd.Context())
		lines := make(chan string)
		failed := make(chan error, 1)
		go func() { failed <- readLines(reading, j, lines) }()
		defer func() {
			stop()
			if err := <-failed; err != nil && !errors.Is(err, context.Canceled) {
				cli.Note(cmd, fmt.Sprintf("not all output could be shown: %v", err))
			}
		}()
		options.Lines = lines
	}
	s, err := jobs.Follow(cmd.Context(), j, options)
	if o.JSON() && s != nil {
		if werr := cli.WriteProto(cmd.OutOrStdout(), s); werr != nil {
			return werr
		}
	}
	return err
}
