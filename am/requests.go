package am

import (
	"context"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"holdfast/am/core/event"
	"holdfast/proto"
)

// request is what a client asks of core. The event loop sends core's refusal, or "", to
// answer.
type request struct {
	event  event.Event // that action.RequestAnswered answers
	answer chan string // capacity 1
}

// ask asks core for what a client wants. It returns core's refusal as an error for the
// client, and another if ctx or the job ends before the answer. It may be called from any
// goroutine.
func (m *Master) ask(ctx context.Context, e event.Event) error {
	r := request{e, make(chan string, 1)}
	select {
	case m.requests <- r:
	case <-ctx.Done():
		return grpcstatus.FromContextError(ctx.Err()).Err()
	case <-m.done:
		return grpcstatus.Error(codes.Unavailable, "the job has ended")
	}
	select {
	case refusal := <-r.answer: // once what was decided outlives this application master
		if refusal != "" {
			return grpcstatus.Error(codes.FailedPrecondition, refusal)
		}
		return nil
	case <-ctx.Done():
		return grpcstatus.FromContextError(ctx.Err()).Err()
	case <-m.done:
		return grpcstatus.Error(codes.Unavailable, "the job has ended")
	}
}

// RestartTask implements proto.JobServiceServer.
func (s jobService) RestartTask(ctx context.Context, r *proto.RestartTaskRequest) (*proto.RestartTaskResponse, error) {
	return &proto.RestartTaskResponse{}, s.ask(ctx, event.RestartRequested{Task: r.Task, User: r.User})
}

// Scale implements proto.JobServiceServer.
func (s jobService) Scale(ctx context.Context, r *proto.ScaleRequest) (*proto.ScaleResponse, error) {
	return &proto.ScaleResponse{}, s.ask(ctx, event.ScaleRequested{Role: r.Role, Count: r.Count, User: r.User})
}
