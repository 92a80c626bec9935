package client

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"

	"holdfast/internal/hadoop/hdfs/transfer"
	"holdfast/internal/hadoop/kerberos"
	"holdfast/internal/hadoop/rpc"
)

// Exit codes of yarn-submit.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitUnreachable = 3
	ExitDenied      = 4
	ExitInterrupted = 130
	ExitTerminated  = 143
)

// ErrJobFailed is returned if a job that was followed did not succeed. What happened
// has been shown already.
var ErrJobFailed = errors.New("the job did not succeed")

// IsReported reports whether the user has been told about the error already.
func IsReported(err error) bool {
	return errors.Is(err, ErrJobFailed) || errors.Is(err, ErrInterrupted)
}

// ErrInterrupted is returned if the user interrupted a command.
var ErrInterrupted = errors.New("interrupted")

// ErrTerminated is returned if the process was ended by SIGTERM. Its exit code must be
// that of a shell: a NodeManager that kills a container loses the reason if the process
// exits with 0 (ContainerImpl, KILLING to EXITED_WITH_SUCCESS).
var ErrTerminated = WithExitCode(ExitTerminated, errors.New("ended by SIGTERM"))

// codedError is an error with an exit code.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// WithExitCode returns an error with an exit code: see ExitCode.
func WithExitCode(code int, err error) error { return &codedError{code, err} }

// Usagef returns an error about what the user typed.
func Usagef(format string, args ...any) error {
	return WithExitCode(ExitUsage, fmt.Errorf(format, args...))
}

// Unreachablef returns an error about a cluster that does not answer.
func Unreachablef(format string, args ...any) error {
	return WithExitCode(ExitUnreachable, fmt.Errorf(format, args...))
}

// Kind returns a word for what an exit code stands for, for programs.
func Kind(err error) string {
	switch ExitCode(err) {
	case ExitUsage:
		return "usage"
	case ExitUnreachable:
		return "unreachable"
	case ExitDenied:
		return "denied"
	case ExitInterrupted, ExitTerminated:
		return "interrupted"
	}
	return "failed"
}

// ExitCode returns the exit code of a command that returned err.
func ExitCode(err error) int {
	var c *codedError
	var operation *net.OpError // not net.Error, which every syscall.Errno is
	var name *net.DNSError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &c):
		return c.code
	case errors.Is(err, ErrInterrupted), errors.Is(err, context.Canceled):
		return ExitInterrupted
	case errors.Is(err, ErrJobFailed):
		return ExitFailed
	case errors.Is(err, syscall.ENOTDIR): // a path that the user typed leads through a file
		return ExitUsage
	case kerberos.Unreachable(err): // while logging in, which a service would not let us do again
		return ExitUnreachable
	case kerberos.IsDenied(err), rpc.IsDenied(err), errors.Is(err, transfer.ErrMismatch), errors.Is(err, fs.ErrPermission):
		return ExitDenied
	case rpc.Unreachable(err), rpc.IsStandby(err), errors.Is(err, context.DeadlineExceeded), errors.As(err, &operation), errors.As(err, &name):
		return ExitUnreachable
	}
	for _, errno := range []error{syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ETIMEDOUT, syscall.ECONNRESET} {
		if errors.Is(err, errno) {
			return ExitUnreachable
		}
	}
	return ExitFailed
}
