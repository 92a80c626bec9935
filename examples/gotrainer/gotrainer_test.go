package main

import (
	"context"
	"fmt"
	"holdfast/test/ports"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// cluster is a training of two parameter servers in this process.
type cluster struct {
	t    *testing.T
	dir  string
	ps   []string
	stop []func()
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: filepath.Join(t.TempDir(), "logs"), stop: make([]func(), 2)}
	for _, port := range ports.ForTest(t, 2) {
		c.ps = append(c.ps, fmt.Sprintf("127.0.0.1:%d", port))
	}
	for i := range c.ps {
		c.start(i)
	}
	t.Cleanup(func() {
		for i := range c.ps {
			c.lose(i)
		}
	})
	return c
}

func (c *cluster) options(job string, index int, steps int64) options {
	return options{job: job, index: index, ps: c.ps, workers: []string{"w:1", "w:2"}, dir: c.dir,
		steps: steps, saveSteps: 20, stepTime: time.Millisecond, keep: 3, values: 4}
}

// start starts a parameter server that has nothing.
func (c *cluster) start(i int) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, c.options("ps", i, 0)) }()
	c.stop[i] = func() {
		cancel()
		if err := <-ended; err != nil {
			c.t.Errorf("parameter server %d: %v", i, err)
		}
	}
}

func (c *cluster) lose(i int) {
	if c.stop[i] != nil {
		c.stop[i]()
		c.stop[i] = nil
	}
}

// work runs workers until all of them end.
func (c *cluster) work(steps int64, workers ...int) <-chan error {
	all := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	each := make(chan error, len(workers))
	for _, i := range workers {
		go func() { each <- work(ctx, c.options("worker", i, steps)) }()
	}
	go func() {
		defer cancel()
		var first error
		for range workers {
			if err := <-each; err != nil && first == nil {
				first = err
			}
		}
		if ctx.Err() != nil {
			first = fmt.Errorf("the workers do not end: %w", ctx.Err())
		}
		all <- first
	}()
	return all
}

func (c *cluster) newest() int64 {
	c.t.Helper()
	n, err := newest(c.dir)
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

func (c *cluster) until(step int64) {
	c.t.Helper()
	for end := time.Now().Add(time.Minute); c.newest() < step; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("no checkpoint of step %d", step)
		}
	}
}

func TestTrainingGoesOnAfterALoss(t *testing.T) {
	c := newCluster(t)
	done := c.work(300, 0, 1)
	c.until(40)
	c.lose(1)
	c.start(1)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := c.newest(); n != 300 {
		t.Errorf("the newest checkpoint is of step %d, want 300", n)
	}
	steps, err := list(c.dir)
	if err != nil || len(steps) != 3 {
		t.Errorf("checkpoints of steps %v (%v), want the newest three", steps, err)
	}
	for i := range c.ps {
		s, err := readShard(c.dir, 300, i)
		if err != nil {
			t.Fatal(err)
		}
		// It learns 1, 2, 3, ...: a parameter server that had lost its part
		// without getting it back would be far behind.
		for k, v := range s.Values {
			if want := float64(i*4 + k + 1); v < want*0.8 || v > want*1.2 {
				t.Errorf("shard %d has %v at %d, want about %v", i, v, k, want)
			}
		}
	}
}

func TestAnUncommittedCheckpointDoesNotCount(t *testing.T) {
	c := newCluster(t)
	if err := <-c.work(60, 0); err != nil {
		t.Fatal(err)
	}
	// A save that was cut off: all is there but the marker.
	if err := os.CopyFS(stepDir(c.dir, 70), os.DirFS(stepDir(c.dir, 60))); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(stepDir(c.dir, 70), committed)); err != nil {
		t.Fatal(err)
	}
	if n := c.newest(); n != 60 {
		t.Errorf("it would go on from step %d, want 60", n)
	}
	// The next job goes on from there.
	for i := range c.ps {
		c.lose(i)
		c.start(i)
	}
	if err := <-c.work(100, 0); err != nil {
		t.Fatal(err)
	}
	if n := c.newest(); n != 100 {
		t.Errorf("the newest checkpoint is of step %d, want 100", n)
	}
}

// A worker that is still there when the last step is saved and a parameter
// server is lost has nobody to fill it, and need not wait for it.
func TestAWorkerEndsWhenTheLastStepIsSaved(t *testing.T) {
	c := newCluster(t)
	if err := <-c.work(40, 0); err != nil {
		t.Fatal(err)
	}
	c.lose(0)
	if err := <-c.work(40, 1); err != nil {
		t.Fatal(err)
	}
}

func TestBrokenShards(t *testing.T) {
	c := newCluster(t)
	if err := <-c.work(40, 0); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"cut off": `{"step":40,"val`, "of another step": `{"step":20,"values":[1]}`, "empty": ``} {
		if err := os.WriteFile(shardPath(c.dir, 40, 1), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := <-c.work(60, 0); err == nil || !strings.Contains(err.Error(), "restoring step 40") {
			t.Errorf("a shard %s: %v", name, err)
		}
	}
}

func TestBadArguments(t *testing.T) {
	for args, want := range map[string]string{
		"--job_name=ps":                                   "--ps_hosts",
		"--job_name=boss --ps_hosts=a:1":                  "boss",
		"--job_name=ps --task_index=3 --ps_hosts=a:1":     "--task_index",
		"--job_name=ps --ps_hosts=nowhere":                "address",
		"--job_name=worker --ps_hosts=a:1 --save_steps=0": "--save_steps",
	} {
		if err := run(t.Context(), strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want something about %q", args, err, want)
		}
	}
}
