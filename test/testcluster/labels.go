package testcluster

import (
	"context"
	"fmt"
	"strings"
)

// Partitions is the configuration of a cluster with node labels. The queue default may use
// all nodes, the queue small those without a label only. Label gives the nodes labels.
func Partitions(labels ...string) map[string]string {
	const root = "yarn.scheduler.capacity.root."
	conf := map[string]string{
		"yarn.node-labels.enabled":              "true",
		"yarn.node-labels.fs-store.root-dir":    "file://${hadoop.tmp.dir}/node-labels",
		root + "accessible-node-labels":         "*",
		root + "default.accessible-node-labels": strings.Join(labels, ","),
		root + "small.accessible-node-labels":   " ", // none; where it is missing, its parent's
	}
	for _, l := range labels {
		conf[root+"accessible-node-labels."+l+".capacity"] = "100"
		conf[root+"default.accessible-node-labels."+l+".capacity"] = "100"
	}
	return conf
}

// Label adds node labels to the cluster, as "gpu(exclusive=false)", and gives them to
// NodeManagers, by name: "gpu" for nm1.
func (c *Cluster) Label(ctx context.Context, labels []string, of map[string]string) error {
	if _, err := c.Hadoop(ctx, "rmadmin", "-addToClusterNodeLabels", strings.Join(labels, ",")); err != nil {
		return err
	}
	var list []string
	for i := range c.opts.NodeManagers {
		if l, ok := of[fmt.Sprintf("nm%d", i)]; ok {
			list = append(list, nodeHost(i)+"="+l)
		}
	}
	_, err := c.Hadoop(ctx, "rmadmin", "-replaceLabelsOnNode", strings.Join(list, " "))
	return err
}
