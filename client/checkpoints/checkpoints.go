// Package checkpoints opens the checkpoint directories that a user names, and chooses among
// the checkpoints in them.
package checkpoints

import (
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
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

// Listed is a directory with the checkpoints in it.
type Listed struct {
	Directory
	List []format.Checkpoint
}

// Chosen is one of the checkpoints of a directory.
type Chosen struct {
	Listed
	*format.Checkpoint
}

// Describe describes the checkpoint for JSON output.
func (c *Chosen) Describe() inspect.Checkpoint {
	return inspect.Describe(c.Store.URI(), []format.Checkpoint{*c.Checkpoint}, c.List)[0]
}

// Choose returns the checkpoint that which means in some directories: its name, or its step or
// the last part of its name. Several of a step are told apart by what programs do: whole ones
// come before others, and those with the step in their names before those that have it in what
// they hold. That several are left is a usage error, which names them, and so is that there is
// none.
func Choose(dirs []Listed, which string) (*Chosen, error) {
	step, err := strconv.ParseInt(which, 10, 64)
	byStep := err == nil && step != format.NoStep
	var named, found []Chosen
	for _, d := range dirs {
		for i := range d.List {
			switch c := &d.List[i]; {
			case c.Name == which:
				named = append(named, Chosen{d, c})
			case byStep && c.Step == step, path.Base(c.Name) == which:
				found = append(found, Chosen{d, c})
			}
		}
	}
	if len(named) > 0 {
		found = named
	}
	found = prefer(found, func(c Chosen) bool { return c.Whole() })
	found = prefer(found, func(c Chosen) bool { return c.NamedStep() != format.NoStep })
	switch len(found) {
	case 0:
		return nil, client.Usagef("%s", noneOf(dirs, which))
	case 1:
		return &found[0], nil
	}
	var all []string
	for _, c := range found {
		name := c.Name
		if len(dirs) > 1 {
			name += " in " + c.Store.URI()
		}
		all = append(all, name)
	}
	instead := "write the name of one instead"
	if len(dirs) > 1 {
		instead = "write the directory of one and its name instead"
	}
	return nil, client.Usagef("%s means several checkpoints: %s; %s", which, strings.Join(all, ", "), instead)
}

// prefer returns those of a list that are of a kind, or all if none is.
func prefer(list []Chosen, is func(Chosen) bool) []Chosen {
	if !slices.ContainsFunc(list, is) {
		return list
	}
	return slices.DeleteFunc(list, func(c Chosen) bool { return !is(c) })
}

// noneOf says that there is no checkpoint as was asked for, and which there are.
func noneOf(dirs []Listed, which string) string {
	var said []string
	for _, d := range dirs {
		have := "there is none at all"
		if n := len(d.List); n > 0 {
			const most = 10
			var some []string
			if n > most {
				some = append(some, "...")
			}
			for _, c := range d.List[max(0, n-most):] {
				some = append(some, short(c, d.List))
			}
			have = "there are " + strings.Join(some, ", ")
		}
		said = append(said, fmt.Sprintf("there is no checkpoint %s in %s; %s", which, d.Store.URI(), have))
	}
	return strings.Join(said, "; ")
}

// short returns the step of a checkpoint in a list, or its name where that has none or others have
// the same.
func short(c format.Checkpoint, list []format.Checkpoint) string {
	if c.Step == format.NoStep || slices.ContainsFunc(list, func(o format.Checkpoint) bool { return o.Step == c.Step && o.Name != c.Name }) {
		return c.Name
	}
	return strconv.FormatInt(c.Step, 10)
}

// Newest returns the newest complete checkpoint of a directory. That there is none is a usage
// error.
func Newest(d Listed) (*Chosen, error) {
	if c := format.NewestComplete(d.List); c != nil {
		return &Chosen{d, c}, nil
	}
	if len(d.List) == 0 {
		return nil, client.Usagef("there is no checkpoint in %s", d.Store.URI())
	}
	return nil, client.Usagef("none of the %d checkpoints in %s is complete; name one by its step to look at it", len(d.List), d.Store.URI())
}
