package jobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"holdfast/client"
	"holdfast/client/cluster"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

// Finder finds the job that a user names: Find or FindToChange.
type Finder func(ctx context.Context, ref string) (*Job, error)

// Find returns the job that ref means, for commands that only look: see resolve. An empty
// ref means the newest job of this user.
func Find(ctx context.Context, ref string) (*Job, error) { return find(ctx, ref, resolve) }

// FindToChange returns the job that ref names, for commands that end, change or remove
// something: see resolveExactly. A job that was not named is none.
func FindToChange(ctx context.Context, ref string) (*Job, error) {
	return find(ctx, ref, resolveExactly)
}

func find(ctx context.Context, ref string, among func(string, []*proto.JobSummary) (*proto.JobSummary, error)) (*Job, error) {
	if j, err := Open(ctx, ref); !errors.Is(err, ErrUnknownID) {
		return j, err
	}
	list, _, err := List(ctx, ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("%w; name a job of this machine by its full id, which begins with %s", err, LocalPrefix)
	}
	e, err := among(ref, list)
	if err != nil {
		return nil, err
	}
	return Open(ctx, e.Id)
}

// ErrUnknownID is returned by Open for what is no job's id, or that of a local job that is
// not there.
var ErrUnknownID = errors.New("there is no job with this id")

// Open returns the job with an id.
func Open(ctx context.Context, id string) (*Job, error) {
	if strings.HasPrefix(id, LocalPrefix) && fs.ValidPath(id) && path.Base(id) == id {
		j, err := findLocal(ctx, id)
		if errors.Is(err, fs.ErrNotExist) {
			err = client.Usagef("%w: %w", ErrUnknownID, err)
		}
		return j, err
	}
	app, err := yarn.ParseApplicationID(id)
	if err != nil || app.String() != id {
		return nil, client.Usagef("%w: %q", ErrUnknownID, id)
	}
	return findYARN(ctx, app)
}

// resolve returns the job of a list, newest first, that ref means: the one with that
// id; otherwise those with that name; otherwise those whose ids or names begin with it, if
// that is one job or all have one name. Of several, the one that is running is meant, or
// the newest if none is. It is an error if several are running.
func resolve(ref string, list []*proto.JobSummary) (*proto.JobSummary, error) {
	if ref == "" {
		if len(list) == 0 {
			return nil, client.Usagef("there is no job %s", whereLooked())
		}
		return list[0], nil
	}
	named, begin := matching(ref, list)
	if len(named) == 0 && len(begin) > 0 {
		for _, e := range begin {
			if e.Name != begin[0].Name {
				return nil, client.Usagef("%d jobs begin with %q: write more of the id or the name\n%s", len(begin), ref, describeJobs(begin))
			}
		}
		named, ref = begin, begin[0].Name
	}
	return oneNamed(ref, named, list)
}

// resolveExactly returns the job of a list, newest first, that ref names: the one with that
// id, or else among those with that name the one that resolve returns. What only begins so is
// an error that names it, and so is an empty ref.
func resolveExactly(ref string, list []*proto.JobSummary) (*proto.JobSummary, error) {
	if ref == "" {
		return nil, client.Usagef("name the job, by its id or its name: see yarn-submit list")
	}
	named, begin := matching(ref, list)
	if len(named) == 0 && len(begin) > 0 {
		var meant []string
		for _, e := range begin[:min(len(begin), 3)] {
			meant = append(meant, fmt.Sprintf("%s (%s, %s)", e.Name, e.Id, proto.StateWord(e.State)))
		}
		return nil, client.Usagef("there is no job %q; did you mean %s?", ref, strings.Join(meant, " or "))
	}
	return oneNamed(ref, named, list)
}

// matching returns the jobs that are called ref, of which one with that id is the only one,
// and those whose ids or names only begin with it.
func matching(ref string, list []*proto.JobSummary) (named, begin []*proto.JobSummary) {
	for _, e := range list {
		switch {
		case e.Id == ref:
			return []*proto.JobSummary{e}, nil
		case e.Name == ref:
			named = append(named, e)
		case strings.HasPrefix(e.Id, ref), strings.HasPrefix(e.Name, ref):
			begin = append(begin, e)
		}
	}
	return named, begin
}

// oneNamed returns the one of the jobs called ref, newest first, that has not ended, or the
// newest if all have.
func oneNamed(ref string, named, list []*proto.JobSummary) (*proto.JobSummary, error) {
	running := slices.DeleteFunc(slices.Clone(named), func(e *proto.JobSummary) bool { return e.State.Done() })
	switch {
	case len(running) == 1:
		return running[0], nil
	case len(running) > 1:
		return nil, client.Usagef("%d jobs called %q have not ended: name one by its id\n%s", len(running), ref, describeJobs(running))
	case len(named) > 0:
		return named[0], nil
	}
	var known []string
	for _, e := range list {
		known = append(known, e.Id, e.Name)
	}
	return nil, client.Usagef("there is no job %q %s: see yarn-submit list%s", ref, whereLooked(), client.DidYouMean(ref, known))
}

// describeJobs lists at most ten jobs, a line each.
func describeJobs(list []*proto.JobSummary) string {
	var lines []string
	for _, e := range list[:min(len(list), 10)] {
		lines = append(lines, fmt.Sprintf("  %s  %s  %s, started %s, %s", e.Id, e.Name, proto.StateWord(e.State), time.UnixMilli(e.StartedUnixMs).Format(time.DateTime), e.Where))
	}
	if n := len(list) - len(lines); n > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", n))
	}
	return strings.Join(lines, "\n")
}

// whereLooked says which jobs List has seen.
func whereLooked() string {
	if os.Getenv(conf.EnvDir) != "" {
		return "on this machine or on the cluster"
	}
	return fmt.Sprintf("on this machine (for jobs on a cluster, set %s)", conf.EnvDir)
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

func findYARN(ctx context.Context, id yarn.ApplicationID) (*Job, error) {
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

// awayTimeout bounds the search for a job's directory while the ResourceManager does not
// answer: HDFS, which retries for longer, is then likely to be away, too.
const awayTimeout = cluster.Timeout / 3

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
	looking := ctx
	if away != nil {
		var cancelLook context.CancelFunc
		looking, cancelLook = context.WithTimeout(ctx, awayTimeout)
		defer cancelLook()
	}
	uri := c.Home(owner)
	home, err := c.OpenExisting(looking, uri)
	j := OnCluster(c, id, home)
	if err == nil {
		if _, err = home.Stat(looking, j.dir); err != nil {
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
