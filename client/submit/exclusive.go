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

// Notify reports something to the person who waits for a submission: one line, without
// a newline. It may be called concurrently.
type Notify func(note string)

// checkExclusive refuses a checkpoint directory that another live job writes to, unless
// the directory is to be shared: each job would take the other's unfinished saves for
// torn checkpoints. Jobs that are known to have ended (over), and those that send no
// heartbeat for writers.LostAfter, are fenced off; before it waits for heartbeats, it
// says so through notify.
func checkExclusive(ctx context.Context, s store.Store, c *proto.CheckpointSpec, over func(ctx context.Context, job string) bool, notify Notify) error {
	living, err := liveWriters(ctx, s, over, notify)
	if err != nil {
		return fmt.Errorf("cannot tell who writes to the checkpoint directory %s: %w", c.Uri, err)
	}
	if len(living) > 0 && !c.Share {
		return client.Usagef("the job %s writes to the checkpoint directory %s: wait for its end, name another directory, or have both write there with --checkpoint %s=%s,share=true", strings.Join(living, ", "), c.Uri, c.Path, c.Uri)
	}
	return nil
}

// liveWriters returns the live jobs that write to a store, after it has fenced off the
// others.
func liveWriters(ctx context.Context, s store.Store, over func(ctx context.Context, job string) bool, notify Notify) ([]string, error) {
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
		notify(fmt.Sprintf("%s has not ended its writing to the checkpoint directory %s: it runs, or was lost without a word; waiting for a sign of its life, until %s at the latest",
			strings.Join(unsure, ", "), s.URI(), time.Now().Add(writers.LostAfter).Format(time.TimeOnly)))
	}
	living, lost, err := writers.OtherJobs(ctx, s, "", proto.WritersJob, writers.LostAfter)
	if err != nil {
		return nil, err
	}
	return living, writers.FenceJobs(ctx, s, lost, proto.WritersJob)
}

// ended returns a function that reports whether, according to YARN, a job has ended.
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
