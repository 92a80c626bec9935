package jobs

import (
	"context"
	"errors"
	"io/fs"

	"holdfast/client/cluster"
	"holdfast/proto"
)

// Samples returns those measurements of the job that a request asks for: from the application
// master while it answers, otherwise what is kept in the job's directory; none if nothing is, or if this
// user may not see that.
func (j *Job) Samples(ctx context.Context, r *proto.SamplesRequest) (*proto.JobSamples, error) {
	if m, err := j.dial(ctx); err == nil {
		defer m.close()
		calling, cancel := context.WithTimeout(ctx, cluster.Timeout/2)
		defer cancel()
		if s, err := m.Samples(calling, r); err == nil {
			return s, nil
		}
	}
	text, err := j.read(ctx, proto.SamplesFile)
	if errors.Is(err, fs.ErrNotExist) || j.denied() {
		return &proto.JobSamples{Id: j.ID}, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := proto.UnmarshalSamples(text)
	if err != nil {
		return nil, err
	}
	return proto.SelectSamples(all, r), nil
}
