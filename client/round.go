package client

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

	"holdfast/doctor"
	"holdfast/doctor/round"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

// roundLimit bounds a round with all its waiting for YARN.
const roundLimit = 3 * time.Minute

// DiagnoseNodes looks at the cluster's nodes, or at those that are named, by a
// short container on each. exe is this binary.
func DiagnoseNodes(ctx context.Context, exe, queue string, hosts []string) ([]doctor.Finding, error) {
	c, err := Connect()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, roundLimit)
	defer cancel()
	home, err := c.openHome(ctx)
	if err != nil {
		return nil, err
	}
	defer home.Close()
	var id yarn.ApplicationID
	var binary yarn.LocalResource
	g, preparing := errgroup.WithContext(ctx)
	g.Go(func() (err error) { id, err = c.checkYARN(preparing, &proto.JobSpec{Queue: queue}); return err })
	g.Go(func() error {
		sum, err := digest(preparing, exe)
		if err != nil {
			return err
		}
		binary, err = provideBinary(preparing, home, exe, sum)
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	dir := path.Join("doctor", id.String())
	defer func() {
		cleaning, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		_ = removeAll(cleaning, home, dir) // what it found is told
	}()
	if err := store.MkdirAll(ctx, home, dir, 0o700); err != nil {
		return nil, err
	}
	if err := c.submitRound(ctx, id, queue, home.URI()+"/"+dir, hosts, binary); err != nil {
		c.forget(ctx, id)
		return nil, c.submitError(queue, err)
	}
	return c.awaitRound(ctx, id, home, path.Join(dir, round.Result))
}

func (c *Cluster) submitRound(ctx context.Context, id yarn.ApplicationID, queue, uri string, hosts []string, binary yarn.LocalResource) error {
	credentials, err := c.shared(ctx, &proto.JobSpec{})
	if err != nil {
		return err
	}
	return c.rm.Submit(ctx, yarn.Submission{
		ID: id, Name: "yarn-submit doctor", Type: round.ApplicationType, Queue: queue, Master: masterResource,
		Launch: yarn.Launch{
			Resources: []yarn.LocalResource{binary}, Command: round.MasterCommand, Credentials: credentials,
			Environment: map[string]string{
				round.EnvDirectory: uri, round.EnvNodes: strings.Join(hosts, ","), round.EnvUser: c.user,
			},
		},
		Agents: []yarn.LocalResource{binary},
	})
}

// awaitRound waits for the end of a round and reads what it found. A round that
// is not waited for any longer is ended.
func (c *Cluster) awaitRound(ctx context.Context, id yarn.ApplicationID, home store.Store, result string) ([]doctor.Finding, error) {
	for {
		r, err := c.rm.Report(ctx, id)
		if err != nil {
			c.forget(ctx, id)
			return nil, rmError(err)
		}
		if r.State.Done() {
			text, err := store.ReadFile(ctx, home, result)
			var found []doctor.Finding
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil, fmt.Errorf("the nodes could not be looked at: %s of %s: %s", r.State, id, masterEnd(r.Diagnostics))
			case err == nil:
				err = json.Unmarshal(text, &found)
			}
			return found, err
		}
		if err := pause(ctx, watchPace); err != nil {
			c.forget(ctx, id)
			if why := yarn.Waiting(r, roundLimit); why != "" {
				return nil, fmt.Errorf("the nodes were not looked at: %w; the application %s %s", err, id, why)
			}
			return nil, err
		}
	}
}
