package jobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/client"
	"holdfast/client/cluster"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

// ListOptions select jobs. The zero value selects all jobs of this user.
type ListOptions struct {
	Everybody bool     // also the cluster's jobs of other users
	States    []string // words of states; empty: any
	Name      string   // pattern of names, as for path.Match; empty: any
	Text      string   // in the id, the name or the user's name, in any case; empty: any
	Limit     int      // the newest so many; 0: all
	// Kept selects also this user's jobs of which the ResourceManager knows nothing any
	// longer, by their directories.
	Kept bool
	// History are URIs of directories, each with directories of ended jobs, of any user.
	History []string
	Memory  *Memory // of lists made before; nil: none
	Steps   bool    // read the steps of jobs on the cluster, and what they wait for, from their directories
}

// List returns the local jobs and, if HADOOP_CONF_DIR is set, those that the
// ResourceManager knows, newest first. omitted is how many more Limit has left out. With
// an error, the list has those that could be found.
func List(ctx context.Context, o ListOptions) (list []*proto.JobSummary, omitted int, err error) {
	if err := o.check(); err != nil {
		return nil, 0, err
	}
	if list, err = listLocal(ctx); err != nil {
		return nil, 0, err
	}
	var problems error
	var c *cluster.Cluster
	var onYARN map[string]bool
	if os.Getenv(conf.EnvDir) != "" {
		var more []*proto.JobSummary
		if c, err = cluster.Connect(); err == nil {
			defer c.Close()
			more, err = listYARN(ctx, c, o.Everybody)
		}
		onYARN, list = ids(more), append(list, more...)
		if err == nil && o.Kept {
			list, err = addKept(ctx, c, list, o.Memory)
		}
		problems = errors.Join(problems, err)
	}
	for _, uri := range o.History {
		list, err = addHistory(ctx, uri, list, o.Memory)
		problems = errors.Join(problems, err)
	}
	list = slices.DeleteFunc(list, func(e *proto.JobSummary) bool { return !o.selects(e) })
	sort.SliceStable(list, func(a, b int) bool { return list[a].StartedUnixMs > list[b].StartedUnixMs })
	if o.Limit > 0 && len(list) > o.Limit {
		omitted = len(list) - o.Limit
		list = list[:o.Limit]
	}
	if c != nil && problems == nil && o.Steps {
		readSteps(ctx, c, slices.DeleteFunc(slices.Clone(list), func(e *proto.JobSummary) bool { return e.User != c.User || !onYARN[e.Id] }), o.Memory)
	}
	return list, omitted, problems
}

// addKept adds this user's jobs of which the ResourceManager knows nothing any longer to a list
// that has the others.
func addKept(ctx context.Context, c *cluster.Cluster, list []*proto.JobSummary, memory *Memory) ([]*proto.JobSummary, error) {
	home, err := c.OpenExisting(ctx, c.Home(c.User))
	if errors.Is(err, fs.ErrNotExist) {
		return list, nil
	}
	if err != nil {
		return list, err
	}
	defer home.Close()
	more, err := listKept(ctx, home, Root, ids(list), memory)
	return append(list, more...), err
}

// addHistory adds the jobs that have directories in one that a URI names.
func addHistory(ctx context.Context, uri string, list []*proto.JobSummary, memory *Memory) ([]*proto.JobSummary, error) {
	s, err := cluster.OpenDirectory(ctx, uri)
	if err != nil {
		return list, err
	}
	defer s.Close()
	more, err := listKept(ctx, s, ".", ids(list), memory)
	for _, e := range more {
		e.Where = uri
	}
	return append(list, more...), err
}

// ids returns the ids of the jobs in a list.
func ids(list []*proto.JobSummary) map[string]bool {
	known := make(map[string]bool, len(list))
	for _, e := range list {
		known[e.Id] = true
	}
	return known
}

// StateWords are the states of jobs, for the option States.
func StateWords() []string {
	var words []string
	for n := range proto.JobState(len(proto.JobState_name)) {
		if n != proto.JobState_JOB_STATE_UNSPECIFIED {
			words = append(words, proto.StateWord(n))
		}
	}
	return words
}

func (o ListOptions) check() error {
	words := StateWords()
	for _, s := range o.States {
		if !slices.Contains(words, s) {
			return client.Usagef("no job is ever %q: the states are %s%s", s, strings.Join(words, ", "), client.DidYouMean(s, words))
		}
	}
	if _, err := path.Match(o.Name, ""); err != nil {
		return client.Usagef("%q is no pattern of names: write it as a shell's, as in 'train-*'", o.Name)
	}
	return nil
}

func (o ListOptions) selects(e *proto.JobSummary) bool {
	if len(o.States) > 0 && !slices.Contains(o.States, proto.StateWord(e.State)) {
		return false
	}
	if text := strings.ToLower(o.Text); !slices.ContainsFunc([]string{e.Id, e.Name, e.User}, func(of string) bool { return strings.Contains(strings.ToLower(of), text) }) {
		return false
	}
	matches, _ := path.Match(o.Name, e.Name) // check has tried the pattern
	return o.Name == "" || matches
}

func listYARN(ctx context.Context, c *cluster.Cluster, everybody bool) ([]*proto.JobSummary, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*cluster.Timeout)
	defer cancel()
	filter := yarn.Filter{Types: []string{yarn.ApplicationType}}
	if !everybody {
		filter.Users = []string{c.User}
	}
	reports, err := c.RM.List(ctx, filter)
	if err != nil {
		return nil, cluster.YARNError(err)
	}
	var list []*proto.JobSummary
	for _, r := range reports {
		s := &proto.JobStatus{State: proto.JobState_JOB_STATE_RUNNING}
		reconcileYARN(s, &r, r.ID.String(), time.Since(r.Started))
		if s.State == proto.JobState_JOB_STATE_RUNNING {
			s.Why = "" // what it waits for, its master knows
		}
		e := &proto.JobSummary{
			Id: s.Id, Name: r.Name, User: r.User, State: s.State, Where: r.Queue, Why: s.Why, StartedUnixMs: r.Started.UnixMilli(),
		}
		if !r.Finished.IsZero() {
			e.EndedUnixMs = r.Finished.UnixMilli()
		}
		list = append(list, e)
	}
	return list, nil
}

// Limits on reading the steps of a list's jobs: they only decorate it.
const (
	stepsTimeout = 3 * time.Second
	stepsAtOnce  = 8
	// stepsSettled is how long after its end nothing is written any longer of a job that was lost
	// before it had written that it has ended.
	stepsSettled = 10 * time.Minute
)

// readSteps sets the steps of jobs of this user on the cluster, and what running ones wait for,
// as far as that can be read from the jobs' directories within stepsTimeout.
func readSteps(ctx context.Context, c *cluster.Cluster, list []*proto.JobSummary, memory *Memory) {
	ctx, cancel := context.WithTimeout(ctx, stepsTimeout)
	defer cancel()
	home, err := c.OpenExisting(ctx, c.Home(c.User))
	if err != nil {
		return
	}
	defer home.Close()
	stepsIn(ctx, home, list, memory)
}

// stepsIn is readSteps, with the store that has the jobs' directories.
func stepsIn(ctx context.Context, home store.Store, list []*proto.JobSummary, memory *Memory) {
	var g errgroup.Group
	g.SetLimit(stepsAtOnce)
	for _, e := range list {
		g.Go(func() error {
			j, ended := inHistory(home, Root, e.Id), time.UnixMilli(e.EndedUnixMs)
			file := j.URI() + "/" + proto.StatusFile
			if r, known := memory.recall(file, ended); known && e.State.Done() {
				e.Step = r.summary.Step
				return nil
			}
			s, err := j.readStatus(ctx)
			if err == nil {
				e.Step = s.Step
				if e.State == proto.JobState_JOB_STATE_RUNNING {
					e.Why = s.Why
				}
			}
			if e.State.Done() && (err == nil || errors.Is(err, fs.ErrNotExist)) && (s.GetState().Done() || time.Since(ended) > stepsSettled) {
				memory.remember(file, remembered{ended, &proto.JobSummary{Step: e.Step}})
			}
			return nil
		})
	}
	_ = g.Wait() // none returns an error
}

func listLocal(ctx context.Context) ([]*proto.JobSummary, error) {
	dir, err := LocalHome()
	if err != nil {
		return nil, err
	}
	names, err := os.ReadDir(filepath.Join(dir, Root))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the local jobs: %w", err)
	}
	home, err := OpenLocalHome(ctx)
	if err != nil {
		return nil, err
	}
	defer home.Close()
	var list []*proto.JobSummary
	for _, n := range names {
		if !strings.HasPrefix(n.Name(), LocalPrefix) {
			continue
		}
		j := OnMachine(home, n.Name())
		s, err := j.storedStatus(ctx)
		if err != nil {
			continue // being made, or being removed
		}
		e := &proto.JobSummary{
			Id: j.ID, Name: s.Name, User: s.User, State: s.State, Where: "local", Why: s.Why, Step: s.Step,
			StartedUnixMs: s.StartedUnixMs, EndedUnixMs: s.EndedUnixMs,
		}
		if info, err := n.Info(); err == nil && s.StartedUnixMs == 0 {
			e.StartedUnixMs = info.ModTime().UnixMilli()
		}
		list = append(list, e)
	}
	return list, nil
}
