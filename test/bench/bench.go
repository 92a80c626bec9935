// Package bench measures Holdfast beside others, on the same test cluster in the
// same minutes: a job's start beside Hadoop's own DistributedShell, its recovery
// beside skein's, both beside what YARN takes at the least (command bare), the
// commands that show jobs beside Hadoop's, files beside FsShell and the Go client
// colinmarc/hdfs. An application master with very many tasks is measured by package
// scale, what losses cost training by package faults. Measurements that are compared
// alternate, so that a machine that gets busier is busier for both, and each pair
// gives a ratio; what is reported is the median and the range, and how busy the
// machine was.
//
// How long a job takes to start is told by the tasks themselves: they are a
// script that writes the time into a file as its first act. Files are written
// and read by processes of which each is measured from outside, from its start
// to its end (command ours, command peer, FsShell).
package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	"holdfast/test/testcluster"
)

// Options say what to measure and how often.
type Options struct {
	Submit string    // the yarn-submit binary
	Pairs  int       // of each comparison
	FileMB int       // size of the files that are written and read, in all
	SaveMB int       // size of the checkpoint that is saved and restored
	Only   []string  // some of Names(); all if empty
	Out    io.Writer // the report
}

type bench struct {
	Options
	cluster *testcluster.Cluster
	dir     string
}

// Run starts a cluster, measures, and prints as it goes.
func Run(ctx context.Context, opts Options) (err error) {
	for _, name := range opts.Only {
		if !slices.Contains(Names(), name) {
			return fmt.Errorf("there is no measurement %q: choose from %s", name, strings.Join(Names(), ", "))
		}
	}
	b := &bench{Options: opts}
	if b.Submit, err = filepath.Abs(b.Submit); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "holdfast-bench-"); err != nil {
		return fmt.Errorf("making a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	measurements := slices.DeleteFunc(b.measurements(), func(m measurement) bool {
		return len(b.Only) > 0 && !slices.Contains(b.Only, m.name)
	})
	needed := func(p place) bool {
		return slices.ContainsFunc(measurements, func(m measurement) bool { return m.on == p })
	}
	if err := b.build(ctx); err != nil {
		return err
	}
	if yarn := needed(onYARN); yarn || needed(onHDFS) {
		if b.cluster, err = testcluster.Start(ctx, testcluster.Options{HDFSOnly: !yarn}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.cluster.Stop()) }()
	}
	fmt.Fprintf(b.Out, "%s\n\n", machine())
	for _, m := range measurements {
		if err := m.run(ctx); err != nil {
			return fmt.Errorf("measuring %s: %w", m.name, err)
		}
	}
	return nil
}

// place is what a measurement needs.
type place int

const (
	onHDFS   place = iota
	onYARN         // it runs jobs
	onItsOwn       // it starts a cluster of its own
)

// measurement is one that can be asked for.
type measurement struct {
	name string
	on   place
	run  func(context.Context) error
}

func (b *bench) measurements() []measurement {
	return []measurement{
		{"start4", onYARN, func(ctx context.Context) error { return b.start(ctx, 4, 0.25) }},
		{"start16", onYARN, func(ctx context.Context) error { return b.start(ctx, 16, 0.25) }},
		{"commands", onYARN, b.commands},
		{"inplace", onYARN, b.inPlace},
		{"spare", onYARN, b.spared},
		{"recover", onYARN, b.replaced},
		{"master", onYARN, b.masterLost},
		{"write", onHDFS, b.write},
		{"read", onHDFS, b.read},
		{"checkpoint", onHDFS, b.checkpoint},
		{"metadata", onHDFS, b.metadata},
		{"protection", onItsOwn, b.protection},
		{"survive", onItsOwn, b.survive},
		{"training", onItsOwn, b.training},
		{"elastic", onItsOwn, b.elastic},
		{"scale", onItsOwn, b.scale},
		{"pages", onItsOwn, b.pages},
	}
}

// Names are those of all measurements.
func Names() (names []string) {
	for _, m := range (&bench{}).measurements() {
		names = append(names, m.name)
	}
	return names
}

// machine describes what the figures were taken on.
func machine() string {
	cpus := 0
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		cpus = strings.Count(string(text), "processor\t:")
	}
	return fmt.Sprintf("%d processors, load %s at the beginning, %s", cpus, load(), time.Now().Format(time.DateTime))
}

// user calls yarn-submit.
func (b *bench) user() asuser.Caller {
	return asuser.Caller{Submit: b.Submit, ConfDir: b.cluster.ConfDir(), Home: filepath.Join(b.dir, "home"), Dir: b.dir}
}

// run submits a job and returns its id.
func (b *bench) run(ctx context.Context, args ...string) (string, error) {
	return b.user().Run(ctx, args...)
}

func (b *bench) status(ctx context.Context, job string) (*proto.JobStatus, error) {
	return b.user().Status(ctx, job)
}

// kill ends a job and returns when the cluster is idle again.
func (b *bench) kill(ctx context.Context, job string) error {
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
func (b *bench) idle(ctx context.Context) error {
	err := poll(ctx, time.Minute, "an idle cluster", func() (bool, error) {
		var m struct {
			ClusterMetrics struct{ AppsRunning, AppsPending, ContainersAllocated int }
		}
		if err := b.rm(ctx, "metrics", &m); err != nil {
			return false, err
		}
		running, err := b.cluster.Containers()
		c := m.ClusterMetrics
		return c.AppsRunning+c.AppsPending+c.ContainersAllocated+len(running) == 0, err
	})
	time.Sleep(rand.N(nodeHeartbeat))
	return err
}

// rm asks the ResourceManager's REST interface.
func (b *bench) rm(ctx context.Context, what string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.cluster.RMWeb()+"/ws/v1/cluster/"+what, nil)
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
func (b *bench) newMarks() (marks, error) {
	dir, err := os.MkdirTemp(b.dir, "marks-")
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
