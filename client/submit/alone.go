package submit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/client"
	"holdfast/client/cluster"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
	"holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

// Tell takes what a person who waits for a submission is to know at once, a line
// without an end. It may be called by many goroutines.
type Tell func(note string)

// alone refuses a checkpoint directory that another job writes to, unless it is to
// be shared: the two would take each other's unfinished saves for broken ones. A
// job that was lost without a word is shut out: one that over knows to have ended,
// or one that sends no heartbeat while it is watched (writers.LostAfter), which
// tell is told of before.
func alone(ctx context.Context, s store.Store, c *proto.CheckpointSpec, over func(ctx context.Context, job string) bool, tell Tell) error {
	living, err := others(ctx, s, over, tell)
	if err != nil {
		return fmt.Errorf("cannot tell who writes to the checkpoint directory %s: %w", c.Uri, err)
	}
	if len(living) > 0 && !c.Share {
		return client.Usagef("the job %s writes to the checkpoint directory %s: wait for its end, name another directory, or have both write there with --checkpoint %s=%s,share=true", strings.Join(living, ", "), c.Uri, c.Path, c.Uri)
	}
	return nil
}

// others are the jobs that write to a store and live.
func others(ctx context.Context, s store.Store, over func(ctx context.Context, job string) bool, tell Tell) ([]string, error) {
	all, err := writers.List(ctx, s)
	if err != nil {
		return nil, err
	}
	var ended, unsure []string
	for _, w := range all {
		job := proto.WritersJob(w)
		switch {
		case slices.Contains(ended, job) || slices.Contains(unsure, job):
		case over(ctx, job):
			ended = append(ended, job)
		default:
			unsure = append(unsure, job)
		}
	}
	if err := writers.FenceJobs(ctx, s, ended, proto.WritersJob); err != nil {
		return nil, err
	}
	if len(unsure) > 0 {
		tell(fmt.Sprintf("%s has not ended its writing to the checkpoint directory %s: it runs, or was lost without a word; waiting for a sign of its life, until %s at the latest",
			strings.Join(unsure, ", "), s.URI(), time.Now().Add(writers.LostAfter).Format(time.TimeOnly)))
	}
	living, lost, err := writers.OtherJobs(ctx, s, "", proto.WritersJob, writers.LostAfter)
	if err != nil {
		return nil, err
	}
	return living, writers.FenceJobs(ctx, s, lost, proto.WritersJob)
}

// ended returns a function that reports whether a job has ended, as YARN knows it.
func ended(c *cluster.Cluster) func(ctx context.Context, job string) bool {
	return func(ctx context.Context, job string) bool {
		id, err := yarn.ParseApplicationID(job)
		if err != nil {
			return false
		}
		r, err := c.RM.Report(ctx, id)
		return err == nil && r.State.Done()
	}
}
