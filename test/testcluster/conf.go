package testcluster

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"holdfast/test/testcluster/processes"
	"holdfast/test/testcluster/properties"
)

// configure writes all configuration directories and lists the daemons.
func (c *Cluster) configure() error {
	if c.opts.IPv6 {
		own, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("writing the hosts of the cluster: %w", err)
		}
		if err := os.WriteFile(c.hostsFile(), []byte("::1 "+IPv6Host+"\n::1 "+own+"\n"), 0o644); err != nil {
			return fmt.Errorf("writing the hosts of the cluster: %w", err)
		}
	}
	common := c.common()
	maps.Copy(common, c.opts.Conf)
	if err := common.Write(c.ConfDir(), "WARN"); err != nil {
		return err
	}
	if c.kdc != nil {
		c.daemons = append(c.daemons, &Daemon{cluster: c, name: "kdc", dir: c.kdc.Dir, command: c.kdc.Command})
	}
	if c.opts.KDCOnly {
		return nil
	}
	if err := c.Exclude(); err != nil {
		return err
	}
	add := func(name, class string, own properties.Set) error {
		d := &Daemon{cluster: c, name: name, class: class, dir: filepath.Join(c.dir, name)}
		d.command = d.jvm
		c.daemons = append(c.daemons, d)
		p := maps.Clone(common)
		p["hadoop.tmp.dir"] = filepath.Join(d.dir, "tmp")
		maps.Copy(p, own)
		maps.Copy(p, c.opts.Conf)
		return p.Write(d.confDir(), "INFO")
	}
	if err := c.addKMS(add); err != nil || c.opts.KMS != nil && c.opts.KMS.Alone {
		return err
	}
	for _, name := range c.nameNodes() {
		nn := properties.Set{"dfs.namenode.name.dir": "file://" + filepath.Join(c.dir, name, "data")}
		if c.kdc != nil {
			nn["hadoop.http.authentication.type"] = "kerberos" // for WebHDFS
		}
		if c.opts.Standby {
			nn["dfs.ha.namenode.id"] = name
		}
		if err := add(name, "org.apache.hadoop.hdfs.server.namenode.NameNode", nn); err != nil {
			return err
		}
	}
	for _, name := range c.rmNames() {
		own := properties.Set{}
		if c.opts.pair() {
			own["yarn.resourcemanager.ha.id"] = name
		}
		if c.kdc != nil { // its pages, and its proxy, ask who one is
			own["hadoop.http.authentication.type"] = "kerberos"
			own["hadoop.http.filter.initializers"] = "org.apache.hadoop.security.AuthenticationFilterInitializer"
		}
		if err := add(name, rmClass, own); err != nil {
			return err
		}
	}
	for i := range c.opts.DataNodes {
		if err := add(fmt.Sprintf("dn%d", i), "org.apache.hadoop.hdfs.server.datanode.DataNode", c.dataNode(i)); err != nil {
			return err
		}
	}
	for i := range c.opts.NodeManagers {
		if err := add(fmt.Sprintf("nm%d", i), "org.apache.hadoop.yarn.server.nodemanager.NodeManager", c.nodeManager(i)); err != nil {
			return err
		}
	}
	return nil
}

// common is what clients and daemons share. What is not here is as Hadoop
// ships it.
func (c *Cluster) common() properties.Set {
	p := properties.Set{
		"fs.defaultFS":                          c.HDFS(),
		"hadoop.tmp.dir":                        filepath.Join(c.dir, "tmp"),
		"dfs.replication":                       "2",
		"dfs.namenode.http-address":             c.at(portNNWeb),
		"dfs.namenode.fs-limits.min-block-size": "4096",
		"dfs.namenode.safemode.extension":       "0",
		// Tests say how many DataNodes a file is to have: none is left out because another
		// test has just written there (BlockPlacementPolicyDefault, the factor of the average load).
		"dfs.namenode.redundancy.considerLoad":                 "false",
		"dfs.namenode.heartbeat.recheck-interval":              "2000", // ms; a lost DataNode is dead after 14 s instead of 10 min
		"dfs.heartbeat.interval":                               "1",    // s
		"dfs.namenode.datanode.registration.ip-hostname-check": "false",

		"yarn.resourcemanager.nodes.exclude-path":             c.excludeFile(),
		"yarn.node-attribute.fs-store.root-dir":               "file://${hadoop.tmp.dir}/node-attribute", // not one for all clusters of a host
		"yarn.resourcemanager.am.max-attempts":                "2",
		"yarn.nm.liveness-monitor.expiry-interval-ms":         "10000",
		"yarn.am.liveness-monitor.expiry-interval-ms":         "20000",
		"yarn.scheduler.minimum-allocation-mb":                "64",
		"yarn.scheduler.maximum-allocation-mb":                "8192",
		"yarn.scheduler.maximum-allocation-vcores":            "4",
		"yarn.application.classpath":                          c.ConfDir() + "," + filepath.Join(c.dist.Lib, "*"),
		"yarn.scheduler.capacity.root.queues":                 "default,small",
		"yarn.scheduler.capacity.root.default.capacity":       "90",
		"yarn.scheduler.capacity.root.small.capacity":         "10",
		"yarn.scheduler.capacity.root.small.maximum-capacity": "10",
		"yarn.scheduler.capacity.maximum-am-resource-percent": "0.5",
	}
	maps.Copy(p, c.resourceManagers())
	if c.opts.Standby {
		maps.Copy(p, c.standbyProperties())
	}
	if c.opts.Security != nil {
		maps.Copy(p, c.opts.Security.properties(c.kdc))
	}
	if c.opts.KMS != nil {
		p["hadoop.security.key.provider.path"] = c.KeyProvider()
	}
	return p
}

func (c *Cluster) dataNode(i int) properties.Set {
	at := func(place int) string { return c.at(portDN(i) + place) }
	return properties.Set{
		"dfs.datanode.hostname":     c.loopback(),
		"dfs.datanode.address":      at(0),
		"dfs.datanode.http.address": at(1),
		"dfs.datanode.ipc.address":  at(2),
		"dfs.datanode.data.dir":     "file://" + filepath.Join(c.dir, fmt.Sprintf("dn%d", i), "data"),
	}
}

func (c *Cluster) nodeManager(i int) properties.Set {
	at := func(place int) string { return c.ports.Addr(c.nodeHost(i), c.portNM(i)+place) }
	dir := c.nodeDir(i)
	return properties.Set{
		"yarn.nodemanager.hostname":           c.nodeHost(i),
		"yarn.nodemanager.address":            at(0),
		"yarn.nodemanager.localizer.address":  at(1),
		"yarn.nodemanager.webapp.address":     at(2),
		"yarn.nodemanager.local-dirs":         filepath.Join(dir, "local"),
		"yarn.nodemanager.log-dirs":           filepath.Join(dir, "logs"),
		"yarn.nodemanager.resource.memory-mb": "8192",
		// The scheduler counts memory alone, and a NodeManager cores, too: it keeps a
		// container waiting, without a word, for which it has none.
		"yarn.nodemanager.resource.cpu-vcores":                                          "32",
		"yarn.nodemanager.vmem-check-enabled":                                           "false",
		"yarn.nodemanager.delete.debug-delay-sec":                                       "0",
		"yarn.resourcemanager.connect.retry-interval.ms":                                "500", // it starts together with the ResourceManager
		"yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99.5",
	}
}

// nodeDir is where a NodeManager keeps its containers.
func (c *Cluster) nodeDir(i int) string {
	return filepath.Join(c.dir, processes.NodesDir, fmt.Sprintf("nm%d", i))
}

// Reconfigure sets properties for clients and all daemons, over those that are
// set, restarts the daemons that they concern, and returns when they serve again:
// those of HDFS, and those of YARN too unless all the properties are HDFS's own.
// An empty value takes a property away.
func (c *Cluster) Reconfigure(ctx context.Context, change map[string]string) error {
	if err := c.Configure(change); err != nil {
		return err
	}
	yarn := false
	for key := range change {
		yarn = yarn || properties.FileOf(key) != "hdfs-site.xml"
	}
	var restart []*Daemon
	for _, d := range c.daemons {
		if d.name == "kdc" {
			continue
		}
		if yarn || strings.HasPrefix(d.name, "nn") || strings.HasPrefix(d.name, "dn") {
			restart = append(restart, d)
		}
	}
	for _, d := range restart {
		if err := d.Kill(); err != nil {
			return err
		}
	}
	for _, d := range restart {
		if err := d.start(); err != nil {
			return err
		}
	}
	return c.ready(ctx, "")
}

// Configure sets properties for clients, and for each daemon from its next start
// on. An empty value takes a property away.
func (c *Cluster) Configure(change map[string]string) error {
	dirs := []string{c.ConfDir()}
	for _, d := range c.daemons {
		if d.name != "kdc" {
			dirs = append(dirs, d.confDir())
		}
	}
	for _, dir := range dirs {
		if err := properties.Set(change).Amend(dir); err != nil {
			return err
		}
	}
	return nil
}
