package submit

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"holdfast/client"
	"holdfast/client/jobs"
	"holdfast/hdfsckpt/store"
)

// EnvKeepJobs names the variable that says for how many days a job's directory
// stays after the last change in it; 0: for ever.
const EnvKeepJobs = "HOLDFAST_KEEP_JOBS"

const (
	// keepJobsDays is how long they stay where nothing else is said.
	keepJobsDays = 90
	// sweepLimit and sweepMost bound what one submission does for the others.
	sweepLimit = 5 * time.Second
	sweepMost  = 50
)

// keepJobs is how long directories of jobs stay; 0: for ever.
func keepJobs() (time.Duration, error) {
	text := os.Getenv(EnvKeepJobs)
	if text == "" {
		text = strconv.Itoa(keepJobsDays)
	}
	days, err := strconv.Atoi(strings.TrimSuffix(text, "d"))
	if err != nil || days < 0 || days > 36500 {
		return 0, client.Usagef("%s is %q: write a number of days, or 0 to keep the directories of jobs for ever", EnvKeepJobs, text)
	}
	return time.Duration(days) * 24 * time.Hour, nil
}

// sweepJobs removes directories of jobs in which nothing has changed for long. A
// job that lives changes its own: its master touches a file there every few
// seconds. It tells what was done, if anything; that it cannot be done keeps
// nobody from starting a job.
func sweepJobs(ctx context.Context, home store.Store, keep time.Duration, tell Tell, remove func(ctx context.Context, job string) error) {
	if keep == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, sweepLimit)
	defer cancel()
	list, err := home.List(ctx, jobs.Root)
	if err != nil {
		return
	}
	n := 0
	for _, e := range list {
		if !e.IsDir() || n == sweepMost || time.Since(e.ModTime) < keep || !unchanged(ctx, home, jobs.Directory(e.Name), keep) {
			continue
		}
		if remove(ctx, e.Name) == nil {
			n++
		}
	}
	if n == 0 {
		return
	}
	tell(fmt.Sprintf("removed the directories of %d jobs in which nothing has changed for %d days; %s=DAYS keeps them for another time, 0 for ever", n, int(keep.Hours()/24), EnvKeepJobs))
}

// unchanged reports whether nothing in a directory has changed for so long.
func unchanged(ctx context.Context, home store.Store, dir string, long time.Duration) bool {
	entries, err := home.List(ctx, dir)
	for _, e := range entries {
		if time.Since(e.ModTime) < long {
			return false
		}
	}
	return err == nil
}
