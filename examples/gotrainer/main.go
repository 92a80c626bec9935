// Command gotrainer is a small distributed trainer: parameter servers that
// each hold a part of a vector, and workers that pull it, compute a gradient
// and push it back. It learns the vector 1, 2, 3, ... by least squares. It
// knows nothing of Holdfast: it takes its addresses from the command line and
// its checkpoints are plain files below --train_dir.
//
// # Checkpoints
//
//	step-N/ps-I.json   what parameter server I held, written by it when told
//	step-N/COMMITTED   written by worker 0 when all of them have answered;
//	                   without it the checkpoint does not count
//
// # When something is lost
//
// A parameter server that starts has nothing and says so to all who ask. A
// worker that finds it gone or empty tries again until it is neither. Worker 0
// also fills it: it lets all parameter servers restore the newest committed
// checkpoint, the surviving ones too, or begin from zero where there is none.
// So it does when it starts.
//
// Try it on one machine:
//
//	go build -o /tmp/gotrainer ./examples/gotrainer
//	/tmp/gotrainer --job_name=ps     --ps_hosts=localhost:2220 --worker_hosts=localhost:2221 &
//	/tmp/gotrainer --job_name=worker --ps_hosts=localhost:2220 --worker_hosts=localhost:2221
//
// or as a job:
//
//	yarn-submit run --local --ps 2 --worker 2 --checkpoint ./train_logs=/tmp/logs -- /tmp/gotrainer \
//	    --job_name={role} --task_index={index} --ps_hosts={ps_hosts} --worker_hosts={worker_hosts}
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

type options struct {
	job       string
	index     int
	ps        []string
	workers   []string
	dir       string
	steps     int64
	until     string
	saveSteps int64
	stepTime  time.Duration
	keep      int
	values    int
	padding   int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gotrainer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	switch o.job {
	case "ps":
		return serve(ctx, o)
	case "worker":
		return work(ctx, o)
	}
	return fmt.Errorf("--job_name is %q; it must be ps or worker", o.job)
}

func parse(args []string) (options, error) {
	var o options
	var ps, workers string
	f := flag.NewFlagSet("gotrainer", flag.ExitOnError)
	f.StringVar(&o.job, "job_name", "", "ps or worker")
	f.IntVar(&o.index, "task_index", 0, "which of them")
	f.StringVar(&ps, "ps_hosts", "", "parameter servers, as host:port,host:port")
	f.StringVar(&workers, "worker_hosts", "", "workers; only their number matters")
	f.StringVar(&o.dir, "train_dir", "./train_logs", "checkpoints go there")
	f.Int64Var(&o.steps, "steps", 1000, "steps of all workers together")
	f.StringVar(&o.until, "until", "", "train until this file is there, however many steps that takes")
	f.Int64Var(&o.saveSteps, "save_steps", 20, "steps between checkpoints")
	f.DurationVar(&o.stepTime, "step_time", 10*time.Millisecond, "how long a step takes")
	f.IntVar(&o.keep, "keep", 5, "how many checkpoints to keep")
	f.IntVar(&o.values, "values", 8, "numbers that each parameter server holds")
	f.IntVar(&o.padding, "padding", 0, "bytes added to each shard, to make it large")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if ps == "" {
		return o, errors.New("--ps_hosts is empty; name at least one parameter server as host:port")
	}
	o.ps = strings.Split(ps, ",")
	if workers != "" {
		o.workers = strings.Split(workers, ",")
	}
	if o.job == "ps" && (o.index < 0 || o.index >= len(o.ps)) {
		return o, fmt.Errorf("--task_index is %d, and --ps_hosts names %d", o.index, len(o.ps))
	}
	if o.saveSteps < 1 || o.keep < 1 || o.values < 1 {
		return o, errors.New("--save_steps, --keep and --values must be at least 1")
	}
	return o, nil
}
