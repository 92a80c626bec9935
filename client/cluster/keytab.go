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

// A keytab outlives every ticket and token, so it is on HDFS only for as long as its
// job may need it: the application master removes it at the job's end, Kill does if
// there was no master, and the next submission does if neither could. All keytabs are
// in one directory, so that one listing finds stale ones.

// KeytabsDir returns the directory of the keytabs of jobs on this YARN, below Home. It
// is named for the YARN: several may share an HDFS, and none knows the applications of
// the others.
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

// KeytabFile returns the path of a job's keytab, below Home.
func (c *Cluster) KeytabFile(job string) string { return path.Join(c.KeytabsDir(), job) }

// RemoveKeytab removes the keytab of a job that has ended; most have none. home is the
// directory Home of the job's user.
func (c *Cluster) RemoveKeytab(ctx context.Context, home store.Store, job string) error {
	if err := home.Remove(ctx, c.KeytabFile(job)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the keytab of %s, which is over: %w; remove %s/%s yourself", job, err, home.URI(), c.KeytabFile(job))
	}
	return nil
}
