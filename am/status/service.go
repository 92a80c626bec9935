package status

import (
	"context"
	"time"

	"holdfast/proto"
)

// watchInterval is the least time between two statuses sent to one watcher.
const watchInterval = 100 * time.Millisecond

var _ proto.JobServiceServer = (*Store)(nil)

// Status implements proto.JobServiceServer.
func (s *Store) Status(context.Context, *proto.StatusRequest) (*proto.JobStatus, error) {
	status, _ := s.Snapshot()
	return status, nil
}

// Watch implements proto.JobServiceServer.
func (s *Store) Watch(_ *proto.StatusRequest, stream proto.JobService_WatchServer) error {
	pace := time.NewTicker(watchInterval)
	defer pace.Stop()
	for {
		status, changed := s.Snapshot()
		if err := stream.Send(status); err != nil {
			return err
		}
		if status.State.Done() {
			return nil
		}
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-changed:
		}
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-pace.C:
		}
	}
}

// Samples implements proto.JobServiceServer.
func (s *Store) Samples(_ context.Context, r *proto.SamplesRequest) (*proto.JobSamples, error) {
	return s.samples.Select(r), nil
}

// Kill implements proto.JobServiceServer.
func (s *Store) Kill(_ context.Context, r *proto.KillRequest) (*proto.KillResponse, error) {
	why := r.Why
	if why == "" {
		why = "killed by a user"
	}
	s.kill(why)
	return &proto.KillResponse{StopGraceMs: s.stopGrace.Milliseconds()}, nil
}
