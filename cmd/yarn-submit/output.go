package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"google.golang.org/protobuf/encoding/protojson"
	pb "google.golang.org/protobuf/proto"

	"holdfast/client"
	"holdfast/client/jobs"
	"holdfast/client/terminal"
)

// output is the flag --output.
type output struct{ format string }

func (o *output) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.format, "output", "o", "text", "`FORMAT` of the output: text or json")
	formats := cobra.FixedCompletions([]cobra.Completion{"text", "json"}, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("output", formats); err != nil {
		panic(err) // the flag was declared above
	}
}

func (o *output) json() bool { return o.format == "json" }

func (o *output) check() error {
	if o.format != "text" && o.format != "json" {
		return client.Usagef("--output %s: there are text and json", o.format)
	}
	return nil
}

// writeJSON writes plain values. Control characters that JSON may hold as they are,
// which a terminal obeys all the same, are written by their numbers.
func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(terminal.Raw(w), terminal.EscapeJSON(b.String()))
	return err
}

// writeProto writes messages of the contract. protojson varies its spaces on
// purpose; they are made regular, so that output can be compared.
func writeProto(w io.Writer, m pb.Message) error {
	text, err := protojson.MarshalOptions{EmitUnpopulated: true}.Marshal(m)
	if err != nil {
		return err
	}
	return writeJSON(w, json.RawMessage(text))
}

// width is the number of columns of the terminal on standard output, if a
// person sits at it; 0 otherwise.
func width() int {
	if !term.IsTerminal(int(os.Stdout.Fd())) || !term.IsTerminal(int(os.Stdin.Fd())) || os.Getenv("TERM") == "dumb" {
		return 0
	}
	w, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil || w <= 0 {
		return 80
	}
	return w
}

// follow follows a job. With JSON the progress goes to standard error and the
// final state to standard output. An onlooker's interrupt does nothing to the job.
func follow(cmd *cobra.Command, j *jobs.Job, o output, onlooker bool) error {
	interrupts := make(chan os.Signal, 4)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(interrupts)
	options := jobs.FollowOptions{Out: cmd.OutOrStdout(), Width: width(), In: os.Stdin, Interrupts: interrupts, LeaveOnInterrupt: onlooker}
	if o.json() {
		options.Out, options.Width = cmd.ErrOrStderr(), 0
	}
	s, err := jobs.Follow(cmd.Context(), j, options)
	if o.json() && s != nil {
		if werr := writeProto(cmd.OutOrStdout(), s); werr != nil {
			return werr
		}
	}
	return err
}
