package testcluster

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

type properties map[string]string

// files tells which properties belong into which file; whatever has another
// prefix goes into core-site.xml.
var files = map[string][]string{
	"hdfs-site.xml":          {"dfs."},
	"capacity-scheduler.xml": {"yarn.scheduler.capacity."},
	"yarn-site.xml":          {"yarn."},
	"hadoop-policy.xml":      {"security."},
	"kms-site.xml":           {"hadoop.kms."},
	"kms-acls.xml":           {"hadoop.kms.acl.", "hadoop.kms.blacklist.", "default.key.acl.", "key.acl."},
}

const log4j = `log4j.rootLogger=%s,out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.target=System.err
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%%d{HH:mm:ss,SSS} %%p %%c{2}: %%m%%n
log4j.logger.org.apache.hadoop.util.NativeCodeLoader=ERROR
`

// write writes a configuration directory.
func (p properties) write(dir, logLevel string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making a configuration directory: %w", err)
	}
	sorted := map[string]*bytes.Buffer{}
	for _, file := range append(slices.Collect(maps.Keys(files)), "core-site.xml") {
		sorted[file] = bytes.NewBufferString("<configuration>\n")
	}
	for _, key := range slices.Sorted(maps.Keys(p)) {
		sorted[fileOf(key)].WriteString(propertyLine(key, p[key]))
	}
	for file, b := range sorted {
		b.WriteString("</configuration>\n")
		if err := os.WriteFile(filepath.Join(dir, file), b.Bytes(), 0o644); err != nil {
			return fmt.Errorf("writing the cluster's configuration: %w", err)
		}
	}
	return os.WriteFile(filepath.Join(dir, "log4j.properties"), fmt.Appendf(nil, log4j, logLevel), 0o644)
}

func propertyStart(key string) string { return "<property><name>" + escape(key) + "</name>" }

func propertyLine(key, value string) string {
	return propertyStart(key) + "<value>" + escape(value) + "</value></property>\n"
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder never fails
	return b.String()
}

func fileOf(key string) string {
	best, length := "core-site.xml", 0
	for file, prefixes := range files {
		for _, prefix := range prefixes {
			if strings.HasPrefix(key, prefix) && len(prefix) > length {
				best, length = file, len(prefix)
			}
		}
	}
	return best
}

// configure writes all configuration directories and lists the daemons.
func (c *Cluster) configure() error {
	common := c.common()
	maps.Copy(common, c.opts.Conf)
	if err := common.write(c.ConfDir(), "WARN"); err != nil {
		return err
	}
	if c.kdc != nil {
		c.daemons = append(c.daemons, &Daemon{cluster: c, name: "kdc", dir: c.kdc.dir, command: c.kdc.command})
	}
	if c.opts.KDCOnly {
		return nil
	}
	if err := c.Exclude(); err != nil {
		return err
	}
	add := func(name, class string, own properties) error {
		d := &Daemon{cluster: c, name: name, class: class, dir: filepath.Join(c.dir, name)}
		d.command = d.jvm
		c.daemons = append(c.daemons, d)
		p := maps.Clone(common)
		p["hadoop.tmp.dir"] = filepath.Join(d.dir, "tmp")
		maps.Copy(p, own)
		maps.Copy(p, c.opts.Conf)
		return p.write(d.confDir(), "INFO")
	}
	if err := c.addKMS(add); err != nil || c.opts.KMS != nil && c.opts.KMS.Alone {
		return err
	}
	for _, name := range c.nameNodes() {
		nn := properties{"dfs.namenode.name.dir": "file://" + filepath.Join(c.dir, name, "data")}
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
		own := properties{}
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
func (c *Cluster) common() properties {
	at := func(place int) string { return c.ports.addr(loopback, place) }
	p := properties{
		"fs.defaultFS":                          c.HDFS(),
		"hadoop.tmp.dir":                        filepath.Join(c.dir, "tmp"),
		"dfs.replication":                       "2",
		"dfs.namenode.http-address":             at(portNNWeb),
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

func (c *Cluster) dataNode(i int) properties {
	at := func(place int) string { return c.ports.addr(loopback, portDN(i)+place) }
	return properties{
		"dfs.datanode.hostname":     loopback,
		"dfs.datanode.address":      at(0),
		"dfs.datanode.http.address": at(1),
		"dfs.datanode.ipc.address":  at(2),
		"dfs.datanode.data.dir":     "file://" + filepath.Join(c.dir, fmt.Sprintf("dn%d", i), "data"),
	}
}

func (c *Cluster) nodeManager(i int) properties {
	at := func(place int) string { return c.ports.addr(nodeHost(i), c.portNM(i)+place) }
	dir := c.nodeDir(i)
	return properties{
		"yarn.nodemanager.hostname":           nodeHost(i),
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
	return filepath.Join(c.dir, nodesDir, fmt.Sprintf("nm%d", i))
}
