// Package testcluster starts a real Hadoop on this machine: a NameNode,
// DataNodes, a ResourceManager and NodeManagers, each a JVM of its own, for
// tests and for trying things out; on request with an MIT KDC and security.
//
// Each NodeManager is a host of its own (127.0.0.2, 127.0.0.3, ...); DataNodes
// are told apart by port, since they register under the source address of
// their connection. All ports come from a block of 100 that the cluster holds
// (package ports), so several clusters can run at once.
//
// Everything lies in one temporary directory:
//
//	conf/           what a client's HADOOP_CONF_DIR is
//	NAME/conf/      the configuration of the daemon NAME (nn, dn0, rm, nm0, ...)
//	NAME/log        what it prints
//	NAME/data/      its storage
//	kdc/            of a secure cluster: krb5.conf, keytabs, ticket caches (package kdc)
//	yarn/NAME/      the local and log directories of a NodeManager's containers
//
// A watchdog (package processes), the same executable started once more, waits for this
// process to stop the cluster or to die in whatever way. It then ends the
// daemons and the containers, also those that outlived their NodeManager, and
// removes the directory. So nothing is left after a test that fails, panics or
// is killed. All daemons are in the watchdog's process group.
//
// Goroutines: one for each running daemon, that waits for its process; it ends
// with the process, and Stop waits for all of them.
package testcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"time"

	"holdfast/test/ports"
	"holdfast/test/testcluster/dist"
	"holdfast/test/testcluster/kdc"
	"holdfast/test/testcluster/processes"
)

// Options say what a cluster consists of.
type Options struct {
	DataNodes        int               // 3 if 0
	NodeManagers     int               // 3 if 0
	Standby          bool              // a second NameNode, nn1: HDFS is a name service then
	HDFSOnly         bool              // no ResourceManager and NodeManagers
	ResourceManagers int               // 1 if 0; of 2, rm1 is active first
	KDCOnly          bool              // a Kerberos realm, and no Hadoop
	IPv6             bool              // the daemons listen on ::1, and call each other by IPv6Host; with one NodeManager at most
	Security         *Security         // nil: everybody is believed
	KMS              *KMS              // nil: no encryption zones
	Conf             map[string]string // properties for all daemons and clients, over the cluster's own
}

// Cluster is a running Hadoop.
type Cluster struct {
	opts     Options
	dir      string
	dist     dist.Dist
	kmsJars  string
	ports    *ports.Block
	router   *ports.Block // nil without a Router
	watchdog *processes.Watchdog
	user     string
	kdc      *kdc.KDC  // nil without security
	browser  browser   // of the web servers of NameNode and ResourceManager
	daemons  []*Daemon // in the order in which they start
	active   string    // the NameNode that Activate chose last
}

// Start starts a cluster and returns when all its daemons have registered.
func Start(ctx context.Context, opts Options) (_ *Cluster, err error) {
	if opts.DataNodes == 0 {
		opts.DataNodes = 3
	}
	if opts.NodeManagers == 0 {
		opts.NodeManagers = 3
	}
	if opts.HDFSOnly {
		opts.NodeManagers = 0
	}
	alone := opts.KDCOnly || opts.KMS != nil && opts.KMS.Alone
	if alone {
		opts.DataNodes, opts.NodeManagers = 0, 0
	}
	if opts.Security != nil {
		opts.Security = opts.Security.withDefaults()
	}
	c := &Cluster{opts: opts, browser: web}
	me, err := user.Current()
	if err != nil {
		return nil, fmt.Errorf("finding out who starts the cluster: %w", err)
	}
	c.user = me.Username
	if !opts.KDCOnly {
		if c.dist, err = dist.Get(ctx); err != nil {
			return nil, err
		}
	}
	if opts.KMS != nil {
		if c.kmsJars, err = dist.KMS(ctx); err != nil {
			return nil, err
		}
	}
	if c.ports, err = ports.Claim(portsNeeded(opts)); err != nil {
		return nil, err
	}
	if c.dir, err = os.MkdirTemp("", "holdfast-cluster-"); err != nil {
		return nil, errors.Join(fmt.Errorf("making the cluster's directory: %w", err), c.ports.Close())
	}
	if c.watchdog, err = processes.StartWatchdog(c.dir, c.ports); err != nil {
		return nil, errors.Join(err, os.RemoveAll(c.dir), c.ports.Close())
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	if opts.KDCOnly || opts.Security != nil {
		c.kdc = &kdc.KDC{Dir: filepath.Join(c.dir, "kdc"), Addr: c.ports.Addr(loopback, portKDC)}
		if err := c.kdc.Make(ctx); err != nil {
			return nil, err
		}
		if c.browser, err = c.kdc.Superuser(*web); err != nil {
			return nil, err
		}
	}
	if err := c.configure(); err != nil {
		return nil, err
	}
	if !alone {
		if err := c.format(ctx); err != nil {
			return nil, err
		}
	}
	if err := c.makeKeys(ctx); err != nil {
		return nil, err
	}
	for _, d := range c.daemons {
		if err := d.start(); err != nil {
			return nil, err
		}
	}
	if err := c.activate(ctx); err != nil {
		return nil, err
	}
	if err := c.ready(ctx, ""); err != nil {
		return nil, err
	}
	if alone {
		return c, nil
	}
	if err := c.makeHomes(ctx); err != nil {
		return nil, err
	}
	return c, c.archiveClasses(ctx)
}

// Stop ends all daemons and containers and removes the cluster's directory.
// Later calls do nothing.
func (c *Cluster) Stop() error {
	err := c.watchdog.Stop()
	if err == nil { // else some may not have ended
		for _, d := range c.daemons {
			d.wait()
		}
	}
	if c.router != nil {
		err = errors.Join(err, c.router.Close())
	}
	return errors.Join(err, c.ports.Close())
}

// ConfDir is the HADOOP_CONF_DIR for clients.
func (c *Cluster) ConfDir() string { return filepath.Join(c.dir, "conf") }

// HDFS is the file system's address, hdfs://127.0.0.1:port or that of the name service.
func (c *Cluster) HDFS() string {
	if c.opts.Standby {
		return "hdfs://" + nameService
	}
	return "hdfs://" + c.at(portNNRPC)
}

// Dir is the directory that holds everything of this cluster.
func (c *Cluster) Dir() string { return c.dir }

// KDC is the cluster's Kerberos realm, nil if it has none.
func (c *Cluster) KDC() *kdc.KDC { return c.kdc }

// NameNodeWeb is the address of the NameNode's web server, host:port.
func (c *Cluster) NameNodeWeb() string { return c.reached(portNNWeb) }

// RMWeb is the address of the ResourceManager's web server, host:port; of the
// first one if there are two.
func (c *Cluster) RMWeb() string { return c.rmWeb(c.rmNames()[0]) }

// RMPorts are the ports of the ResourceManager; of the first one if there are two.
func (c *Cluster) RMPorts() []int {
	var ports []int
	for place := portRM; place <= portRMWeb; place++ {
		ports = append(ports, c.ports.Base+place)
	}
	return ports
}

// NMPorts are the ports of a NodeManager.
func (c *Cluster) NMPorts(name string) []int {
	var i int
	if _, err := fmt.Sscanf(name, "nm%d", &i); err != nil {
		panic("testcluster: there is no NodeManager " + name)
	}
	first := c.ports.Base + c.portNM(i)
	return []int{first, first + 1, first + 2}
}

// Daemon returns a daemon by its name: nn, dn0, rm (or rm1 and rm2), nm1 and so on. It panics
// if there is none, as only a mistake in a test asks for one.
func (c *Cluster) Daemon(name string) *Daemon {
	i := slices.IndexFunc(c.daemons, func(d *Daemon) bool { return d.name == name })
	if i < 0 {
		panic("testcluster: there is no daemon " + name)
	}
	return c.daemons[i]
}

// Daemons are all of them, running or not.
func (c *Cluster) Daemons() []*Daemon { return slices.Clone(c.daemons) }

// Containers are the YARN containers that have live processes, whether or not
// their NodeManager still lives.
func (c *Cluster) Containers() ([]processes.Container, error) { return processes.Containers(c.dir) }

// Run is for a package's TestMain: it starts a cluster, hands it to use, runs
// the tests, stops the cluster and returns the exit code.
func Run(m interface{ Run() int }, opts Options, use func(*Cluster)) int {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	c, err := Start(ctx, opts)
	if err != nil {
		fmt.Fprintf(os.Stderr, "starting the test cluster: %v\n", err)
		return 1
	}
	use(c)
	code := m.Run()
	if err := c.Stop(); err != nil {
		fmt.Fprintf(os.Stderr, "stopping the test cluster: %v\n", err)
		return max(code, 1)
	}
	return code
}
