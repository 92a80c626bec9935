package am

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"holdfast/am/agents"
	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/status"
	"holdfast/proto"
)

// jobService is what clients call: the status store, commands in containers,
// and what they ask of core.
type jobService struct {
	*status.Store
	agents *agents.Server
	ask    func(context.Context, event.Event) error
}

var _ proto.JobServiceServer = jobService{}

// Exec implements proto.JobServiceServer. With codes.FailedPrecondition and codes.InvalidArgument nothing
// was run. Commands, unlike stacks, are noted in the event
// log, with who has asked.
func (s jobService) Exec(r *proto.ExecRequest, stream proto.JobService_ExecServer) error {
	snapshot, _ := s.Snapshot()
	container := ""
	for _, t := range snapshot.Tasks {
		if t.Task == r.Task {
			container = t.Container
		}
	}
	if container == "" {
		return grpcstatus.Errorf(codes.FailedPrecondition, "%s is in no container now", r.Task)
	}
	if len(r.Command) == 0 && !r.Stacks {
		return grpcstatus.Error(codes.InvalidArgument, "there is no command to run")
	}
	if !r.Stacks {
		text := fmt.Sprintf("%s runs a command in its container: %.200q", cmp.Or(r.User, "somebody"), strings.Join(r.Command, " "))
		s.Update(func(status *proto.JobStatus) {
			status.Events = append(status.Events, &proto.JobEvent{AtUnixMs: time.Now().UnixMilli(), Task: r.Task, Kind: action.KindNote, Text: text})
		})
	}
	err := s.agents.Exec(stream.Context(), container, &proto.Exec{Command: r.Command, Stacks: r.Stacks}, stream.Send)
	switch {
	case err == nil || stream.Context().Err() != nil:
		return err
	case errors.Is(err, agents.ErrNotAsked):
		return grpcstatus.Errorf(codes.FailedPrecondition, "%s: %v", r.Task, err)
	}
	return grpcstatus.Errorf(codes.Unavailable, "%s: %v", r.Task, err)
}
