package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	pb "google.golang.org/protobuf/proto"

	"holdfast/client"
	"holdfast/client/terminal"
	"holdfast/proto"
)

// Output is the flag --output.
type Output struct{ format format }

// format is text or json.
type format string

func (f *format) String() string { return string(*f) }
func (f *format) Type() string   { return "string" }

func (f *format) Set(s string) error {
	if s != "text" && s != "json" {
		return errors.New("there are text and json")
	}
	*f = format(s)
	return nil
}

// Add declares the flag.
func (o *Output) Add(cmd *cobra.Command) {
	o.format = "text"
	cmd.Flags().VarP(&o.format, "output", "o", "`FORMAT` of the output: text or json")
	CompleteWith(cmd, "output", "text", "json")
}

// CompleteWith has the shell complete a flag, which is declared, with words.
func CompleteWith(cmd *cobra.Command, flag string, words ...cobra.Completion) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
}

// JSON reports whether the user asks for JSON.
func (o *Output) JSON() bool { return o.format == "json" }

// WriteJSON writes a value that is a JSON object, with the version of docs/json.md as its
// first member.
func WriteJSON(w io.Writer, v any) error {
	text, err := proto.VersionedJSON(v)
	if err != nil {
		return err
	}
	return writeObject(w, text)
}

// WriteProto writes a message.
func WriteProto(w io.Writer, m pb.Message) error {
	text, err := proto.JSON(m)
	if err != nil {
		return err
	}
	return writeObject(w, text)
}

// WriteProtoWith writes a message, with one more member of its object.
func WriteProtoWith(w io.Writer, m pb.Message, name string, value any) error {
	text, err := proto.JSONWith(m, name, value)
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

// WantsJSON reports whether arguments ask for JSON, also where they cannot be parsed.
func WantsJSON(args []string) bool {
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

// WriteError writes an error for people, or for programs in one line of JSON.
func WriteError(w io.Writer, err error, asJSON bool) {
	if !asJSON {
		fmt.Fprintln(w, "yarn-submit:", err)
		return
	}
	f := proto.Failure{Code: client.ExitCode(err), Kind: client.Kind(err), Message: err.Error()}
	fmt.Fprintln(w, terminal.EscapeJSON(string(f.JSON())))
}

// Width is the number of columns of the terminal on standard output, if a
// person sits at it; 0 otherwise.
func Width() int {
	if !term.IsTerminal(int(os.Stdin.Fd())) || os.Getenv("TERM") == "dumb" {
		return 0
	}
	return Columns()
}

// Columns is the number of columns of the terminal on standard output; 0 if it is none.
func Columns() int {
	if !term.IsTerminal(int(os.Stdout.Fd())) {
		return 0
	}
	w, _ := TerminalSize()
	return w
}

// TerminalSize returns the columns and lines of the terminal on standard output, or those
// 80 and 24 if it does not report them.
func TerminalSize() (columns, lines int) {
	columns, lines, _ = term.GetSize(int(os.Stdout.Fd()))
	if columns <= 0 {
		columns = 80
	}
	if lines <= 0 {
		lines = 24
	}
	return columns, lines
}
