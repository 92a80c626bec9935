package testcluster

import (
	"strconv"
)

const loopback = "127.0.0.1"

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
func nodeHost(i int) string { return "127.0.0." + strconv.Itoa(2+i) }
