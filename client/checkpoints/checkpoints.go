// Package checkpoints opens the checkpoint directories that a user names and describes
// their checkpoints.
package checkpoints

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/client"
	"holdfast/client/cluster"
	"holdfast/client/jobs"
	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/rpc"
)

// Directory is a checkpoint directory that a user named by its URI or by its job.
type Directory struct {
	Store store.Store
	Path  string // as the job's script spells it; empty if it was named by URI
}

// Listing is the JSON output of ckpt ls.
type Listing struct {
	Checkpoints []Checkpoint `json:"checkpoints"` // the oldest first
}

// Checkpoint is a checkpoint in JSON output.
type Checkpoint struct {
	Directory string    `json:"directory"`
	Name      string    `json:"name"`
	Kind      string    `json:"kind"`
	Step      *int64    `json:"step"` // null if its name has none
	Time      time.Time `json:"time"`
	Bytes     int64     `json:"bytes"`
	Shards    int       `json:"shards"`
	State     string    `json:"state"`
	Complete  bool      `json:"complete"`
	Why       string    `json:"why"`
	Current   bool      `json:"current"` // the file "checkpoint" names it
	Newest    bool      `json:"newest"`  // of the complete ones
	// Retained: the program has removed or replaced it.
	Retained bool `json:"retained"`
	// Aside is where a torn one lies that was moved aside before tasks started.
	Aside string `json:"aside"`

	// Of a sealed one: when it was, and what wrote it.
	Sealed     *time.Time `json:"sealed"`
	Job        string     `json:"job"`
	Generation *int64     `json:"generation"`
	After      string     `json:"after"` // the recovery before it
}

// Describe returns a list of checkpoints for JSON output.
func Describe(uri string, list []format.Checkpoint) []Checkpoint {
	newest := format.NewestComplete(list)
	all := make([]Checkpoint, len(list))
	for i := range list {
		c := &list[i]
		name, retained := c.Original()
		all[i] = Checkpoint{
			Directory: uri, Name: name, Retained: retained, Kind: string(c.Kind), Time: c.Time, Bytes: c.Size, Shards: c.Shards,
			State: string(c.State), Complete: c.Whole(), Why: c.Why, Current: c.Current, Newest: c == newest && !retained,
		}
		if c.Step != format.NoStep {
			all[i].Step = &c.Step
		}
		if m := c.Manifest; m != nil {
			all[i].Sealed, all[i].Job, all[i].Generation, all[i].After = &m.Sealed, m.Job, &m.Generation, m.After
		}
	}
	return all
}

// DescribeAside returns a list of checkpoints that were moved aside, for JSON output.
func DescribeAside(uri string, list []hdfsckpt.Aside) []Checkpoint {
	all := make([]Checkpoint, len(list))
	for i := range list {
		a := &list[i]
		all[i] = Checkpoint{
			Directory: uri, Name: a.Name, Kind: string(a.Kind), Time: a.Moved, Bytes: a.Size,
			State: string(format.Torn), Why: a.Why, Aside: a.Where,
		}
		if a.Step != format.NoStep {
			all[i].Step = &a.Step
		}
	}
	return all
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
// which is empty.
func Choose(list []format.Checkpoint, uri, which string) (*format.Checkpoint, error) {
	if len(list) == 0 {
		return nil, client.Usagef("there is no checkpoint %s in %s: there is none at all", which, uri)
	}
	if which == "" {
		if c := format.NewestComplete(list); c != nil {
			return c, nil
		}
		return nil, client.Usagef("none of the %d checkpoints in %s is complete; name one by its step to look at it", len(list), uri)
	}
	step, err := strconv.ParseInt(which, 10, 64)
	byStep := err == nil
	var steps []string
	var found *format.Checkpoint // of several, one that is whole
	for i := len(list) - 1; i >= 0; i-- {
		c := &list[i]
		if byStep && c.Step == step || c.Name == which || path.Base(c.Name) == which {
			if c.Whole() || c.Name == which {
				return c, nil
			}
			if found == nil {
				found = c
			}
		}
		steps = append(steps, strconv.FormatInt(c.Step, 10))
	}
	if found != nil {
		return found, nil
	}
	slices.Reverse(steps)
	if len(steps) > 10 {
		steps = append([]string{"..."}, steps[len(steps)-10:]...)
	}
	return nil, client.Usagef("there is no checkpoint %s in %s; there are %s", which, uri, strings.Join(steps, ", "))
}
