package client

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"
	"testing"

	"holdfast/internal/hadoop/rpc"
)

func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("x"), 1},
		{ErrJobFailed, 1},
		{fmt.Errorf("x: %w", syscall.ENOENT), 1},
		{&net.OpError{Op: "dial", Err: errors.New("y")}, 3},
		{fmt.Errorf("x: %w", Usagef("y")), 2},
		{Unreachablef("x"), 3},
		{fmt.Errorf("x: %w", syscall.ECONNREFUSED), 3},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), 3},
		{&rpc.RemoteError{Class: "org.apache.hadoop.ipc.StandbyException"}, 3},
		{fmt.Errorf("x: %w", fs.ErrPermission), 4},
		{fmt.Errorf("x: %w", syscall.EACCES), 4},
		{fmt.Errorf("x: %w", &rpc.RemoteError{Class: "org.apache.hadoop.security.AccessControlException"}), 4},
		{ErrInterrupted, 130},
		{fmt.Errorf("x: %w", context.Canceled), 130},
	} {
		if got := ExitCode(c.err); got != c.want {
			t.Errorf("%v exits with %d, want %d", c.err, got, c.want)
		}
	}
}
