package client

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

// A keytab outlives every ticket and token, so it is on HDFS for no longer than
// its job may need it: the application master removes it at the job's end, kill
// where there was no master to do that, and the next submission where neither
// could. It stands beside the jobs' directories, in one of its own, so that one
// listing finds what was left.

func (j *Job) keytab() string { return path.Join(j.cluster.keytabs(), j.ID) }

// keytabs is where the keytabs of the jobs on one YARN are: several may have their
// users' homes on the same HDFS, and none knows the others' applications.
func (c *Cluster) keytabs() string {
	rms, err := c.conf.ResourceManagers()
	if err != nil {
		return proto.KeytabsDir // nothing can be submitted to it
	}
	name := strings.Map(func(r rune) rune {
		if r == '/' || r == ':' || r < ' ' {
			return '_'
		}
		return r
	}, strings.Join(rms.Client, ","))
	return path.Join(proto.KeytabsDir, name)
}

// bringKeytab uploads the user's keytab for the application master's container.
// NodeManagers remove their copy with the application.
func (j *Job) bringKeytab(ctx context.Context) (yarn.LocalResource, error) {
	err := store.MkdirAll(ctx, j.home, j.cluster.keytabs(), 0o700)
	if err == nil {
		err = uploadFile(ctx, j.home, j.keytab(), j.cluster.keytab, 0o600)
	}
	var info store.Info
	if err == nil {
		info, err = j.home.Stat(ctx, j.keytab())
	}
	if err != nil {
		return yarn.LocalResource{}, fmt.Errorf("bring the keytab to %s/%s: %w", j.home.URI(), j.keytab(), err)
	}
	r := resourceOf(j.home, j.keytab(), proto.KeytabFile, info)
	r.Visibility = yarn.Application
	return r, nil
}

// removeKeytab removes the keytab of a job that is over; most have none. Another
// user's is left to that user's next job: see sweepKeytabs.
func (j *Job) removeKeytab(ctx context.Context) error {
	if j.cluster == nil || j.foreign() {
		return nil
	}
	if err := j.home.Remove(ctx, j.keytab()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the keytab of %s, which is over: %w; remove %s/%s yourself", j.ID, err, j.home.URI(), j.keytab())
	}
	return nil
}

// submitting is for how long a job that the ResourceManager does not know may
// be one that is being submitted elsewhere just now.
const submitting = 10 * time.Minute

// sweepKeytabs removes the keytabs of jobs that ended without anybody to do it:
// killed by YARN's own tools, or when the last application master had died.
func (c *Cluster) sweepKeytabs(ctx context.Context, home store.Store) error {
	list, err := home.List(ctx, c.keytabs())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for keytabs of jobs that are over in %s/%s: %w", home.URI(), c.keytabs(), err)
	}
	for _, e := range list {
		id, err := yarn.ParseApplicationID(e.Name)
		if err != nil {
			continue // not Holdfast's
		}
		switch r, err := c.rm.Report(ctx, id); {
		case yarn.IsUnknownApplication(err):
			if time.Since(e.ModTime) < submitting {
				continue
			}
		case err != nil:
			return rmError(err)
		case !r.State.Done():
			continue
		}
		if err := (&Job{ID: e.Name, home: home, cluster: c}).removeKeytab(ctx); err != nil {
			return err
		}
	}
	return nil
}
