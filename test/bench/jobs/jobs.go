// Package jobs measures jobs: their start beside Hadoop's own DistributedShell, their
// recovery beside skein's, both beside what YARN takes at the least (command bare), elastic
// ranks beside torchelastic's, and the commands that show jobs beside Hadoop's. An
// application master with very many tasks is measured by package scale, what losses
// cost training by package faults.
//
// How long a job takes to start is told by the tasks themselves: they are a
// script that writes the time into a file as its first act.
package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/proto"
	"holdfast/test/asuser"
	"holdfast/test/bench"
)

// Jobs measures jobs.
type Jobs struct{ *bench.Bench }

// user calls yarn-submit.
func (b *Jobs) user() asuser.Caller {
	return asuser.Caller{Submit: b.Submit, ConfDir: b.Cluster.ConfDir(), Home: filepath.Join(b.Dir, "home"), Dir: b.Dir}
}

// run submits a job and returns its id.
func (b *Jobs) run(ctx context.Context, args ...string) (string, error) {
	return b.user().Run(ctx, args...)
}

func (b *Jobs) status(ctx context.Context, job string) (*proto.JobStatus, error) {
	return b.user().Status(ctx, job)
}

// kill ends a job and returns when the cluster is idle again.
func (b *Jobs) kill(ctx context.Context, job string) error {
	if _, err := b.user().Call(ctx, "kill", job); err != nil {
		return err
	}
	return b.idle(ctx)
}

// nodeHeartbeat is how often nodes tell the ResourceManager of their containers,
// and are given others (yarn.resourcemanager.nodemanagers.heartbeat-interval-ms).
const nodeHeartbeat = time.Second

// idle waits until nothing runs on the cluster, which is known with a node's
// heartbeat, and then for a part of the time to the next one: what is submitted
// would else be in step with the nodes, each contender in its own way.
func (b *Jobs) idle(ctx context.Context) error {
	err := poll(ctx, time.Minute, "an idle cluster", func() (bool, error) {
		var m struct {
			ClusterMetrics struct{ AppsRunning, AppsPending, ContainersAllocated int }
		}
		if err := b.rm(ctx, "metrics", &m); err != nil {
			return false, err
		}
		running, err := b.Cluster.Containers()
		c := m.ClusterMetrics
		return c.AppsRunning+c.AppsPending+c.ContainersAllocated+len(running) == 0, err
	})
	time.Sleep(rand.N(nodeHeartbeat))
	return err
}

// rm asks the ResourceManager's REST interface.
func (b *Jobs) rm(ctx context.Context, what string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.Cluster.RMWeb()+"/ws/v1/cluster/"+what, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(into)
}

// poll waits for a condition without burdening the machine that it measures.
func poll(ctx context.Context, limit time.Duration, what string, ok func() (bool, error)) error {
	for end := time.Now().Add(limit); ; {
		done, err := ok()
		if done || err != nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("waited %v for %s", limit, what)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// marks is a directory in which processes write when they began.
type marks struct{ dir, script string }

// newMarks makes one, with a script that does this and then waits for ever.
func (b *Jobs) newMarks() (marks, error) {
	dir, err := os.MkdirTemp(b.Dir, "marks-")
	if err != nil {
		return marks{}, err
	}
	m := marks{dir, dir + ".sh"}
	// Renamed, so that what is there is whole.
	text := fmt.Sprintf("echo $EPOCHREALTIME > %[1]s/.$$ && mv %[1]s/.$$ %[1]s/$$\nexec sleep 1000000\n", dir)
	return m, os.WriteFile(m.script, []byte(text), 0o755)
}

// read returns the times in order.
func (m marks) read() ([]time.Time, error) {
	files, err := filepath.Glob(m.dir + "/[0-9]*")
	if err != nil {
		return nil, err
	}
	var all []time.Time
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		t, err := parseTime(strings.TrimSpace(string(text)))
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	slices.SortFunc(all, time.Time.Compare)
	return all, nil
}

// pids are the processes that have begun.
func (m marks) pids() (pids []int, err error) {
	files, err := filepath.Glob(m.dir + "/[0-9]*")
	for _, f := range files {
		pid, err := strconv.Atoi(filepath.Base(f))
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, err
}

// wait waits until n processes have begun.
func (m marks) wait(ctx context.Context, n int) (all []time.Time, err error) {
	err = poll(ctx, 2*time.Minute, fmt.Sprintf("%d processes to begin", n), func() (bool, error) {
		all, err = m.read()
		return len(all) >= n, err
	})
	return all, err
}

// parseTime reads bash's EPOCHREALTIME: seconds and six decimals, after a
// point or, in some locales, a comma.
func parseTime(s string) (time.Time, error) {
	digits := strings.NewReplacer(".", "", ",", "").Replace(s)
	us, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || len(s)-len(digits) != 1 {
		return time.Time{}, fmt.Errorf("%q is not a time", s)
	}
	return time.UnixMicro(us), nil
}
