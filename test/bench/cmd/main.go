// Command cmd lists the benchmarks, runs them and prints their report.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"holdfast/test/bench"
	"holdfast/test/bench/files"
	"holdfast/test/bench/jobs"
)

var all = bench.List{
	{Name: "start4", On: bench.OnYARN, Run: start(4)},
	{Name: "start16", On: bench.OnYARN, Run: start(16)},
	{Name: "commands", On: bench.OnYARN, Run: job((*jobs.Jobs).Commands)},
	{Name: "inplace", On: bench.OnYARN, Run: job((*jobs.Jobs).InPlace)},
	{Name: "spare", On: bench.OnYARN, Run: job((*jobs.Jobs).Spared)},
	{Name: "recover", On: bench.OnYARN, Run: job((*jobs.Jobs).Replaced)},
	{Name: "master", On: bench.OnYARN, Run: job((*jobs.Jobs).MasterLost)},
	{Name: "write", On: bench.OnHDFS, Run: file((*files.Files).Write)},
	{Name: "read", On: bench.OnHDFS, Run: file((*files.Files).Read)},
	{Name: "checkpoint", On: bench.OnHDFS, Run: file((*files.Files).Checkpoint)},
	{Name: "metadata", On: bench.OnHDFS, Run: file((*files.Files).Metadata)},
	{Name: "protection", On: bench.OnItsOwn, Run: file((*files.Files).Protection)},
	{Name: "survive", On: bench.OnItsOwn, Run: file((*files.Files).Survive)},
	{Name: "training", On: bench.OnItsOwn, Run: job((*jobs.Jobs).Training)},
	{Name: "elastic", On: bench.OnItsOwn, Run: job((*jobs.Jobs).Elastic)},
	{Name: "scale", On: bench.OnItsOwn, Run: job((*jobs.Jobs).Scale)},
	{Name: "pages", On: bench.OnItsOwn, Run: job((*jobs.Jobs).Pages)},
}

// start measures the start of a job of so many tasks.
func start(tasks int) func(context.Context, *bench.Bench) error {
	return job(func(j *jobs.Jobs, ctx context.Context) error { return j.Start(ctx, tasks, 0.25) })
}

func job(measure func(*jobs.Jobs, context.Context) error) func(context.Context, *bench.Bench) error {
	return func(ctx context.Context, b *bench.Bench) error { return measure(&jobs.Jobs{Bench: b}, ctx) }
}

func file(measure func(*files.Files, context.Context) error) func(context.Context, *bench.Bench) error {
	return func(ctx context.Context, b *bench.Bench) error { return measure(&files.Files{Bench: b}, ctx) }
}

func main() {
	opts := bench.Options{Out: os.Stdout}
	flag.StringVar(&opts.Submit, "submit", "bin/yarn-submit", "the yarn-submit `binary`")
	flag.IntVar(&opts.Pairs, "pairs", 5, "`how often` to measure each")
	flag.IntVar(&opts.FileMB, "file-mb", 512, "`size` of the files that are written and read, in all")
	flag.IntVar(&opts.SaveMB, "save-mb", 1024, "`size` of the checkpoint that is saved and restored")
	only := flag.String("only", "", "some of "+strings.Join(all.Names(), ",")+" (default all)")
	flag.Parse()
	if *only != "" {
		opts.Only = strings.Split(*only, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := bench.Run(ctx, opts, all)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
