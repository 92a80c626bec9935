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

// Find finds a job by its id, or by its name: see meant.
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

// findApplication opens the directory of a job, which is in the home of its user. Without
// a ResourceManager that knows it, or that answers, the present user's home is
// tried: the job's own master may well answer.
func findApplication(ctx context.Context, c *cluster.Cluster, id yarn.ApplicationID) (*Job, error) {
	asking, cancel := context.WithTimeout(ctx, 2*cluster.Patience)
	defer cancel()
	owner := c.User
	var away error // the ResourceManager is
	r, err := c.RM.Report(asking, id)
	switch {
	case err == nil && r.Type != yarn.ApplicationType:
		return nil, client.Usagef("%s is an application of type %s, not a job of yarn-submit", id, r.Type)
	case err == nil:
		owner = r.User
	case !yarn.IsUnknownApplication(err):
		if away = cluster.RMError(err); client.ExitCode(away) != client.ExitUnreachable {
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
			j.asked = time.Now() // it need not be waited for once more
		}
		return j, nil
	case away != nil:
		return nil, away
	case errors.Is(err, fs.ErrNotExist):
		return nil, client.Usagef("there is no job %s: its directory %s/%s is missing; see yarn-submit list", id, uri, j.dir)
	case errors.Is(err, fs.ErrPermission) && owner != c.User:
		j.home = &foreign{uri: uri, err: fmt.Errorf("the job %s is %s's, and only its user may see its directory: %w", id, owner, err)}
		return j, nil
	}
	return nil, fmt.Errorf("open the directory of %s: %w", id, err)
}
