package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

// A keytab outlives every ticket and token, so it is on HDFS for no longer than
// its job may need it: the application master removes it at the job's end, kill
// where there was no master to do that, and the next submission where neither
// could. It stands beside the jobs' directories, in one of its own, so that one
// listing finds what was left.

// KeytabsDir is where the keytabs of the jobs on this YARN are, below Home. Several
// YARNs may have their users' homes on the same HDFS, and none knows the others'
// applications.
func (c *Cluster) KeytabsDir() string {
	rms, err := c.Conf.ResourceManagers()
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

// KeytabFile is where the keytab of a job is, below Home.
func (c *Cluster) KeytabFile(job string) string { return path.Join(c.KeytabsDir(), job) }

// RemoveKeytab removes the keytab of a job that is over; most have none. home is
// the directory Home of the job's user.
func (c *Cluster) RemoveKeytab(ctx context.Context, home store.Store, job string) error {
	if err := home.Remove(ctx, c.KeytabFile(job)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the keytab of %s, which is over: %w; remove %s/%s yourself", job, err, home.URI(), c.KeytabFile(job))
	}
	return nil
}
