package submit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"holdfast/client/cluster"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

// uploadKeytab uploads the user's keytab for the application master's container.
// NodeManagers delete their copy with the application.
func uploadKeytab(ctx context.Context, c *cluster.Cluster, home store.Store, job string) (yarn.LocalResource, error) {
	name := c.KeytabFile(job)
	err := store.MkdirAll(ctx, home, c.KeytabsDir(), 0o700)
	if err == nil {
		err = uploadFile(ctx, home, name, c.Keytab, "", 0o600, nil)
	}
	var info store.Info
	if err == nil {
		info, err = home.Stat(ctx, name)
	}
	if err != nil {
		return yarn.LocalResource{}, fmt.Errorf("bring the keytab to %s/%s: %w", home.URI(), name, err)
	}
	r := resourceOf(home, name, proto.KeytabFile, info)
	r.Visibility = yarn.Application
	return r, nil
}

// submissionLimit is the age up to which the keytab of a job unknown to the
// ResourceManager may belong to a submission in progress.
const submissionLimit = 10 * time.Minute

// removeStaleKeytabs removes the keytabs of jobs that ended without removing them:
// killed by YARN's own tools, or after the last attempt of their application master.
func removeStaleKeytabs(ctx context.Context, c *cluster.Cluster, home store.Store) error {
	list, err := home.List(ctx, c.KeytabsDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for keytabs of jobs that are over in %s/%s: %w", home.URI(), c.KeytabsDir(), err)
	}
	for _, e := range list {
		id, err := yarn.ParseApplicationID(e.Name)
		if err != nil {
			continue // not Holdfast's
		}
		switch r, err := c.RM.Report(ctx, id); {
		case yarn.IsUnknownApplication(err):
			if time.Since(e.ModTime) < submissionLimit {
				continue
			}
		case err != nil:
			return cluster.YARNError(err)
		case !r.State.Done():
			continue
		}
		if err := c.RemoveKeytab(ctx, home, e.Name); err != nil {
			return err
		}
	}
	return nil
}
