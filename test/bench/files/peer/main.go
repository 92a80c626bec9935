// Command peer is the measured process where colinmarc/hdfs is compared: a
// module of its own, so that the product does not depend on it.
//
//	peer [-replication N] put DIRECTORY FILE...   write each local file into an HDFS directory
//	peer get URI...                               read each HDFS file, and drop what was read
//	peer cat URI...                               the same, and print what was read
//
// Files are transferred all at the same time, with a client for each, since one
// sends its calls one after the other. The Hadoop configuration is that of
// HADOOP_CONF_DIR.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"time"

	"github.com/colinmarc/hdfs/v2"
	"github.com/colinmarc/hdfs/v2/hadoopconf"
	krb "github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"golang.org/x/sync/errgroup"
)

func main() {
	replication := flag.Int("replication", 3, "of new `files`")
	flag.Parse()
	if err := run(*replication, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func run(replication int, args []string) error {
	if len(args) < 2 {
		return errors.New("usage: peer put DIRECTORY FILE... | get|cat URI...")
	}
	conf, err := hadoopconf.LoadFromEnvironment()
	if err != nil {
		return err
	}
	var all errgroup.Group
	switch args[0] {
	case "put":
		for _, file := range args[2:] {
			all.Go(func() error { return put(conf, replication, file, args[1]) })
		}
	case "get":
		for _, uri := range args[1:] {
			all.Go(func() error { return get(conf, uri, io.Discard) })
		}
	case "cat":
		for _, uri := range args[1:] {
			if err := get(conf, uri, os.Stdout); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("there is no %q", args[0])
	}
	return all.Wait()
}

// chunk is what is read or written at once.
const chunk = 1 << 20

func client(conf hadoopconf.HadoopConf, uri string) (*hdfs.Client, string, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return nil, "", err
	}
	o := hdfs.ClientOptionsFromConf(conf)
	o.Addresses = []string{u.Host}
	if o.KerberosServicePrincipleName != "" {
		if o.KerberosClient, err = fromTickets(); err != nil {
			return nil, "", err
		}
		// It asks for the service's ticket by this name, and the test cluster's is localhost.
		o.Addresses = []string{net.JoinHostPort("localhost", u.Port())}
		c, err := hdfs.NewClient(o)
		return c, u.Path, err
	}
	if o.User = os.Getenv("HADOOP_USER_NAME"); o.User == "" {
		me, err := user.Current()
		if err != nil {
			return nil, "", err
		}
		o.User = me.Username
	}
	c, err := hdfs.NewClient(o)
	return c, u.Path, err
}

// fromTickets is who the tickets in KRB5CCNAME are for.
func fromTickets() (*krb.Client, error) {
	conf, err := config.Load(os.Getenv("KRB5_CONFIG"))
	if err != nil {
		return nil, err
	}
	cache, err := credentials.LoadCCache(os.Getenv("KRB5CCNAME"))
	if err != nil {
		return nil, err
	}
	return krb.NewFromCCache(cache, conf)
}

func put(conf hadoopconf.HadoopConf, replication int, file, dir string) error {
	c, to, err := client(conf, dir)
	if err != nil {
		return err
	}
	defer c.Close()
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := c.CreateFile(path.Join(to, filepath.Base(file)), replication, 128<<20, 0o644)
	if err != nil {
		return err
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{in}, make([]byte, chunk)); err != nil {
		return err
	}
	for {
		err := out.Close()
		if !hdfs.IsErrReplicating(err) {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func get(conf hadoopconf.HadoopConf, uri string, out io.Writer) error {
	c, from, err := client(conf, uri)
	if err != nil {
		return err
	}
	defer c.Close()
	in, err := c.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{in}, make([]byte, chunk))
	return err
}
