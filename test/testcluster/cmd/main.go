// Command cmd keeps a test cluster up until it is interrupted.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"holdfast/test/testcluster"
	"holdfast/test/testcluster/kdc"
)

func main() {
	var opts testcluster.Options
	var security testcluster.Security
	flag.IntVar(&opts.DataNodes, "datanodes", 3, "how many DataNodes")
	flag.IntVar(&opts.NodeManagers, "nodemanagers", 3, "how many NodeManagers")
	flag.BoolVar(&opts.Standby, "standby", false, "a second NameNode; HDFS is a name service then")
	flag.BoolVar(&opts.HDFSOnly, "hdfs-only", false, "no YARN")
	secure := flag.Bool("secure", false, "with Kerberos, and what the following flags say")
	flag.StringVar(&security.RPC, "rpc", "authentication", "hadoop.rpc.protection: authentication, integrity, privacy")
	flag.StringVar(&security.Data, "data", "authentication", "dfs.data.transfer.protection: the same")
	flag.BoolVar(&security.Encrypt, "encrypt", false, "dfs.encrypt.data.transfer")
	flag.BoolVar(&security.AES, "aes", false, "offer AES for data transfer")
	flag.DurationVar(&security.TokenLife, "token-life", 0, "maximum lifetime of delegation tokens; 0: days")
	flag.Parse()
	if *secure {
		opts.Security = &security
	}
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
	if k := c.KDC(); k != nil {
		tickets, err := k.Tickets(ctx, kdc.Alice)
		if err != nil {
			return err
		}
		fmt.Printf("export KRB5_CONFIG=%s\nexport KRB5CCNAME=%s\n", k.Config(), tickets)
		fmt.Fprintf(os.Stderr, "users: alice, bob, and mallory, whom the service ACLs keep out; keytabs: %s\n", k.Keytab("USER"))
	}
	fmt.Fprintln(os.Stderr, "Ctrl-C ends the cluster.")
	<-ctx.Done()
	return c.Stop()
}
