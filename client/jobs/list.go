package jobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"holdfast/client/cluster"
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

// ListOptions configure List.
type ListOptions struct {
	Everybody bool // also those of other users
}

// List returns the local jobs and, if HADOOP_CONF_DIR is set, those that the
// ResourceManager knows, newest first.
func List(ctx context.Context, o ListOptions) ([]Entry, error) {
	list, err := listLocal(ctx)
	if err != nil {
		return nil, err
	}
	if os.Getenv(conf.EnvDir) != "" {
		c, err := cluster.Connect()
		if err != nil {
			return nil, err
		}
		defer c.Close()
		more, err := listYARN(ctx, c, o.Everybody)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	sort.SliceStable(list, func(a, b int) bool { return list[a].Started.After(list[b].Started) })
	return list, nil
}

func listYARN(ctx context.Context, c *cluster.Cluster, everybody bool) ([]Entry, error) {
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
	var list []Entry
	for _, r := range reports {
		s := &proto.JobStatus{State: proto.JobState_JOB_STATE_RUNNING}
		reconcileYARN(s, &r, r.ID.String(), time.Since(r.Started))
		list = append(list, Entry{
			ID: s.Id, Name: r.Name, User: r.User, State: proto.StateWord(s.State), Where: r.Queue,
			Started: r.Started, Ended: r.Finished, Why: s.Why, over: s.State.Done(),
		})
	}
	return list, nil
}

func listLocal(ctx context.Context) ([]Entry, error) {
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
	var list []Entry
	for _, n := range names {
		if !strings.HasPrefix(n.Name(), LocalPrefix) {
			continue
		}
		j := OnMachine(home, n.Name())
		s, err := j.storedStatus(ctx)
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
