package submit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"strings"

	"golang.org/x/sync/errgroup"

	"holdfast/client"
	"holdfast/client/cluster"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/hdfs/zone"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

// queueError is cluster.YARNError for a submission to a queue.
func queueError(c *cluster.Cluster, queue string, err error) error {
	if yarn.IsNotAllowed(err) {
		queue = cmp.Or(queue, "default")
		// "User U does not have permission to submit A to queue Q" (RMAppManager) tells the queue
		// into which the job was put.
		if m := refusedBy.FindStringSubmatch(err.Error()); m != nil && !yarn.SameQueue(m[1], queue) {
			queue = m[1]
		}
		return client.WithExitCode(client.ExitDenied, fmt.Errorf("the queue %q is not for %s: name another with --queue, or have %[2]s added to its acl_submit_applications (%[3]w)",
			queue, c.User, err))
	}
	return cluster.YARNError(err)
}

var refusedBy = regexp.MustCompile(`to queue ([^\s:,;]+)`)

// Check runs those checks of ToYARN that create nothing on HDFS: the queue, the
// resources of the roles, and that checkpoint directories are reachable and are not
// files.
func Check(ctx context.Context, c *cluster.Cluster, spec *proto.JobSpec) error {
	if err := resolveCheckpoints(c.Conf, spec); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		_, err := NewApplication(ctx, c, spec) // an id that is not used is none the worse
		return err
	})
	for _, cp := range spec.Checkpoints {
		if !strings.HasPrefix(cp.Uri, "hdfs:") {
			continue
		}
		g.Go(func() error {
			if err := checkReachable(ctx, c, cp.Uri); err != nil {
				return fmt.Errorf("the checkpoint directory %s cannot be used: %w", cp.Uri, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// resolveCheckpoints has checkpoint directories that are named by viewfs:// named by where they
// are: what runs in containers knows no mount tables.
func resolveCheckpoints(c *conf.Conf, spec *proto.JobSpec) error {
	for _, cp := range spec.Checkpoints {
		uri, err := c.Resolve(cp.Uri)
		if err != nil {
			return client.Usagef("the checkpoints of %s go to %w", cp.Path, err)
		}
		cp.Uri = uri
	}
	return nil
}

// checkReachable opens a directory on HDFS, or its nearest existing ancestor.
func checkReachable(ctx context.Context, c *cluster.Cluster, uri string) error {
	u, err := url.Parse(uri)
	if err != nil {
		return err
	}
	for {
		s, err := c.OpenExisting(ctx, u.String())
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

// NewApplication checks that the queue accepts the job and that each role fits a node, and
// returns a new application id. It converts the roles' amounts of resources into the units in
// which the cluster counts them. Where only the queue that the job names speaks against it,
// YARN is asked whether it puts the job into another.
func NewApplication(ctx context.Context, c *cluster.Cluster, spec *proto.JobSpec) (yarn.ApplicationID, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*cluster.Timeout)
	defer cancel()
	var id yarn.ApplicationID
	var maximum yarn.Resource
	var p places
	named := cmp.Or(spec.Queue, "default")
	g, asking := errgroup.WithContext(ctx)
	g.Go(func() (err error) { id, maximum, err = c.RM.NewApplication(asking); return cluster.YARNError(err) })
	g.Go(func() (err error) { p, err = lookUpPlaces(asking, c.RM, spec, named); return cluster.YARNError(err) })
	if err := g.Wait(); err != nil {
		return id, err
	}
	if err := p.resolveResources(spec); err != nil {
		return id, usage(err)
	}
	if err := checksOf(spec).each(func(d []yarn.Demand) error { return yarn.CheckDemands(maximum, d) }); err != nil {
		return id, usage(err)
	}
	err := p.judge(spec)
	if err == nil || p.ofAnyQueue().judge(spec) != nil {
		return id, usage(err)
	}
	queue, refused := c.RM.QueueFor(ctx, spec.Queue, spec.Name)
	if yarn.IsNotAllowed(refused) {
		return id, queueError(c, spec.Queue, refused)
	}
	if refused != nil || yarn.SameQueue(queue, named) {
		return id, usage(err)
	}
	return id, judgePlaced(ctx, c, spec, queue)
}

// judgePlaced checks the job with the queue into which YARN puts it, which is not the one that
// it names.
func judgePlaced(ctx context.Context, c *cluster.Cluster, spec *proto.JobSpec, queue string) error {
	p, err := lookUpPlaces(ctx, c.RM, spec, queue)
	if err != nil {
		return cluster.YARNError(err)
	}
	if err := p.judge(spec); err != nil {
		return usage(fmt.Errorf("YARN puts the job into the queue %q, whatever it names: %w", queue, err))
	}
	return nil
}

// checkPlaced looks into which queue YARN has put a job that it has accepted, and checks the
// job with that where it is another than the job names.
func checkPlaced(ctx context.Context, c *cluster.Cluster, spec *proto.JobSpec, id yarn.ApplicationID, notify Notify) error {
	r, err := c.RM.Report(ctx, id)
	if err != nil {
		return cluster.YARNError(err)
	}
	if spec.Reservation != "" || yarn.SameQueue(r.Queue, cmp.Or(spec.Queue, "default")) {
		return nil
	}
	if err := judgePlaced(ctx, c, spec, r.Queue); err != nil {
		return err
	}
	if spec.Queue != "" {
		notify(fmt.Sprintf("YARN has put the job into the queue %q, and not into %q, by its own rules (queue mappings)", r.Queue, spec.Queue))
	}
	return nil
}

// usage gives the usage exit code to errors about what the user asked for.
func usage(err error) error {
	if err == nil || client.ExitCode(err) != client.ExitFailed || rpc.RemoteClass(err) != "" {
		return cluster.YARNError(err)
	}
	return client.WithExitCode(client.ExitUsage, err)
}

// checks are the resources that a job asks for at first and may ask for later.
type checks []check

type check struct {
	what    string // to be said before what is wrong
	demands []yarn.Demand
}

func checksOf(spec *proto.JobSpec) checks {
	var first, grown []yarn.Demand
	var spare yarn.Resource
	for _, r := range spec.Roles {
		d := yarn.Demand{Role: r.Name, Count: int(r.Count), Label: cmp.Or(r.NodeLabel, spec.NodeLabel), Resource: yarn.Resource{MemoryMB: r.MemoryMb, VCores: r.Vcores, GPUs: r.Gpus, Others: yarn.Amounts(r.Resources)}}
		first = append(first, d)
		spare = spare.Max(d.Resource)
		d.Resource.MemoryMB = max(r.MemoryMb, r.MemoryMaxMb)
		grown = append(grown, d)
	}
	master := yarn.Demand{Master: true, Count: 1, Label: spec.NodeLabel, Resource: resourceOfMaster(spec)}
	list := checks{{"", []yarn.Demand{master}}, {"", first}, {"a task that has grown as far as its role's memory-max lets it cannot be placed: ", grown}}
	if spec.Spares > 0 {
		list = append(list, check{
			"a spare container can take any task, so it is as large as all roles need (--spares 0 does without): ",
			[]yarn.Demand{{Role: "spare", Count: int(spec.Spares), Label: spareLabel(spec), Resource: spare}},
		})
	}
	return list
}

// each calls check for each set of demands and returns the first error.
func (c checks) each(check func([]yarn.Demand) error) error {
	for _, k := range c {
		if err := check(k.demands); err != nil {
			return fmt.Errorf("%s%w", k.what, err)
		}
	}
	return nil
}

// checkCheckpoints creates the checkpoint directories on HDFS, and checks that the user
// can write to them and that no other job uses them.
func checkCheckpoints(ctx context.Context, c *cluster.Cluster, spec *proto.JobSpec, notify Notify) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, cp := range spec.Checkpoints {
		if !onHDFS(cp.Uri) {
			continue
		}
		g.Go(func() error {
			s, err := c.Open(ctx, cp.Uri)
			if err == nil {
				defer s.Close()
				err = CheckWritable(ctx, s)
			}
			if err == nil {
				return checkExclusive(ctx, s, cp, c.OpenExisting, livenessByYARN(c), notify)
			}
			if errors.Is(err, fs.ErrPermission) && !zone.IsNoKey(err) {
				return fmt.Errorf("the checkpoint directory %s is not writable for %s: %w; have its owner or permissions changed (hdfs dfs -chown, -chmod), or name another with --checkpoint", cp.Uri, c.User, err)
			}
			if err != nil {
				return fmt.Errorf("the checkpoint directory %s cannot be used: %w", cp.Uri, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// onHDFS reports whether a checkpoint directory is on HDFS. Of another, which is a directory
// of the nodes, only they can tell anything.
func onHDFS(uri string) bool { return strings.HasPrefix(uri, "hdfs:") }

// CheckWritable checks that files can be created in a directory. It leaves none, and where
// Holdfast has a directory of its own there it tries in that: nothing of the user's changes, no
// time either.
func CheckWritable(ctx context.Context, s store.Store) error {
	for _, dir := range []string{path.Dir(writers.Dir("any")), store.OwnDir, "."} {
		w, err := s.Create(ctx, path.Join(dir, ".holdfast-check"), 0o600)
		if store.Vanished(err) && dir != "." {
			continue
		}
		if err != nil {
			return err
		}
		if err := w.Abort(); err != nil || dir == "." {
			return err
		}
		return store.MayWrite(ctx, s, ".")
	}
	return nil
}
