package submit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"holdfast/client"
	"holdfast/client/cluster"
	"holdfast/client/jobs"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/backoff"
	"holdfast/internal/hadoop/conf"
	"holdfast/proto"
)

// Remove removes the directory of a job that has ended: its spec, state and logs. The
// job's checkpoints stay. It is a usage error if the job has not ended. Of one that has just
// ended, it waits for the application master, and says so to notify.
func Remove(ctx context.Context, j *jobs.Job, notify Notify) error {
	s, err := j.Status(ctx)
	if err != nil {
		return err
	}
	if !s.State.Done() {
		return client.Usagef("%s is %s: end it first, with yarn-submit kill %s", j.ID, proto.StateWord(s.State), j.ID)
	}
	notifyOnce := sync.OnceFunc(func() {
		notify(fmt.Sprintf("%s has just ended; waiting until its application master has written its last", j.ID))
	})
	switch {
	case j.Local() && j.Elsewhere() == "":
		err = untilMasterEnds(ctx, j, notifyOnce)
	case time.Since(time.UnixMilli(s.EndedUnixMs)) < lastWrites:
		notifyOnce()
		err = untilQuiet(ctx, j.Store(), j.Dir())
	}
	if err != nil {
		return fmt.Errorf("remove the directory of %s: %w", j.ID, err)
	}
	if err := store.RemoveAll(ctx, j.Store(), j.Dir()); err != nil {
		return fmt.Errorf("remove the directory of %s: %w", j.ID, err)
	}
	return nil
}

// An application master on a cluster writes into its job's directory for a while after it has
// said that the job has ended: where it is, samples, its log. HDFS would make the directory anew
// for that.
const (
	// lastWrites is how long after a job's end it may do so, with what clocks differ by.
	lastWrites = 5 * time.Minute
	// quiet is longer than its pauses between two writes then.
	quiet = 8 * time.Second
	// quietLimit bounds the wait for it.
	quietLimit = 2 * time.Minute
	quietPace  = 500 * time.Millisecond
	// masterPace is that of looking whether an application master on this machine still runs.
	masterPace = 50 * time.Millisecond
)

// errStillWrites: an application master does not end.
var errStillWrites = errors.New("something still writes into it: its application master has not ended yet; try again in a moment")

// untilMasterEnds waits until the application master of a job on this machine has ended. It calls
// waiting before each pause.
func untilMasterEnds(ctx context.Context, j *jobs.Job, waiting func()) error {
	for end := time.Now().Add(quietLimit); j.MasterRuns(); {
		waiting()
		if time.Now().After(end) {
			return errStillWrites
		}
		if !backoff.Sleep(ctx, masterPace) {
			return ctx.Err()
		}
	}
	return nil
}

// untilQuiet waits until nothing has changed in a job's directory for quiet.
func untilQuiet(ctx context.Context, home store.Store, dir string) error {
	var before string
	changed, end := time.Now(), time.Now().Add(quietLimit)
	for {
		now, err := contents(ctx, home, dir, path.Join(dir, path.Dir(proto.MasterLogName(1))))
		if err != nil {
			return err
		}
		switch {
		case now != before:
			before, changed = now, time.Now()
		case time.Since(changed) >= quiet:
			return nil
		}
		if time.Now().After(end) {
			return errStillWrites
		}
		if !backoff.Sleep(ctx, quietPace) {
			return ctx.Err()
		}
	}
}

// contents describes what is in directories, of which some may be missing.
func contents(ctx context.Context, home store.Store, dirs ...string) (string, error) {
	var b strings.Builder
	for _, dir := range dirs {
		entries, err := home.List(ctx, dir)
		if err != nil && !store.Vanished(err) {
			return "", err
		}
		for _, e := range entries {
			fmt.Fprintf(&b, "%s/%s %d %d\n", dir, e.Name, e.Size, e.ModTime.UnixNano())
		}
	}
	return b.String(), nil
}

// LeastAge is the least age of a directory that Collect removes. A live job changes its
// own every few seconds.
const LeastAge = time.Hour

// Collected is a directory of a job that Collect has found.
type Collected struct {
	ID      string    `json:"id"`
	Where   string    `json:"where"` // URI of the directory
	Changed time.Time `json:"changed"`
	Removed bool      `json:"removed"`
}

// Collect finds the directories of this user's jobs, on this machine and on the cluster if
// one is configured, that are known to have ended and in which nothing has changed for at least
// keep, and removes them unless dry is set. Directories that it cannot remove do not prevent others from being
// removed: the errors are returned at the end.
func Collect(ctx context.Context, keep time.Duration, dry bool) ([]Collected, error) {
	home, err := jobs.OpenLocalHome(ctx)
	if err != nil {
		return nil, err
	}
	defer home.Close()
	list, problems := collectIn(ctx, home, keep, dry, localJobs(home))
	if os.Getenv(conf.EnvDir) == "" {
		return list, problems
	}
	c, err := cluster.Connect()
	if err != nil {
		return list, errors.Join(problems, err)
	}
	defer c.Close()
	remote, err := c.OpenExisting(ctx, c.Home(c.User))
	if errors.Is(err, fs.ErrNotExist) {
		return list, problems
	}
	if err != nil {
		return list, errors.Join(problems, err)
	}
	defer remote.Close()
	more, err := collectIn(ctx, remote, keep, dry, jobsOn(c, remote))
	return append(list, more...), errors.Join(problems, err)
}

func collectIn(ctx context.Context, home store.Store, keep time.Duration, dry bool, find finder) ([]Collected, error) {
	var list []Collected
	var problems []error
	for e, err := range oldJobs(ctx, home, keep, find) {
		if err != nil {
			problems = append(problems, err)
			break
		}
		dir := jobs.Directory(e.Name)
		c := Collected{ID: e.Name, Where: home.URI() + "/" + dir, Changed: e.ModTime.UTC().Truncate(time.Millisecond)}
		if !dry {
			err := store.RemoveAll(ctx, home, dir)
			c.Removed = err == nil
			if err != nil {
				problems = append(problems, fmt.Errorf("remove %s: %w", c.Where, err))
			}
		}
		list = append(list, c)
	}
	return list, errors.Join(problems...)
}
