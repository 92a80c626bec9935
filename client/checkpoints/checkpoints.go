// Package checkpoints opens the checkpoint directories that a user names, and chooses among
// the checkpoints in them.
package checkpoints

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"holdfast/client"
	"holdfast/client/cluster"
	"holdfast/client/jobs"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/inspect"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/rpc"
)

// Directory is a checkpoint directory that a user named by its URI or by its job.
type Directory struct {
	Store store.Store
	Path  string // as the job's script spells it; empty if it was named by URI
}

// Directories opens the directories that a user names: by a URI, a local path, or a
// job, which stands for all its checkpoint directories. It needs no application master
// and creates nothing. The caller closes each Store.
func Directories(ctx context.Context, ref string) ([]Directory, error) {
	if scheme, _, ok := strings.Cut(ref, "://"); ok && scheme != "hdfs" && scheme != "file" {
		return nil, client.Usagef("%s: checkpoints are looked at in hdfs://..., file://... and local directories", ref)
	}
	if strings.Contains(ref, "://") || strings.HasPrefix(ref, "/") || strings.HasPrefix(ref, ".") {
		s, err := openExisting(ctx, ref)
		if err != nil {
			return nil, err
		}
		return []Directory{{Store: s}}, nil
	}
	j, err := jobs.Find(ctx, ref)
	if err != nil {
		return nil, err
	}
	defer j.Close()
	spec, err := j.Spec(ctx)
	if err != nil {
		return nil, err
	}
	if len(spec.Checkpoints) == 0 {
		return nil, client.Usagef("the job %s has no checkpoint directory: it was started without --checkpoint", ref)
	}
	var all []Directory
	for _, c := range spec.Checkpoints {
		s, err := openExisting(ctx, c.Uri)
		if err != nil {
			for _, d := range all {
				d.Store.Close()
			}
			return nil, err
		}
		all = append(all, Directory{Store: s, Path: c.Path})
	}
	return all, nil
}

func openExisting(ctx context.Context, uri string) (store.Store, error) {
	if !strings.Contains(uri, "://") {
		abs, err := filepath.Abs(uri)
		if err != nil {
			return nil, err
		}
		s, err := notExistIsUsage(store.OpenExisting(ctx, abs, nil))
		if err != nil && strings.HasPrefix(uri, "/") && os.Getenv(conf.EnvDir) != "" {
			err = client.Usagef("%w; a directory on HDFS is named by hdfs://%s", err, uri)
		}
		return s, err
	}
	var c *conf.Conf
	if strings.HasPrefix(uri, "hdfs:") {
		var err error
		// An address in the URI is enough where there is no configuration.
		if c, err = conf.Load(""); err != nil {
			if os.Getenv(conf.EnvDir) != "" || strings.HasPrefix(uri, "hdfs:///") {
				return nil, client.Usagef("%w", err)
			}
			c = conf.New(nil)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, cluster.Timeout*3/2)
	defer cancel()
	s, err := store.OpenExisting(ctx, uri, c)
	if err != nil && rpc.Unreachable(err) {
		return nil, client.Unreachablef("HDFS does not answer: %w; check the address in %s", err, uri)
	}
	return notExistIsUsage(s, err)
}

// notExistIsUsage turns a directory that does not exist into a usage error.
func notExistIsUsage(s store.Store, err error) (store.Store, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return nil, client.Usagef("%w", err)
	}
	return s, err
}

// Choose returns the checkpoint with a step or name, or the newest complete one if
// which is empty. That there is none is a usage error.
func Choose(list []format.Checkpoint, uri, which string) (*format.Checkpoint, error) {
	c, err := inspect.Choose(list, uri, which)
	if inspect.IsMissing(err) {
		err = client.Usagef("%w", err)
	}
	return c, err
}
