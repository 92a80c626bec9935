package testcluster

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"holdfast/test/ports"
	"holdfast/test/testcluster/dist"
	"holdfast/test/testcluster/properties"
)

// The places of a Router's ports, in a block of its own.
const (
	portRouterRPC = iota
	portRouterAdmin
	routerPorts
)

// StartRouter starts a Router (router-based federation) over this cluster's namespace,
// which is its default, and that of another cluster. far are the paths that are
// mounted from the other one. It returns the HADOOP_CONF_DIR of the Router's clients;
// the mounts are there a little later. The Router ends with this cluster, and must
// be started at most once.
func (c *Cluster) StartRouter(ctx context.Context, other *Cluster, far ...string) (confDir string, err error) {
	jars, err := dist.RouterJars(ctx)
	if err != nil {
		return "", err
	}
	if c.router, err = ports.Claim(routerPorts); err != nil {
		return "", err
	}
	at := func(place int) string { return c.router.Addr(c.loopback(), place) }
	const prefix = "dfs.federation.router."
	d := &Daemon{cluster: c, name: "router", class: "org.apache.hadoop.hdfs.server.federation.router.DFSRouter", dir: filepath.Join(c.dir, "router")}
	p := c.common()
	maps.Copy(p, properties.Set{
		"hadoop.tmp.dir":                        filepath.Join(d.dir, "tmp"),
		"dfs.nameservices":                      "near,far",
		"dfs.namenode.rpc-address.near":         c.at(portNNRPC),
		"dfs.namenode.http-address.near":        c.at(portNNWeb),
		"dfs.namenode.rpc-address.far":          other.at(portNNRPC),
		"dfs.namenode.http-address.far":         other.at(portNNWeb),
		prefix + "rpc-address":                  at(portRouterRPC),
		prefix + "admin-address":                at(portRouterAdmin),
		prefix + "http.enable":                  "false",
		prefix + "default.nameserviceId":        "near",
		prefix + "monitor.localnamenode.enable": "false",
		prefix + "monitor.namenode":             "near,far",
		prefix + "heartbeat.interval":           "500",
		prefix + "cache.ttl":                    "500ms",
		prefix + "safemode.enable":              "false",
		prefix + "store.driver.class":           "org.apache.hadoop.hdfs.server.federation.store.driver.impl.StateStoreFileImpl",
		prefix + "store.driver.file.directory":  filepath.Join(d.dir, "store"),
	})
	if err := p.Write(d.confDir(), "INFO"); err != nil {
		return "", err
	}
	clients := c.common()
	clients["fs.defaultFS"] = "hdfs://" + at(portRouterRPC)
	confDir = filepath.Join(d.dir, "clients")
	if err := clients.Write(confDir, "WARN"); err != nil {
		return "", err
	}
	withJars := func(cmd *exec.Cmd) *exec.Cmd {
		i := slices.Index(cmd.Args, "-cp")
		cmd.Args[i+1] += ":" + strings.Join(jars, ":")
		return cmd
	}
	d.command = func() (*exec.Cmd, error) {
		cmd, err := d.jvm()
		if err != nil {
			return nil, err
		}
		return withJars(cmd), nil
	}
	if err := d.start(); err != nil {
		return "", err
	}
	c.daemons = append(c.daemons, d)
	if err := d.listens(ctx, at(portRouterAdmin)); err != nil {
		return "", err
	}
	for _, path := range far {
		args := c.dist.Args(d.confDir(), "256m", "org.apache.hadoop.hdfs.tools.federation.RouterAdmin", c.javaOptions()...)
		cmd := withJars(exec.CommandContext(ctx, c.dist.Java, append(args, "-add", path, "far", path)...))
		cmd.Env = c.env()
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("mounting %s in the Router: %w\n%s", path, err, strings.TrimSpace(string(out)))
		}
	}
	return confDir, nil
}

// listens waits until a daemon takes connections at an address.
func (d *Daemon) listens(ctx context.Context, address string) error {
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		if !d.Running() {
			return fmt.Errorf("%s ended while it started; the end of its log:\n%s", d.name, d.tail())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s to listen: %w; the end of its log:\n%s", d.name, err, d.tail())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
