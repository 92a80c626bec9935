package jobs

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"holdfast/client"
	"holdfast/client/cluster"
	"holdfast/proto"
)

// CheckRuns returns an error that says so if a job has ended, of which nothing can be asked.
func CheckRuns(s *proto.JobStatus) error {
	if !s.State.Done() {
		return nil
	}
	return client.Usagef("%s has ended (%s): nothing runs in it; its output: yarn-submit logs %[1]s", s.Id, proto.StateWord(s.State))
}

// RestartTask has the present attempt of a task end, so that the task is restarted. It
// returns once the application master has agreed. Only those who may call that can: the
// job's user.
func (j *Job) RestartTask(ctx context.Context, task string) error {
	return j.ask(ctx, fmt.Sprintf("restart %s", task), func(ctx context.Context, m *master, user string) error {
		_, err := m.RestartTask(ctx, &proto.RestartTaskRequest{Task: task, User: user})
		return err
	})
}

// Scale has the job work with count tasks of a role, within the range that the role was
// submitted with. It returns once the application master has agreed; tasks leave, or come,
// after that. Only those who may call that can: the job's user.
func (j *Job) Scale(ctx context.Context, role string, count int32) error {
	return j.ask(ctx, fmt.Sprintf("scale %s to %d", role, count), func(ctx context.Context, m *master, user string) error {
		_, err := m.Scale(ctx, &proto.ScaleRequest{Role: role, Count: count, User: user})
		return err
	})
}

// ask calls the application master for what a person wants, which it may refuse.
func (j *Job) ask(ctx context.Context, what string, call func(ctx context.Context, m *master, user string) error) error {
	m, err := j.dialToAsk(ctx)
	if err != nil {
		return err
	}
	defer m.close()
	calling, cancel := context.WithTimeout(ctx, cluster.Timeout)
	defer cancel()
	err = call(calling, m, whoAsks(j))
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case status.Code(err) == codes.FailedPrecondition:
		return fmt.Errorf("%s refuses to %s: %s", j.ID, what, status.Convert(err).Message())
	}
	return fmt.Errorf("ask the application master of %s to %s: %s", j.ID, what, status.Convert(err).Message())
}
