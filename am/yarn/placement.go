package yarn

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	hadoop "holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

// placement is on which nodes the containers of a job's roles may be.
type placement struct {
	spec       *proto.JobSpec
	partitions []hadoop.Partition
	usual      string // label of requests that name none: the queue's default
}

// label returns the node label that asks for a role name; empty: none. Those for no role of the
// job are for spare containers, which there are only where all roles have one label.
func (p placement) label(role string) string {
	r := p.role(role)
	if roles := p.spec.GetRoles(); r == nil && len(roles) > 0 {
		r = roles[0]
	}
	return cmp.Or(r.GetNodeLabel(), p.spec.GetNodeLabel())
}

// role returns a role of the job; nil if there is none of that name.
func (p placement) role(name string) *proto.RoleSpec {
	i := slices.IndexFunc(p.spec.GetRoles(), func(r *proto.RoleSpec) bool { return r.Name == name })
	if i < 0 {
		return nil
	}
	return p.spec.Roles[i]
}

// ruled returns the role itself if a rule says where its containers are with respect to
// others; else it returns "".
func (p placement) ruled(role string) string {
	if p.packs(role) || p.separates(role) {
		return role
	}
	return ""
}

// apart reports whether containers of two roles, or two of one, must not share a node.
func (p placement) apart(role, other string) bool {
	r, o := p.role(role), p.role(other)
	return r != nil && o != nil && r.Apart(o)
}

// spreads reports whether no two containers of the role may share a node.
func (p placement) spreads(role string) bool { return p.apart(role, role) }

// packs reports whether the role's containers are wanted on one node.
func (p placement) packs(role string) bool { return p.role(role).GetPack() }

// separates reports whether a rule keeps the role's containers off nodes.
func (p placement) separates(role string) bool {
	return slices.ContainsFunc(p.spec.GetRoles(), func(o *proto.RoleSpec) bool { return p.apart(role, o.Name) })
}

// rules names the options that keep a role's containers off nodes.
func (p placement) rules(role string) string {
	var list []string
	for _, o := range p.spec.GetRoles() {
		switch {
		case !p.apart(role, o.Name):
		case o.Name == role:
			list = append(list, "--"+role+"-spread")
		default:
			list = append(list, "not with "+o.Name+": --ROLE-anti-affinity")
		}
	}
	return strings.Join(list, ", ")
}

// banned returns the hosts on which no task may be.
func (p placement) banned() []string { return p.spec.GetAvoidNodes() }

func (p placement) bans(host string) bool { return slices.Contains(p.banned(), host) }

// several reports whether the job's containers are meant for more than one partition.
func (p placement) several() bool {
	for _, r := range p.spec.GetRoles() {
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
