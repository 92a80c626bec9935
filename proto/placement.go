package proto

import (
	"slices"
	"time"
)

// Apart reports whether tasks of two roles, or two tasks of one, must not share a node.
func (r *RoleSpec) Apart(o *RoleSpec) bool {
	if r.Name == o.Name {
		return r.Spread
	}
	return slices.Contains(r.AntiAffinity, o.Name) || slices.Contains(o.AntiAffinity, r.Name)
}

// Avoiding returns the nodes that are avoided at a time.
func (s *JobStatus) Avoiding(now time.Time) []*AvoidedNode {
	var list []*AvoidedNode
	for _, n := range s.GetAvoidedNodes() {
		if n.UntilUnixMs == 0 || n.UntilUnixMs > now.UnixMilli() {
			list = append(list, n)
		}
	}
	return list
}
