package testcluster

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"holdfast/test/testcluster/processes"
)

// A node is given by its NodeManager, nm0 and so on. Beside nm0 is the DataNode dn0.

// NodeManager returns the NodeManager of a host, by the name that YARN has of that:
// 127.0.0.2 is the host of nm0. It panics if there is none.
func (c *Cluster) NodeManager(host string) *Daemon {
	last, _ := strconv.Atoi(host[strings.LastIndexByte(host, '.')+1:]) // no daemon has a number that this cannot read
	return c.Daemon(fmt.Sprintf("nm%d", last-2))
}

// DataNode returns the DataNode of a node.
func (c *Cluster) DataNode(node *Daemon) *Daemon {
	return c.Daemon(strings.Replace(node.Name(), "nm", "dn", 1))
}

// ProcessesOn returns the processes of all containers on a node.
func (c *Cluster) ProcessesOn(node *Daemon) ([]int, error) {
	all, err := c.Containers()
	var pids []int
	for _, k := range all {
		if k.Node == node.Name() {
			pids = append(pids, k.PIDs...)
		}
	}
	return pids, err
}

// KillNode kills all that a node runs: its containers, its NodeManager and its DataNode.
func (c *Cluster) KillNode(node *Daemon) error {
	pids, err := c.ProcessesOn(node)
	if err != nil {
		return err
	}
	err = errors.Join(c.DataNode(node).Kill(), node.Kill())
	for _, pid := range pids {
		err = errors.Join(err, processes.Kill(pid))
	}
	return err
}
