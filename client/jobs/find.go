package jobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"holdfast/client"
	"holdfast/client/cluster"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/yarn"
)

// Find returns the job with an id or a name: see resolve.
func Find(ctx context.Context, ref string) (*Job, error) {
	switch {
	case strings.HasPrefix(ref, LocalPrefix) && fs.ValidPath(ref) && path.Base(ref) == ref:
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
	e, err := resolve(ref, list)
	if err != nil {
		return nil, err
	}
	if e.Where == "local" {
		return findLocal(ctx, e.ID)
	}
	return findYARN(ctx, e.ID)
}

// resolve returns the job of a list, newest first, that ref means: the one with that
// id; otherwise, of those with that name, the one that is running, or the newest if
// none is. It is an error if several are running.
func resolve(ref string, list []Entry) (Entry, error) {
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
		return Entry{}, client.Usagef("%d jobs called %q have not ended: name one by its id\n%s", len(running), ref, strings.Join(lines, "\n"))
	case len(ended) > 0:
		return ended[0], nil
	}
	where := "on this machine"
	if os.Getenv(conf.EnvDir) != "" {
		where += " or on the cluster"
	} else {
		where += fmt.Sprintf(" (for jobs on a cluster, set %s)", conf.EnvDir)
	}
	return Entry{}, client.Usagef("there is no job %q %s: see yarn-submit list%s", ref, where, client.DidYouMean(ref, known))
}

func findLocal(ctx context.Context, id string) (*Job, error) {
	home, err := OpenLocalHome(ctx)
	if err != nil {
		return nil, err
	}
	j := OnMachine(home, id)
	if _, err := home.Stat(ctx, j.dir); err != nil {
		home.Close()
		return nil, fmt.Errorf("find the job %s: %w", id, err)
	}
	return j, nil
}

func findYARN(ctx context.Context, ref string) (*Job, error) {
	id, err := yarn.ParseApplicationID(ref)
	if err != nil {
		return nil, client.Usagef("%w", err)
	}
	c, err := cluster.Connect()
	if err != nil {
		return nil, err
	}
	j, err := findApplication(ctx, c, id)
	if err != nil {
		c.Close()
	}
	return j, err
}

// findApplication opens the directory of a job, which is in its user's home. If the
// ResourceManager does not know the application, or does not answer, it tries the
// current user's home: the application master itself may answer.
func findApplication(ctx context.Context, c *cluster.Cluster, id yarn.ApplicationID) (*Job, error) {
	querying, cancel := context.WithTimeout(ctx, 2*cluster.Timeout)
	defer cancel()
	owner := c.User
	var away error // the ResourceManager is
	r, err := c.RM.Report(querying, id)
	switch {
	case err == nil && r.Type != yarn.ApplicationType:
		return nil, client.Usagef("%s is an application of type %s, not a job of yarn-submit", id, r.Type)
	case err == nil:
		owner = r.User
	case !yarn.IsUnknownApplication(err):
		if away = cluster.YARNError(err); client.ExitCode(away) != client.ExitUnreachable {
			return nil, away
		}
	}
	uri := c.Home(owner)
	home, err := c.OpenExisting(ctx, uri)
	j := OnCluster(c, id, home)
	if err == nil {
		if _, err = home.Stat(ctx, j.dir); err != nil {
			home.Close()
		}
	}
	switch {
	case err == nil:
		if away != nil {
			j.lastQueried = time.Now() // it need not be waited for once more
		}
		return j, nil
	case away != nil:
		return nil, away
	case errors.Is(err, fs.ErrNotExist):
		return nil, client.Usagef("there is no job %s: its directory %s/%s is missing; see yarn-submit list", id, uri, j.dir)
	case errors.Is(err, fs.ErrPermission) && owner != c.User:
		j.home = &deniedStore{uri: uri, err: fmt.Errorf("the job %s is %s's, and only its user may see its directory: %w", id, owner, err)}
		return j, nil
	}
	return nil, fmt.Errorf("open the directory of %s: %w", id, err)
}
