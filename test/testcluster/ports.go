package testcluster

import (
	"path/filepath"
	"strconv"
)

const loopback = "127.0.0.1"

// IPv6Host is the name that the daemons of a cluster with IPv6 have for ::1. Hadoop's daemons do
// not start with addresses instead of names: they take them apart at colons
// (NameNodeUtils.getClientNamenodeAddress, NetUtils.createSocketAddr), and make URLs of them
// without brackets (HttpServer2).
const IPv6Host = "ip6.test"

// hostsFile is where JVMs with IPv6 find the addresses of names (jdk.net.hosts.file).
func (c *Cluster) hostsFile() string { return filepath.Join(c.dir, "hosts") }

// loopback returns the host of the daemons but for NodeManagers.
func (c *Cluster) loopback() string {
	if c.opts.IPv6 {
		return IPv6Host
	}
	return loopback
}

// reached returns how a place of the cluster's ports is reached by who does not know its names.
func (c *Cluster) reached(place int) string {
	if c.opts.IPv6 {
		return c.ports.Addr("::1", place)
	}
	return c.at(place)
}

// at returns the address of a place of the cluster's ports.
func (c *Cluster) at(place int) string { return c.ports.Addr(c.loopback(), place) }

// The places of ports in a block. DataNodes and NodeManagers have three each; a
// second ResourceManager comes after them.
const (
	portNNRPC = iota
	portNNWeb
	portRM
	portRMScheduler
	portRMTracker
	portRMAdmin
	portRMWeb
	portKDC
	portNN1RPC
	portNN1Web
	portDNs = 10
)

func portDN(i int) int              { return portDNs + 3*i }
func (c *Cluster) portNM(i int) int { return portDN(c.opts.DataNodes) + 3*i }
func portsNeeded(opts Options) int {
	n := portDN(opts.DataNodes) + 3*opts.NodeManagers
	if opts.pair() {
		n += portRMWeb - portRM + 1
	}
	if opts.KMS != nil {
		n++
	}
	return n
}

// nodeHost returns the address of a NodeManager's host.
func (c *Cluster) nodeHost(i int) string {
	if c.opts.IPv6 {
		return IPv6Host
	}
	return nodeHost(i)
}

func nodeHost(i int) string { return "127.0.0." + strconv.Itoa(2+i) }
