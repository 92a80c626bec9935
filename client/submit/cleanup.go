package submit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"strconv"
	"strings"
	"time"

	"holdfast/client"
	"holdfast/client/cluster"
	"holdfast/client/jobs"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/yarn"
)

// EnvKeepJobs is the environment variable with the number of days for which a job's
// directory is kept after its last change; 0 means forever.
const EnvKeepJobs = "HOLDFAST_KEEP_JOBS"

const (
	// retentionDays is the default of EnvKeepJobs.
	retentionDays = 90
	// cleanupTimeout and cleanupMax bound the time and the number of directories that
	// one submission spends on other jobs.
	cleanupTimeout = 5 * time.Second
	cleanupMax     = 50
)

// retention returns how long job directories are kept; 0 means forever.
func retention() (time.Duration, error) {
	text := os.Getenv(EnvKeepJobs)
	if text == "" {
		text = strconv.Itoa(retentionDays)
	}
	days, err := strconv.Atoi(strings.TrimSuffix(text, "d"))
	if err != nil || days < 0 || days > 36500 {
		return 0, client.Usagef("%s is %q: write a number of days, or 0 to keep the directories of jobs for ever", EnvKeepJobs, text)
	}
	return time.Duration(days) * 24 * time.Hour, nil
}

// finder returns the job that has a directory; nil if the directory is none of a job there. The job
// is not to be closed.
type finder func(id string) *jobs.Job

// localJobs finds jobs of this machine.
func localJobs(home store.Store) finder {
	return func(id string) *jobs.Job {
		if !strings.HasPrefix(id, jobs.LocalPrefix) {
			return nil
		}
		return jobs.OnMachine(home, id)
	}
}

// jobsOn finds jobs on a cluster, whose directories are in home.
func jobsOn(c *cluster.Cluster, home store.Store) finder {
	return func(id string) *jobs.Job {
		app, err := yarn.ParseApplicationID(id)
		if err != nil {
			return nil
		}
		return jobs.OnCluster(c, app, home)
	}
}

// removeOldJobs removes the directories of jobs that have ended and in which nothing has changed
// for keep. The number of removed directories is reported through notify. Errors are ignored:
// they must not prevent a submission.
func removeOldJobs(ctx context.Context, home store.Store, keep time.Duration, notify Notify, find finder) {
	if keep == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	n := 0
	for e, err := range oldJobs(ctx, home, keep, find) {
		if err != nil {
			break
		}
		if store.RemoveAll(ctx, home, jobs.Directory(e.Name)) == nil {
			n++
		}
		if n == cleanupMax {
			break
		}
	}
	if n == 0 {
		return
	}
	notify(fmt.Sprintf("removed the directories of %d jobs that have ended and in which nothing has changed for %d days; %s=DAYS keeps them for another time, 0 for ever", n, int(keep.Hours()/24), EnvKeepJobs))
}

// oldJobs returns the directories, named by the jobs' IDs, of jobs that are known to have ended and
// in which nothing has changed for keep. Each is looked into when it is asked for. The last may be an
// error: that they cannot be listed, or that it cannot be told which jobs have ended.
func oldJobs(ctx context.Context, home store.Store, keep time.Duration, find finder) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		list, err := home.List(ctx, jobs.Root)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			yield(store.Info{}, fmt.Errorf("list the directories of jobs in %s: %w", home.URI(), err))
			return
		}
		for _, e := range list {
			job := find(e.Name)
			if job == nil || !e.IsDir() || time.Since(e.ModTime) < keep || !isUnchanged(ctx, home, jobs.Directory(e.Name), keep) {
				continue
			}
			ended, err := job.EndedLongAgo(ctx)
			switch {
			case err != nil:
				yield(e, fmt.Errorf("find out whether %s has ended, whose directory is old: %w", e.Name, err))
				return
			case ended && !yield(e, nil):
				return
			}
		}
	}
}

// isUnchanged reports whether nothing in a directory has changed for the given time.
func isUnchanged(ctx context.Context, home store.Store, dir string, long time.Duration) bool {
	entries, err := home.List(ctx, dir)
	for _, e := range entries {
		if time.Since(e.ModTime) < long {
			return false
		}
	}
	return err == nil
}
