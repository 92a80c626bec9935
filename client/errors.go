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

// ErrJobFailed is returned where a job was followed to an end that was not
// success; what happened has been told already.
var ErrJobFailed = errors.New("the job did not succeed")

// IsTold reports whether the user knows of the error already.
func IsTold(err error) bool {
	return errors.Is(err, ErrJobFailed) || errors.Is(err, ErrInterrupted)
}

// ErrInterrupted is returned where the user ended a command by Ctrl-C.
var ErrInterrupted = errors.New("interrupted")

// ErrTerminated is returned where a process was ended by SIGTERM, and must end as
// shells say that of it: a NodeManager that kills a container forgets why where
// the process ends with 0 (ContainerImpl, KILLING to EXITED_WITH_SUCCESS).
var ErrTerminated = WithExitCode(ExitTerminated, errors.New("ended by SIGTERM"))

// coded is an error whose exit code is known where it is made.
type coded struct {
	code int
	err  error
}

func (e *coded) Error() string { return e.err.Error() }
func (e *coded) Unwrap() error { return e.err }

// WithExitCode returns an error for which ExitCode returns code.
func WithExitCode(code int, err error) error { return &coded{code, err} }

// Usagef makes an error about what the user typed.
func Usagef(format string, args ...any) error {
	return WithExitCode(ExitUsage, fmt.Errorf(format, args...))
}

// Unreachablef makes an error about a cluster that does not answer.
func Unreachablef(format string, args ...any) error {
	return WithExitCode(ExitUnreachable, fmt.Errorf(format, args...))
}

// ExitCode is what a command exits with after err.
func ExitCode(err error) int {
	var c *coded
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
