package proto

import "slices"

// Apart reports whether tasks of two roles, or two tasks of one, must not share a node.
func (r *RoleSpec) Apart(o *RoleSpec) bool {
	if r.Name == o.Name {
		return r.Spread
	}
	return slices.Contains(r.AntiAffinity, o.Name) || slices.Contains(o.AntiAffinity, r.Name)
}
