// Command demo shows what Holdfast is for: it runs
// examples/monitored-session with two parameter servers and two workers, ends
// ps-1 by force in the middle, and tells what happened: when it was lost, when
// it was back, from which step training went on, and that it reached its end.
//
//	make demo         on this machine alone; ps-1's process is killed
//	make demo-yarn    on a real YARN and HDFS, which it starts for the purpose
//	                  and takes down again; ps-1's container is killed
//
// It calls yarn-submit as a user would, and nothing else of Holdfast. All that
// it makes is in a temporary directory and on the cluster that goes.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"holdfast/test/asuser"
	"holdfast/test/pyenv"
	"holdfast/test/testcluster"
)

type options struct {
	yarn   bool
	submit string
	script string
	steps  int
}

func main() {
	var o options
	flag.BoolVar(&o.yarn, "yarn", false, "on a YARN and HDFS of its own, instead of on this machine alone")
	flag.StringVar(&o.submit, "submit", "bin/yarn-submit", "the program")
	flag.StringVar(&o.script, "script", "examples/monitored-session/monitored_session.py", "what to train")
	flag.IntVar(&o.steps, "steps", 500, "how far to train")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	for _, path := range []*string{&o.submit, &o.script} {
		if *path, err = filepath.Abs(*path); err == nil {
			_, err = os.Stat(*path)
		}
		if err != nil {
			return fmt.Errorf("%w; run it by make, from the root of the repository", err)
		}
	}
	scratch, err := os.MkdirTemp("", "holdfast-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)

	fmt.Println("Looking for a Python with TensorFlow; the first time it is made from PyPI, which takes some minutes.")
	python, err := pyenv.TensorFlow(ctx)
	if err != nil {
		return err
	}
	c := asuser.Caller{Submit: o.submit, Home: filepath.Join(scratch, "home"), Dir: scratch}
	store := filepath.Join(scratch, "checkpoints")
	if o.yarn {
		fmt.Println("Starting a NameNode, three DataNodes, a ResourceManager and three NodeManagers; the first time Hadoop is fetched from Maven Central.")
		begun := time.Now()
		cluster, err := testcluster.Start(ctx, testcluster.Options{})
		if err != nil {
			return err
		}
		defer func() {
			if e := cluster.Stop(); err == nil {
				err = e
			}
		}()
		fmt.Printf("They are up after %.0f s.\n", time.Since(begun).Seconds())
		c.ConfDir = cluster.ConfDir()
		store = cluster.HDFS() + "/demo/checkpoints"
	}

	args := []string{"--name", "demo", "--tf1", "--ps", "2", "--worker", "2",
		"--ps-memory", "900m", "--worker-memory", "900m",
		"--files", o.script, "--checkpoint", "./train_logs=" + store,
		"--", python, filepath.Base(o.script),
		"--job_name={role}", "--task_index={index}", "--ps_hosts={ps_hosts}", "--worker_hosts={worker_hosts}",
		fmt.Sprintf("--steps=%d", o.steps)}
	if !o.yarn {
		args = append([]string{"--local"}, args...)
	}
	s := &show{Caller: c, yarn: o.yarn, steps: o.steps, store: store}
	return s.run(ctx, args)
}
