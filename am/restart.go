package am

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"holdfast/am/core"
	"holdfast/proto"
)

// restartRequest is a client's request to restart a task. The event loop sends core's
// refusal, or "", to answer.
type restartRequest struct {
	event  core.RestartRequested
	answer chan string // capacity 1
}

// requestRestart asks core to restart a task, and returns its refusal, or "". It may be
// called from any goroutine. It returns an error if ctx or the job ends before the answer.
func (m *Master) requestRestart(ctx context.Context, task, user string) (refusal string, err error) {
	r := restartRequest{core.RestartRequested{Task: task, User: user}, make(chan string, 1)}
	select {
	case m.restarts <- r:
	case <-ctx.Done():
		return "", ctx.Err()
	case <-m.done:
		return "", errors.New("the job has ended")
	}
	return <-r.answer, nil // the loop answers what it has taken
}

// RestartTask implements proto.JobServiceServer.
func (s jobService) RestartTask(ctx context.Context, r *proto.RestartTaskRequest) (*proto.RestartTaskResponse, error) {
	refusal, err := s.restart(ctx, r.Task, r.User)
	switch {
	case err != nil:
		return nil, grpcstatus.Error(codes.Unavailable, err.Error())
	case refusal != "":
		return nil, grpcstatus.Error(codes.FailedPrecondition, refusal)
	}
	return &proto.RestartTaskResponse{}, nil
}
