// Command cmd keeps a test cluster up until it is interrupted.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"holdfast/internal/testcluster"
)

func main() {
	var opts testcluster.Options
	flag.IntVar(&opts.DataNodes, "datanodes", 3, "how many DataNodes")
	flag.IntVar(&opts.NodeManagers, "nodemanagers", 3, "how many NodeManagers")
	flag.BoolVar(&opts.HDFSOnly, "hdfs-only", false, "no YARN")
	flag.Parse()
	if err := run(opts); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(opts testcluster.Options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fmt.Fprintln(os.Stderr, "starting (the first time, Hadoop is downloaded) ...")
	c, err := testcluster.Start(ctx, opts)
	if err != nil {
		return err
	}
	if !opts.HDFSOnly {
		fmt.Fprintf(os.Stderr, "the ResourceManager's pages: http://%s/\n", c.RMWeb())
	}
	fmt.Fprintln(os.Stderr, "logs of the daemons:", c.Dir()+"/*/log")
	fmt.Printf("export HADOOP_CONF_DIR=%s\n", c.ConfDir())
	fmt.Fprintln(os.Stderr, "Ctrl-C ends the cluster.")
	<-ctx.Done()
	return c.Stop()
}
