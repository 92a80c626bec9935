package jobs

import (
	"context"
	"fmt"

	"holdfast/client/cluster"
	"holdfast/proto"
)

// Samples returns measurements of the job, from its application master or, if that does not
// answer, as they were saved last.
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
	var all *proto.JobSamples
	if err == nil {
		all, err = proto.UnmarshalSamples(text)
	}
	if err != nil {
		return nil, fmt.Errorf("read what was measured of %s, in %s: %w", j.ID, j.URI(), err)
	}
	return proto.SelectSamples(all, r), nil
}
