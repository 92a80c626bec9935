package yarn

import (
	"cmp"
	"fmt"
	"slices"

	hadoop "holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

// placement is on which nodes the containers of a job's roles may be.
type placement struct {
	spec       *proto.JobSpec
	partitions []hadoop.Partition
	usual      string // label of requests that name none: the queue's default
}

// label returns the node label that asks for a role name, or for a spare container, whose
// role is empty; empty: none.
func (p placement) label(role string) string {
	if p.spec == nil {
		return ""
	}
	for _, r := range p.spec.Roles {
		if r.Name == role || role == "" { // spares are for roles with one label
			return cmp.Or(r.NodeLabel, p.spec.NodeLabel)
		}
	}
	return p.spec.NodeLabel
}

// spread returns the role itself if it is spread, so that no two of its containers are on
// one node; else it returns "".
func (p placement) spread(role string) string {
	if p.spec != nil && slices.ContainsFunc(p.spec.Roles, func(r *proto.RoleSpec) bool { return r.Name == role && r.Spread }) {
		return role
	}
	return ""
}

// banned returns the hosts on which no task may be.
func (p placement) banned() []string { return p.spec.GetAvoidNodes() }

func (p placement) bans(host string) bool { return slices.Contains(p.banned(), host) }

// several reports whether the job's containers are meant for more than one partition.
func (p placement) several() bool {
	if p.spec == nil {
		return false
	}
	for _, r := range p.spec.Roles {
		if p.label(r.Name) != p.label("") {
			return true
		}
	}
	return false
}

// words describes the nodes for which a request with a label is meant, after the word node;
// empty: those without a label.
func (p placement) words(label string) string {
	if label = p.partition(label); label == "" {
		return ""
	}
	return fmt.Sprintf(" with the label %q", label)
}

// partition returns the label of the nodes for which a request with a label is meant.
func (p placement) partition(label string) string { return cmp.Or(label, p.usual) }

// takes reports whether a node takes containers that are asked for with a label.
func (p placement) takes(n hadoop.Node, label string) bool {
	return hadoop.Takes(p.partitions, n.Label, p.partition(label))
}
