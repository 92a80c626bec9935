package submit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"holdfast/client"
	"holdfast/client/cluster"
	"holdfast/client/jobs"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/conf"
	"holdfast/proto"
)

// Remove removes the directory of a job that has ended: its spec, state and logs. The
// job's checkpoints stay. It is a usage error if the job has not ended.
func Remove(ctx context.Context, j *jobs.Job) error {
	s, err := j.Status(ctx)
	if err != nil {
		return err
	}
	if !s.State.Done() {
		return client.Usagef("%s is %s: end it first, with yarn-submit kill %s", j.ID, proto.StateWord(s.State), j.ID)
	}
	if j.Local() && j.MasterRuns() {
		return fmt.Errorf("the application master of %s has not ended yet: try again in a moment", j.ID)
	}
	if err := RemoveAll(ctx, j.Store(), j.Dir()); err != nil {
		return fmt.Errorf("remove the directory of %s: %w", j.ID, err)
	}
	return nil
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
// one is configured, in which nothing has changed for at least keep, and removes them
// unless dry is set. Directories that it cannot remove do not prevent others from being
// removed: the errors are returned at the end.
func Collect(ctx context.Context, keep time.Duration, dry bool) ([]Collected, error) {
	home, err := jobs.OpenLocalHome(ctx)
	if err != nil {
		return nil, err
	}
	defer home.Close()
	list, problems := collectIn(ctx, home, keep, dry, func(id string) bool { return jobs.OnMachine(home, id).MasterRuns() })
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
	more, err := collectIn(ctx, remote, keep, dry, func(string) bool { return false })
	return append(list, more...), errors.Join(problems, err)
}

func collectIn(ctx context.Context, home store.Store, keep time.Duration, dry bool, runs func(id string) bool) ([]Collected, error) {
	unchanged, err := unchangedJobs(ctx, home, keep)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the directories of jobs in %s: %w", home.URI(), err)
	}
	var list []Collected
	var problems []error
	for e := range unchanged {
		if runs(e.Name) {
			continue
		}
		dir := jobs.Directory(e.Name)
		c := Collected{ID: e.Name, Where: home.URI() + "/" + dir, Changed: e.ModTime}
		if !dry {
			err := RemoveAll(ctx, home, dir)
			c.Removed = err == nil
			if err != nil {
				problems = append(problems, fmt.Errorf("remove %s: %w", c.Where, err))
			}
		}
		list = append(list, c)
	}
	return list, errors.Join(problems...)
}
