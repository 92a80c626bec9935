// Command cmd runs the benchmarks of package bench and prints their report.
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
)

func main() {
	opts := bench.Options{Out: os.Stdout}
	flag.StringVar(&opts.Submit, "submit", "bin/yarn-submit", "the yarn-submit `binary`")
	flag.IntVar(&opts.Pairs, "pairs", 5, "`how often` to measure each")
	flag.IntVar(&opts.FileMB, "file-mb", 512, "`size` of the files that are written and read, in all")
	flag.IntVar(&opts.SaveMB, "save-mb", 1024, "`size` of the checkpoint that is saved and restored")
	only := flag.String("only", "", "some of "+strings.Join(bench.Names(), ",")+" (default all)")
	flag.Parse()
	if *only != "" {
		opts.Only = strings.Split(*only, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := bench.Run(ctx, opts)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
