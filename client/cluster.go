package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/hdfs/zone"
	"holdfast/internal/hadoop/kerberos"
	"holdfast/internal/hadoop/login"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

// patience is how long a command waits for a cluster that does not answer.
const patience = 10 * time.Second

// Cluster is the Hadoop cluster that HADOOP_CONF_DIR describes.
type Cluster struct {
	conf *conf.Conf
	rm   *yarn.Client
	user string
	// Of the one who submits; empty: the tickets of kinit, or no security.
	principal, keytab string
}

// Connect reads the Hadoop configuration. Nothing is asked of the cluster yet.
func Connect() (*Cluster, error) { return ConnectAs("", "") }

// ConnectAs is Connect as a Kerberos principal whose key is in a keytab. Where
// both are empty it is Connect; on a cluster without Kerberos they do not matter.
func ConnectAs(principal, keytab string) (*Cluster, error) {
	c, err := conf.Load("")
	if err != nil {
		return nil, Usagef("%w; without Hadoop, run jobs on this machine with --local", err)
	}
	if _, err := c.NameNodes(""); err != nil {
		return nil, Usagef("the Hadoop configuration: %w", err)
	}
	user := rpc.CurrentUser()
	if c.Secure() {
		if user, err = logIn(c, principal, keytab); err != nil {
			return nil, err
		}
	} else {
		principal, keytab = "", ""
	}
	rm, err := yarn.NewClient(c, yarn.Options{User: user, Retry: rpc.Retry{Limit: patience / 2}, Timeout: patience})
	if err != nil {
		return nil, err
	}
	return &Cluster{conf: c, rm: rm, user: user, principal: principal, keytab: keytab}, nil
}

// logIn makes this process somebody on a cluster with Kerberos, and returns the
// user's name there.
func logIn(c *conf.Conf, principal, keytab string) (string, error) {
	if keytab != "" {
		u, err := kerberos.FromKeytab(principal, keytab)
		if err != nil {
			return "", err
		}
		login.As(u)
	}
	user, err := login.Name(c)
	if err != nil {
		return "", fmt.Errorf("the cluster demands Kerberos: %w", err)
	}
	return user, nil
}

// Warnings are what is odd about the configuration.
func (c *Cluster) Warnings() []string { return c.conf.Warnings() }

// Close lets go of connections.
func (c *Cluster) Close() { _ = c.rm.Close() }

// home is Holdfast's directory in the home of a user.
func (c *Cluster) home(user string) string {
	prefix := c.conf.Get("dfs.user.home.dir.prefix")
	if prefix == "" {
		prefix = "/user"
	}
	return c.conf.DefaultFS() + strings.TrimSuffix(prefix, "/") + "/" + user + "/" + proto.HomeDir
}

// openHome opens Holdfast's directory of the present user, and makes it if it
// is missing.
func (c *Cluster) openHome(ctx context.Context) (store.Store, error) {
	uri := c.home(c.user)
	s, err := c.open(ctx, uri)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("the directory %s, where Holdfast keeps jobs and its binary, cannot be made: %w; have an HDFS administrator make the home directory %s with you (%s) as its owner",
			uri, err, strings.TrimSuffix(uri, "/"+proto.HomeDir), c.user)
	}
	if err == nil {
		if err = keepPrivate(ctx, s); err != nil {
			s.Close()
			return nil, fmt.Errorf("the directory %s, where Holdfast keeps jobs and their keys, cannot be closed to others: %w", uri, err)
		}
	}
	return s, err
}

// keepPrivate closes a directory to others, whoever has made it.
func keepPrivate(ctx context.Context, s store.Store) error {
	info, err := s.Stat(ctx, ".")
	if err == nil && info.Mode.Perm()&0o077 != 0 {
		err = s.Chmod(ctx, ".", 0o700)
	}
	return err
}

// open opens a directory on HDFS, or says within seconds that HDFS does not answer.
func (c *Cluster) open(ctx context.Context, uri string) (store.Store, error) {
	return c.openWith(ctx, uri, store.Open)
}

type opener func(context.Context, string, *conf.Conf) (store.Store, error)

func (c *Cluster) openWith(ctx context.Context, uri string, open opener) (store.Store, error) {
	ctx, cancel := context.WithTimeout(ctx, patience*3/2)
	defer cancel()
	s, err := open(ctx, uri, c.conf)
	if refused := refusal("HDFS", err); refused != nil {
		return nil, refused
	}
	if err != nil && ExitCode(err) == ExitUnreachable {
		return nil, unreachablef("HDFS does not answer: %w; check that the NameNode runs, and fs.defaultFS in the directory that %s names", err, conf.EnvDir)
	}
	return s, err
}

// rmError says what the ResourceManager's silence means to a user.
func rmError(err error) error {
	if refused := refusal("YARN", err); refused != nil {
		return refused
	}
	if yarn.IsNotAllowed(err) {
		return &coded{ExitDenied, fmt.Errorf("%w: the job's user can name others with --modify-acl when it is started", err)}
	}
	if err == nil || ExitCode(err) != ExitUnreachable {
		return err
	}
	return unreachablef("YARN does not answer: %w (the directory that %s names says where the ResourceManager is)", err, conf.EnvDir)
}

// submitError is rmError, of a submission to a queue.
func (c *Cluster) submitError(queue string, err error) error {
	if yarn.IsNotAllowed(err) {
		return &coded{ExitDenied, fmt.Errorf("the queue %q is not for %s: name another with --queue, or have %[2]s added to its acl_submit_applications (%[3]w)",
			cmp.Or(queue, "default"), c.user, err)}
	}
	return rmError(err)
}

// Check makes those of Submit's checks for which nothing need be made on the
// cluster: of the queue, of what the roles ask for, and that no file stands where
// a checkpoint directory is to be.
func (c *Cluster) Check(ctx context.Context, spec *proto.JobSpec) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		_, err := c.checkYARN(ctx, spec) // an id that is not used is none the worse
		return err
	})
	for _, cp := range spec.Checkpoints {
		if !strings.HasPrefix(cp.Uri, "hdfs:") {
			continue
		}
		g.Go(func() error {
			if err := c.lookAt(ctx, cp.Uri); err != nil {
				return fmt.Errorf("the checkpoint directory %s cannot be used: %w", cp.Uri, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// lookAt opens a directory on HDFS, or the nearest above it of one that is yet to
// be made.
func (c *Cluster) lookAt(ctx context.Context, uri string) error {
	u, err := url.Parse(uri)
	if err != nil {
		return err
	}
	for {
		s, err := c.openWith(ctx, u.String(), store.OpenExisting)
		if err == nil {
			return s.Close()
		}
		if above := path.Dir(u.Path); errors.Is(err, fs.ErrNotExist) && above != u.Path {
			u.Path = above
			continue
		}
		return err
	}
}

// checkYARN makes sure that the queue takes the job and that each role fits a
// node, and gets an id for the job.
func (c *Cluster) checkYARN(ctx context.Context, spec *proto.JobSpec) (yarn.ApplicationID, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	checks := checksOf(spec)
	var id yarn.ApplicationID
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		got, maximum, err := c.rm.NewApplication(ctx)
		if err != nil {
			return rmError(err)
		}
		id = got
		return c.usage(checks.each(func(d []yarn.Demand) error { return yarn.CheckDemands(maximum, d) }))
	})
	g.Go(func() error { return c.usage(c.rm.CheckQueue(ctx, spec.Queue)) })
	g.Go(func() error {
		nodes, err := c.rm.Nodes(ctx)
		if err != nil {
			return rmError(err)
		}
		return c.usage(checks.each(func(d []yarn.Demand) error { return fitNodes(nodes, d) }))
	})
	return id, g.Wait()
}

// usage marks what a user asked too much of as a matter of usage.
func (c *Cluster) usage(err error) error {
	if err == nil || ExitCode(err) != ExitFailed || rpc.RemoteClass(err) != "" {
		return rmError(err)
	}
	return &coded{ExitUsage, err}
}

// checks are what a job asks for at first, and what it may ask for later.
type checks []check

type check struct {
	what    string // to be said before what is wrong
	demands []yarn.Demand
}

func checksOf(spec *proto.JobSpec) checks {
	var first, grown []yarn.Demand
	var spare yarn.Resource
	for _, r := range spec.Roles {
		d := yarn.Demand{Role: r.Name, Count: int(r.Count), Resource: yarn.Resource{MemoryMB: r.MemoryMb, VCores: r.Vcores, GPUs: r.Gpus}}
		first = append(first, d)
		spare = yarn.Resource{MemoryMB: max(spare.MemoryMB, r.MemoryMb), VCores: max(spare.VCores, r.Vcores), GPUs: max(spare.GPUs, r.Gpus)}
		d.Resource.MemoryMB = max(r.MemoryMb, r.MemoryMaxMb)
		grown = append(grown, d)
	}
	list := checks{{"", first}, {"a task that has grown as far as its role's memory-max lets it cannot be placed: ", grown}}
	if spec.Spares > 0 {
		list = append(list, check{
			"a spare container can take any task, so it is as large as all roles need (--spares 0 does without): ",
			[]yarn.Demand{{Role: "spare", Count: int(spec.Spares), Resource: spare}},
		})
	}
	return list
}

// each returns what is wrong first.
func (c checks) each(check func([]yarn.Demand) error) error {
	for _, k := range c {
		if err := check(k.demands); err != nil {
			return fmt.Errorf("%s%w", k.what, err)
		}
	}
	return nil
}

// fitNodes says which role is larger than every node. Nodes that do not run now
// do not count; without any running node there is nothing to compare with, and
// the job waits.
func fitNodes(nodes []yarn.Node, demands []yarn.Demand) error {
	var running []yarn.Resource
	for _, n := range nodes {
		if n.Running() {
			running = append(running, n.Capability)
		}
	}
	if len(running) == 0 {
		return nil
	}
	for _, d := range demands {
		fits := false
		largest := running[0]
		for _, r := range running {
			fits = fits || d.Resource.Fits(r)
			if r.MemoryMB > largest.MemoryMB {
				largest = r
			}
		}
		if !fits {
			return fmt.Errorf("the role %q asks for %s a task, and no node of the cluster has that much (the largest has %s): ask for less with --%s-memory, --%s-vcores or --%s-gpus",
				d.Role, d.Resource, largest, d.Role, d.Role, d.Role)
		}
	}
	return nil
}

// checkCheckpoints makes the checkpoint directories on HDFS and makes sure that
// the user may write there.
func (c *Cluster) checkCheckpoints(ctx context.Context, spec *proto.JobSpec, tell Tell) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, cp := range spec.Checkpoints {
		if !strings.HasPrefix(cp.Uri, "hdfs:") {
			continue // a directory of the nodes: only they can tell
		}
		g.Go(func() error {
			s, err := c.open(ctx, cp.Uri)
			if err == nil {
				defer s.Close()
				err = writable(ctx, s)
			}
			if err == nil {
				return alone(ctx, s, cp, c.over, tell)
			}
			if errors.Is(err, fs.ErrPermission) && !zone.IsNoKey(err) {
				return fmt.Errorf("the checkpoint directory %s is not writable for %s: %w; have its owner or permissions changed (hdfs dfs -chown, -chmod), or name another with --checkpoint", cp.Uri, c.user, err)
			}
			if err != nil {
				return fmt.Errorf("the checkpoint directory %s cannot be used: %w", cp.Uri, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// writable tries to begin a file, and leaves none.
func writable(ctx context.Context, s store.Store) error {
	w, err := s.Create(ctx, ".holdfast-check", 0o600)
	if err != nil {
		return err
	}
	return w.Abort()
}
