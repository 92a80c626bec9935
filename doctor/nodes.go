package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/client/cluster"
	"holdfast/client/jobs"
	"holdfast/client/submit"
	"holdfast/doctor/check"
	"holdfast/doctor/nodecheck"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

// checkLimit bounds a check of the nodes, including the time in which it waits for
// YARN; awaitPace is the interval at which YARN is polled for its end.
const (
	checkLimit = 3 * time.Minute
	awaitPace  = 150 * time.Millisecond
)

// DiagnoseNodes looks at the cluster's nodes, or at those that are named, by a
// short container on each, in an image if that has a name. exe is this binary.
func DiagnoseNodes(ctx context.Context, exe, queue string, hosts []string, image yarn.Image) ([]check.Finding, error) {
	c, err := cluster.Connect()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	home, err := c.OpenHome(ctx)
	if err != nil {
		return nil, err
	}
	defer home.Close()
	var id yarn.ApplicationID
	var binary yarn.LocalResource
	g, preparing := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		id, err = submit.NewApplication(preparing, c, &proto.JobSpec{Queue: queue})
		return err
	})
	g.Go(func() (err error) { binary, err = submit.EnsureBinary(preparing, home, exe); return err })
	if err := g.Wait(); err != nil {
		return nil, err
	}
	dir := path.Join("doctor", id.String())
	defer func() {
		cleaning, cancel := context.WithTimeout(context.WithoutCancel(ctx), cluster.Timeout)
		defer cancel()
		_ = store.RemoveAll(cleaning, home, dir) // what it found is reported
	}()
	if err := store.MkdirAll(ctx, home, dir, 0o700); err != nil {
		return nil, err
	}
	if err := submitCheck(ctx, c, id, queue, home.URI()+"/"+dir, hosts, image, binary); err != nil {
		return nil, err
	}
	return awaitCheck(ctx, c, id, home, path.Join(dir, nodecheck.Result))
}

func submitCheck(ctx context.Context, c *cluster.Cluster, id yarn.ApplicationID, queue, uri string, hosts []string, image yarn.Image, binary yarn.LocalResource) error {
	credentials, err := submit.SharedCredentials(ctx, c, &proto.JobSpec{})
	if err != nil {
		return err
	}
	return submit.Application(ctx, c, yarn.Submission{
		ID: id, Name: "yarn-submit doctor", Type: nodecheck.ApplicationType, Queue: queue, Master: submit.MasterResource,
		Launch: yarn.Launch{
			Resources: []yarn.LocalResource{binary}, Command: nodecheck.MasterCommand, Credentials: credentials,
			Environment: map[string]string{
				nodecheck.EnvDirectory: uri, nodecheck.EnvNodes: strings.Join(hosts, ","), nodecheck.EnvUser: c.User,
				nodecheck.EnvImage: image.Name, nodecheck.EnvRuntime: image.Runtime,
			},
		},
		Agents: []yarn.LocalResource{binary},
	})
}

// awaitCheck waits for the end of a check and reads its findings. If ctx ends first,
// the application is killed.
func awaitCheck(ctx context.Context, c *cluster.Cluster, id yarn.ApplicationID, home store.Store, result string) ([]check.Finding, error) {
	ticker := time.NewTicker(awaitPace)
	defer ticker.Stop()
	for {
		r, err := c.RM.Report(ctx, id)
		if err != nil {
			submit.Abandon(ctx, c, id)
			return nil, cluster.YARNError(err)
		}
		if r.State.Done() {
			text, err := store.ReadFile(ctx, home, result)
			var found []check.Finding
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil, fmt.Errorf("the nodes could not be looked at: %s of %s: %s", r.State, id, jobs.MasterFailure(r.Diagnostics))
			case err == nil:
				err = json.Unmarshal(text, &found)
			}
			return found, err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			err = context.Cause(ctx)
			submit.Abandon(ctx, c, id)
			if why := yarn.Waiting(r, checkLimit); why != "" {
				return nil, fmt.Errorf("the nodes were not looked at: %w; the application %s %s", err, id, why)
			}
			return nil, err
		}
	}
}
