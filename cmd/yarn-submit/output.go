package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	pb "google.golang.org/protobuf/proto"

	"holdfast/client"
	"holdfast/client/jobs"
	"holdfast/client/jobs/logs"
	"holdfast/client/terminal"
	"holdfast/proto"
)

// output is the flag --output.
type output struct{ format string }

func (o *output) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.format, "output", "o", "text", "`FORMAT` of the output: text or json")
	completeWith(cmd, "output", "text", "json")
}

// completeWith has the shell complete a flag, which is declared, with words.
func completeWith(cmd *cobra.Command, flag string, words ...cobra.Completion) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
}

func (o *output) json() bool { return o.format == "json" }

func (o *output) check() error {
	if o.format != "text" && o.format != "json" {
		return client.Usagef("--output %s: there are text and json", o.format)
	}
	return nil
}

// writeJSON writes a value that is a JSON object, with the version of docs/json.md as its
// first member.
func writeJSON(w io.Writer, v any) error {
	text, err := proto.VersionedJSON(v)
	if err != nil {
		return err
	}
	return writeObject(w, text)
}

// writeProto writes a message.
func writeProto(w io.Writer, m pb.Message) error {
	text, err := proto.JSON(m)
	if err != nil {
		return err
	}
	return writeObject(w, text)
}

// writeObject writes JSON, indented. Control characters that JSON may hold as they are,
// which a terminal obeys all the same, are written by their numbers.
func writeObject(w io.Writer, text []byte) error {
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err := io.WriteString(terminal.Raw(w), terminal.EscapeJSON(b.String()))
	return err
}

// wantsJSON reports whether arguments ask for JSON, also where they cannot be parsed.
func wantsJSON(args []string) bool {
	for i, a := range args {
		switch {
		case a == "--":
			return false
		case a == "--output=json", a == "-o=json", a == "-ojson",
			(a == "--output" || a == "-o") && i+1 < len(args) && args[i+1] == "json":
			return true
		}
	}
	return false
}

// writeError writes an error for people, or for programs in one line of JSON.
func writeError(w io.Writer, err error, asJSON bool) {
	if !asJSON {
		fmt.Fprintln(w, "yarn-submit:", err)
		return
	}
	f := proto.Failure{Code: client.ExitCode(err), Kind: client.Kind(err), Message: err.Error()}
	fmt.Fprintln(w, terminal.EscapeJSON(string(f.JSON())))
}

// width is the number of columns of the terminal on standard output, if a
// person sits at it; 0 otherwise.
func width() int {
	if !term.IsTerminal(int(os.Stdin.Fd())) || os.Getenv("TERM") == "dumb" {
		return 0
	}
	return columns()
}

// columns is the number of columns of the terminal on standard output; 0 if it is none.
func columns() int {
	if !term.IsTerminal(int(os.Stdout.Fd())) {
		return 0
	}
	w, _ := terminalSize()
	return w
}

// terminalSize returns the columns and lines of the terminal on standard output, or those
// 80 and 24 if it does not report them.
func terminalSize() (columns, lines int) {
	columns, lines, _ = term.GetSize(int(os.Stdout.Fd()))
	if columns <= 0 {
		columns = 80
	}
	if lines <= 0 {
		lines = 24
	}
	return columns, lines
}

// followStyle is how follow shows a job.
type followStyle struct {
	onlooker bool // an interrupt does nothing to the job
	logs     bool // what tasks write is shown
}

// readLines sends what a job's tasks write, until the job or ctx ends, and closes lines.
func readLines(ctx context.Context, j *jobs.Job, lines chan<- string) error {
	defer close(lines)
	_, err := logs.Read(ctx, j, logs.Options{Attempt: logs.All, Tail: logs.All, Follow: true}, func(l logs.Line) error {
		select {
		case lines <- terminal.Clean("["+l.Task+"] ") + terminal.Shown(l.Text, false):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return err
}

// follow follows a job. With JSON the progress goes to standard error and the
// final state to standard output.
func follow(cmd *cobra.Command, j *jobs.Job, o output, style followStyle) error {
	interrupts := make(chan os.Signal, 4)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(interrupts)
	options := jobs.FollowOptions{Out: cmd.OutOrStdout(), Width: width(), In: os.Stdin, Interrupts: interrupts, LeaveOnInterrupt: style.onlooker}
	if o.json() {
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
				note(cmd, fmt.Sprintf("not all output could be shown: %v", err))
			}
		}()
		options.Lines = lines
	}
	s, err := jobs.Follow(cmd.Context(), j, options)
	if o.json() && s != nil {
		if werr := writeProto(cmd.OutOrStdout(), s); werr != nil {
			return werr
		}
	}
	return err
}
