package yarn

import (
	"context"
	"fmt"
	"slices"
	"strings"

	wire "holdfast/internal/hadoop/wire/yarn"
)

// Partition is the nodes that have a node label. A node has at most one; those without
// are the default partition.
type Partition struct {
	Label string
	// Exclusive: only containers that ask for the label run there. Containers that ask for
	// none may use the idle nodes of another partition, until these are wanted.
	Exclusive bool
}

// Partitions returns those of the cluster, but for the default one, in the order of their
// labels; none where node labels are not enabled (yarn.node-labels.enabled).
func (c *Client) Partitions(ctx context.Context) ([]Partition, error) {
	var r wire.GetClusterNodeLabelsResponseProto
	if err := c.rpc.Call(ctx, "getClusterNodeLabels", &wire.GetClusterNodeLabelsRequestProto{}, &r); err != nil {
		return nil, fmt.Errorf("list the cluster's node labels: %w", err)
	}
	var list []Partition
	for _, l := range r.GetNodeLabels() {
		if l.GetName() != "" {
			list = append(list, Partition{Label: l.GetName(), Exclusive: l.GetIsExclusive()})
		}
	}
	slices.SortFunc(list, func(a, b Partition) int { return strings.Compare(a.Label, b.Label) })
	return list, nil
}

// Takes reports whether the nodes of a partition take containers that ask for a label: those
// with the label itself, and those of partitions that are not exclusive for containers that
// ask for none.
func Takes(partitions []Partition, partition, label string) bool {
	if partition == label {
		return true
	}
	return label == "" && slices.ContainsFunc(partitions, func(p Partition) bool { return p.Label == partition && !p.Exclusive })
}

// anyLabel stands for all labels among those of a queue (CommonNodeLabelsManager.ANY).
const anyLabel = "*"

// MayUse reports whether requests of the queue may name a label.
func (q Queue) MayUse(label string) bool {
	return label == "" || slices.Contains(q.Labels, anyLabel) || slices.Contains(q.Labels, label)
}

// HasRoom reports whether the queue has a share of a partition. Schedulers that do not tell
// the shares are taken to give one.
func (q Queue) HasRoom(label string) bool {
	share, known := q.LabelMax[label]
	return label == "" || !known || share > 0
}

// Usable returns the labels, of those of the cluster, that requests of the queue may name
// and get nodes for.
func (q Queue) Usable(partitions []Partition) []string {
	var list []string
	for _, p := range partitions {
		if q.MayUse(p.Label) && q.HasRoom(p.Label) {
			list = append(list, p.Label)
		}
	}
	return list
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}
