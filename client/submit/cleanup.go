package submit

import (
	"context"
	"fmt"
	"iter"
	"os"
	"strconv"
	"strings"
	"time"

	"holdfast/client"
	"holdfast/client/jobs"
	"holdfast/hdfsckpt/store"
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

// removeOldJobs removes job directories in which nothing has changed for keep. A live
// job changes its own: its application master touches a file in it every few seconds.
// The number of removed directories is reported through notify. Errors are ignored:
// they must not prevent a submission.
func removeOldJobs(ctx context.Context, home store.Store, keep time.Duration, notify Notify, remove func(ctx context.Context, job string) error) {
	if keep == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	unchanged, err := unchangedJobs(ctx, home, keep)
	if err != nil {
		return
	}
	n := 0
	for e := range unchanged {
		if remove(ctx, e.Name) == nil {
			n++
		}
		if n == cleanupMax {
			break
		}
	}
	if n == 0 {
		return
	}
	notify(fmt.Sprintf("removed the directories of %d jobs in which nothing has changed for %d days; %s=DAYS keeps them for another time, 0 for ever", n, int(keep.Hours()/24), EnvKeepJobs))
}

// unchangedJobs returns the directories of jobs, named by the jobs' IDs, in which nothing
// has changed for keep. Each is looked into when it is asked for.
func unchangedJobs(ctx context.Context, home store.Store, keep time.Duration) (iter.Seq[store.Info], error) {
	list, err := home.List(ctx, jobs.Root)
	if err != nil {
		return nil, err
	}
	return func(yield func(store.Info) bool) {
		for _, e := range list {
			if e.IsDir() && time.Since(e.ModTime) >= keep && isUnchanged(ctx, home, jobs.Directory(e.Name), keep) && !yield(e) {
				return
			}
		}
	}, nil
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
