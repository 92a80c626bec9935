package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"holdfast/client/cluster"
	"holdfast/internal/hadoop/rpc"
	"holdfast/proto"
)

// ErrNotRun means that the command of Exec is known not to have been run.
var ErrNotRun = errors.New("nothing was run")

// ErrNoStacks means that the processes of a task did not print where they stand.
var ErrNoStacks = errors.New("no stacks")

// errConnection begins the error of an answer that has broken off.
var errConnection = errors.New("the connection")

// Exec runs a command in the container of a task that runs, or with stacks set has the
// task's processes print where they stand, and writes to w what that prints. It returns
// the command's exit code, -1 if a signal ended it. Only those who may call the application
// master can: the job's user. The command ends with ctx.
func (j *Job) Exec(ctx context.Context, task string, command []string, stacks bool, w io.Writer) (code int, err error) {
	m, err := j.dialToAsk(ctx)
	if err != nil {
		return 0, err
	}
	defer m.close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := probe(ctx, m); err != nil {
		return 0, j.notAsked(ctx, task, stacks, err)
	}
	stream, err := m.Exec(ctx, &proto.ExecRequest{Task: task, Command: command, Stacks: stacks, User: whoAsks(j)})
	if err != nil {
		return 0, j.execError(ctx, task, stacks, err)
	}
	for printed := false; ; {
		o, err := stream.Recv()
		switch {
		case err != nil && printed && ctx.Err() == nil:
			return 0, fmt.Errorf("%w to the container of %s broke; how the command ended is not known: %s", errConnection, task, status.Convert(err).Message())
		case err != nil:
			return 0, j.execError(ctx, task, stacks, err)
		}
		printed = printed || len(o.Output) > 0
		if _, err := w.Write(o.Output); err != nil {
			return 0, err
		}
		switch {
		case o.Error != "":
			return 0, notRun(stacks, task, o.Error)
		case o.Done:
			return int(o.Code), nil
		}
	}
}

// TaskStacks is the JSON of the stacks of a task.
type TaskStacks struct {
	Task   string `json:"task"`
	Stacks string `json:"stacks"`
	Error  string `json:"error"` // why there are none, or not all
}

// Stacks has tasks print where they stand, one after another, and calls see with what each
// printed. That one of several cannot print that is told to see alone. The error is of those whose
// answers broke off, of which see has been told what had come.
func (j *Job) Stacks(ctx context.Context, tasks []string, see func(TaskStacks)) error {
	var failed []error
	for _, task := range tasks {
		var b bytes.Buffer
		_, err := j.Exec(ctx, task, nil, true, &b)
		none, broken := errors.Is(err, ErrNoStacks), errors.Is(err, errConnection)
		if err != nil && (!none && !broken || none && len(tasks) == 1) {
			return errors.Join(append(failed, err)...)
		}
		found := TaskStacks{Task: task, Stacks: b.String()}
		if err != nil {
			found.Error = err.Error()
		}
		if broken {
			failed = append(failed, err)
		}
		see(found)
	}
	return errors.Join(failed...)
}

// probe reports whether the application master answers. An error of a call after that says nothing of
// whether it has arrived.
func probe(ctx context.Context, m *master) error {
	ctx, cancel := context.WithTimeout(ctx, cluster.Timeout)
	defer cancel()
	_, err := m.Status(ctx, &proto.StatusRequest{})
	return err
}

// refusals are the codes with which the application master says that it has asked no agent.
var refusals = []codes.Code{codes.FailedPrecondition, codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated, codes.Unimplemented}

// execError says what is wrong with a call of Exec that was sent.
func (j *Job) execError(ctx context.Context, task string, stacks bool, err error) error {
	if stacks || ctx.Err() != nil || slices.Contains(refusals, status.Code(err)) {
		return j.notAsked(ctx, task, stacks, err)
	}
	return fmt.Errorf("the answer was lost: it is not known whether the command was run in the container of %s of %s: %s; see what it should have done before you run it again", task, j.ID, status.Convert(err).Message())
}

// notAsked says why no agent was asked, or printed no stacks.
func (j *Job) notAsked(ctx context.Context, task string, stacks bool, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return notRun(stacks, task+" of "+j.ID, status.Convert(err).Message())
}

// notRun says why a task's command was not run or, with stacks, why it printed none.
func notRun(stacks bool, task, why string) error {
	if stacks {
		return fmt.Errorf("%w of %s: %s", ErrNoStacks, task, why)
	}
	return fmt.Errorf("%w in the container of %s: %s", ErrNotRun, task, why)
}

// whoAsks returns the name of this process's user.
func whoAsks(j *Job) string {
	if !j.Local() {
		return j.cluster.User
	}
	return rpc.CurrentUser()
}
