// Package checkpoints opens the checkpoint directories that a user names, and chooses among
// the checkpoints in them.
package checkpoints

import (
	"context"
	"os"
	"strings"

	"holdfast/client"
	"holdfast/client/cluster"
	"holdfast/client/jobs"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/inspect"
	"holdfast/hdfsckpt/store"
)

// Directory is a checkpoint directory that a user named by its URI or by its job.
type Directory struct {
	Store store.Store
	Path  string // as the job's script spells it; empty if it was named by URI
}

// User returns who changes checkpoints by a command, for the record of that.
func User() string { return cluster.LocalUser() }

// Directories opens the directories that a user names: by a URI, a local path, or a
// job, which find finds and which stands for all its checkpoint directories. It needs no
// application master and creates nothing. The caller closes each Store.
func Directories(ctx context.Context, ref string, find jobs.Finder) ([]Directory, error) {
	if scheme, _, ok := strings.Cut(ref, "://"); ok && scheme != "hdfs" && scheme != "viewfs" && scheme != "file" {
		return nil, client.Usagef("%s: checkpoints are looked at in hdfs://..., file://... and local directories", ref)
	}
	if strings.Contains(ref, "://") || strings.HasPrefix(ref, "/") || strings.HasPrefix(ref, ".") {
		s, err := cluster.OpenDirectory(ctx, ref)
		if err != nil {
			return nil, err
		}
		return []Directory{{Store: s}}, nil
	}
	j, err := find(ctx, ref)
	if err != nil {
		if i, statErr := os.Stat(ref); statErr == nil && i.IsDir() && client.ExitCode(err) == client.ExitUsage {
			return nil, client.Usagef("%w; for the directory of that name in this one, write ./%s", err, ref)
		}
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
		s, err := cluster.OpenDirectory(ctx, c.Uri)
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

// Choose returns the checkpoint with a step or name, or the newest complete one if
// which is empty. That there is none is a usage error.
func Choose(list []format.Checkpoint, uri, which string) (*format.Checkpoint, error) {
	c, err := inspect.Choose(list, uri, which)
	if inspect.IsMissing(err) {
		err = client.Usagef("%w", err)
	}
	return c, err
}
