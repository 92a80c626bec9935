// Package launch has a command found and begun by a process of its own, this binary under the
// name of Argv. The sandbox's init process begins one command at a time: one whose directory or
// program is on a file system that does not answer would hold up all others, and this process
// holds up nobody.
package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const (
	binary = "/proc/self/exe"
	name   = "holdfast-launch"
	report = 3 // the descriptor on which a failure is told
	// A failure is a line; who reads it waits no longer than failureWait, since the process
	// has ended.
	failureMost = 4 << 10
	failureWait = time.Second
)

// Argv returns the command of a process that enters a directory and becomes another command. It
// is given the writing end of a pipe as its descriptor 3 (sandbox.Command.Socket), for Failure.
func Argv(dir string, argv []string) []string { return append([]string{binary, name, dir}, argv...) }

// Failure returns why the process could not become its command; empty if it could. The process
// has ended, and r is the reading end of its pipe, whose other ends have been closed.
func Failure(r *os.File) string {
	_ = r.SetReadDeadline(time.Now().Add(failureWait))
	text, _ := io.ReadAll(io.LimitReader(r, failureMost)) // there may be nothing
	return string(text)
}

func init() {
	if len(os.Args) < 3 || os.Args[0] != binary || os.Args[1] != name {
		return
	}
	err := become(os.Args[2], os.Args[3:])
	_, _ = fmt.Fprint(os.NewFile(report, "report"), err)
	os.Exit(127)
}

func become(dir string, argv []string) error {
	syscall.CloseOnExec(report)
	if len(argv) == 0 {
		return errors.New("there is no command")
	}
	if err := os.Chdir(dir); err != nil {
		return fmt.Errorf("entering the task's working directory: %w", err)
	}
	path, err := exec.LookPath(argv[0])
	switch {
	case errors.Is(err, exec.ErrDot): // the task's own PATH may be relative
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%q is not on the task's PATH (%s): give its full path", argv[0], os.Getenv("PATH"))
	case err != nil:
		return err
	}
	return fmt.Errorf("running %s: %w", path, syscall.Exec(path, argv, os.Environ()))
}
