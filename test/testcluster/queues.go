package testcluster

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// OtherQueue is the second queue of TwoQueues.
const OtherQueue = "other"

// TwoQueues is the configuration of a cluster of which the queue default has a
// share, in percent, and OtherQueue the rest. Each may use what the other leaves
// to it; who wants its share gets it, and the scheduler takes containers back 10 s
// after it said so.
func TwoQueues(share int) map[string]string {
	const capacity = "yarn.scheduler.capacity.root."
	const preemption = "yarn.resourcemanager.monitor.capacity.preemption."
	return map[string]string{
		capacity + "queues":                             "default," + OtherQueue,
		capacity + "default.capacity":                   strconv.Itoa(share),
		capacity + "default.user-limit-factor":          "3",
		capacity + OtherQueue + ".capacity":             strconv.Itoa(100 - share),
		"yarn.resourcemanager.scheduler.monitor.enable": "true",
		preemption + "monitoring_interval":              "500",
		preemption + "max_wait_before_kill":             "10000",
		preemption + "total_preemption_per_round":       "1.0",
		preemption + "natural_termination_factor":       "1.0",
		preemption + "max_ignored_over_capacity":        "0.0",
	}
}

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
			list = append(list, c.nodeHost(i)+"="+l)
		}
	}
	_, err := c.Hadoop(ctx, "rmadmin", "-replaceLabelsOnNode", strings.Join(list, " "))
	return err
}
