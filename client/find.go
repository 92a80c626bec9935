package client

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

// Entry is a job in a list.
type Entry struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	User    string    `json:"user"`
	State   string    `json:"state"`
	Where   string    `json:"where"` // local, or the queue's name
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
	Why     string    `json:"why,omitempty"`

	over bool // it has ended, however
}

// ListOptions say which jobs List returns.
type ListOptions struct {
	Everybody bool // also those of other users
}

// List returns the local jobs and, where HADOOP_CONF_DIR is set, those that the
// ResourceManager knows, the newest first.
func List(ctx context.Context, o ListOptions) ([]Entry, error) {
	list, err := listLocal(ctx)
	if err != nil {
		return nil, err
	}
	if os.Getenv(conf.EnvDir) != "" {
		c, err := Connect()
		if err != nil {
			return nil, err
		}
		defer c.Close()
		more, err := c.list(ctx, o.Everybody)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	sort.SliceStable(list, func(a, b int) bool { return list[a].Started.After(list[b].Started) })
	return list, nil
}

func (c *Cluster) list(ctx context.Context, everybody bool) ([]Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	filter := yarn.Filter{Types: []string{yarn.ApplicationType}}
	if !everybody {
		filter.Users = []string{c.user}
	}
	reports, err := c.rm.List(ctx, filter)
	if err != nil {
		return nil, rmError(err)
	}
	var list []Entry
	for _, r := range reports {
		s := &proto.JobStatus{State: proto.JobState_JOB_STATE_RUNNING}
		settleYARN(s, &r, r.ID.String(), time.Since(r.Started))
		list = append(list, Entry{
			ID: s.Id, Name: r.Name, User: r.User, State: proto.StateWord(s.State), Where: r.Queue,
			Started: r.Started, Ended: r.Finished, Why: s.Why, over: s.State.Done(),
		})
	}
	return list, nil
}

func listLocal(ctx context.Context) ([]Entry, error) {
	dir, err := localHome()
	if err != nil {
		return nil, err
	}
	names, err := os.ReadDir(filepath.Join(dir, jobsDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the local jobs: %w", err)
	}
	home, err := openLocalHome(ctx)
	if err != nil {
		return nil, err
	}
	defer home.Close()
	var list []Entry
	for _, n := range names {
		if !strings.HasPrefix(n.Name(), localPrefix) {
			continue
		}
		j := &Job{ID: n.Name(), home: home, dir: path.Join(jobsDir, n.Name())}
		s, err := j.settled(ctx)
		if err != nil {
			continue // being made, or being removed
		}
		e := Entry{ID: j.ID, Name: s.Name, User: s.User, State: proto.StateWord(s.State), Where: "local", Why: s.Why, Started: time.UnixMilli(s.StartedUnixMs), over: s.State.Done()}
		if info, err := n.Info(); err == nil && s.StartedUnixMs == 0 {
			e.Started = info.ModTime()
		}
		if s.EndedUnixMs != 0 {
			e.Ended = time.UnixMilli(s.EndedUnixMs)
		}
		list = append(list, e)
	}
	return list, nil
}

// Find finds a job by its id, or by its name: see meant.
func Find(ctx context.Context, ref string) (*Job, error) {
	switch {
	case strings.HasPrefix(ref, localPrefix) && fs.ValidPath(ref) && path.Base(ref) == ref:
		if j, err := findLocal(ctx, ref); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return j, err
		}
	case strings.HasPrefix(ref, "application_"):
		return findYARN(ctx, ref)
	}
	list, err := List(ctx, ListOptions{})
	if err != nil {
		return nil, err
	}
	e, err := meant(ref, list)
	if err != nil {
		return nil, err
	}
	if e.Where == "local" {
		return findLocal(ctx, e.ID)
	}
	return findYARN(ctx, e.ID)
}

// meant decides which job of a list, whose newest are first, a user means by
// ref: the one of that id; else of those of that name the one that runs, or the
// newest if none does. Of several that run none is guessed at.
func meant(ref string, list []Entry) (Entry, error) {
	var running, ended []Entry
	var known []string
	for _, e := range list {
		switch {
		case e.ID == ref:
			return e, nil
		case e.Name == ref && e.over:
			ended = append(ended, e)
		case e.Name == ref:
			running = append(running, e)
		}
		known = append(known, e.ID, e.Name)
	}
	switch {
	case len(running) == 1:
		return running[0], nil
	case len(running) > 1:
		lines := make([]string, len(running))
		for i, e := range running {
			lines[i] = fmt.Sprintf("  %s  %s since %s, %s", e.ID, e.State, e.Started.Format(time.DateTime), e.Where)
		}
		return Entry{}, Usagef("%d jobs called %q have not ended: name one by its id\n%s", len(running), ref, strings.Join(lines, "\n"))
	case len(ended) > 0:
		return ended[0], nil
	}
	where := "on this machine"
	if os.Getenv(conf.EnvDir) != "" {
		where += " or on the cluster"
	} else {
		where += fmt.Sprintf(" (for jobs on a cluster, set %s)", conf.EnvDir)
	}
	return Entry{}, Usagef("there is no job %q %s: see yarn-submit list%s", ref, where, DidYouMean(ref, known))
}

func findLocal(ctx context.Context, id string) (*Job, error) {
	home, err := openLocalHome(ctx)
	if err != nil {
		return nil, err
	}
	j := &Job{ID: id, home: home, dir: path.Join(jobsDir, id)}
	if _, err := home.Stat(ctx, j.dir); err != nil {
		home.Close()
		return nil, fmt.Errorf("find the job %s: %w", id, err)
	}
	return j, nil
}

func findYARN(ctx context.Context, ref string) (*Job, error) {
	id, err := yarn.ParseApplicationID(ref)
	if err != nil {
		return nil, Usagef("%w", err)
	}
	c, err := Connect()
	if err != nil {
		return nil, err
	}
	j, err := c.find(ctx, id)
	if err != nil {
		c.Close()
	}
	return j, err
}

// find opens the directory of a job, which is in the home of its user. Without
// a ResourceManager that knows it, or that answers, the present user's home is
// tried: the job's own master may well answer.
func (c *Cluster) find(ctx context.Context, id yarn.ApplicationID) (*Job, error) {
	asking, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	owner := c.user
	var away error // the ResourceManager is
	r, err := c.rm.Report(asking, id)
	switch {
	case err == nil && r.Type != yarn.ApplicationType:
		return nil, Usagef("%s is an application of type %s, not a job of yarn-submit", id, r.Type)
	case err == nil:
		owner = r.User
	case !yarn.IsUnknownApplication(err):
		if away = rmError(err); ExitCode(away) != ExitUnreachable {
			return nil, away
		}
	}
	uri := c.home(owner)
	home, err := c.openWith(ctx, uri, store.OpenExisting)
	j := &Job{ID: id.String(), cluster: c, app: id, home: home, dir: path.Join(jobsDir, id.String())}
	if err == nil {
		if _, err = home.Stat(ctx, j.dir); err != nil {
			home.Close()
		}
	}
	switch {
	case err == nil:
		if away != nil {
			j.asked = time.Now() // it need not be waited for once more
		}
		return j, nil
	case away != nil:
		return nil, away
	case errors.Is(err, fs.ErrNotExist):
		return nil, Usagef("there is no job %s: its directory %s/%s is missing; see yarn-submit list", id, uri, j.dir)
	case errors.Is(err, fs.ErrPermission) && owner != c.user:
		j.home = &foreign{uri: uri, err: fmt.Errorf("the job %s is %s's, and only its user may see its directory: %w", id, owner, err)}
		return j, nil
	}
	return nil, fmt.Errorf("open the directory of %s: %w", id, err)
}
