package doctor

import (
	"fmt"
	"strings"

	"holdfast/doctor/check"
	"holdfast/internal/hadoop/yarn"
)

// diagnoseLabels reports the partitions of the cluster, and how many nodes run in each.
func diagnoseLabels(nodes []yarn.Node, partitions []yarn.Partition) check.Finding {
	f := check.Finding{Subject: "node labels", Level: check.Good, Text: "the cluster has none, and --node-label is refused"}
	if len(partitions) == 0 {
		return f
	}
	count, free := map[string]int{}, map[string]int64{}
	for _, n := range nodes {
		if n.Running() {
			count[n.Label]++
			free[n.Label] += n.Free().MemoryMB
		}
	}
	parts := []string{fmt.Sprintf("%s without (%s free)", nodesRun(count[""]), yarn.Megabytes(free[""]))}
	for _, p := range partitions {
		kind := "exclusive"
		if !p.Exclusive {
			kind = "lent to jobs that name none"
		}
		parts = append(parts, fmt.Sprintf("%s with %s (%s, %s free)", nodesRun(count[p.Label]), p.Label, kind, yarn.Megabytes(free[p.Label])))
		if count[p.Label] == 0 {
			f.Level = check.Note
		}
	}
	f.Text = strings.Join(parts, ", ") + ": choose with --node-label, of those that the queue may use"
	return f
}

func nodesRun(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}
