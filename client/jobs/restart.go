package jobs

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"holdfast/client/cluster"
	"holdfast/proto"
)

// RestartTask has the present attempt of a task end, so that the task is restarted. It
// returns once the application master has agreed. Only those who may call that can: the
// job's user.
func (j *Job) RestartTask(ctx context.Context, task string) error {
	m, err := j.dialToAsk(ctx)
	if err != nil {
		return err
	}
	defer m.close()
	calling, cancel := context.WithTimeout(ctx, cluster.Timeout)
	defer cancel()
	_, err = m.RestartTask(calling, &proto.RestartTaskRequest{Task: task, User: whoAsks(j)})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case status.Code(err) == codes.FailedPrecondition:
		return fmt.Errorf("%s of %s is not restarted: %s", task, j.ID, status.Convert(err).Message())
	}
	return fmt.Errorf("ask the application master of %s to restart %s: %s", j.ID, task, status.Convert(err).Message())
}
