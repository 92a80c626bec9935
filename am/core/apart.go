package core

import (
	"slices"

	"holdfast/proto"
)

// apart names the containers with which one for a task must not share a node.
func (j *Job) apart(t *task) []string { return j.containersOf(t, t.role.Apart) }

// near names the containers beside which one for a task is wanted: those of the role's other
// tasks, where the role is packed.
func (j *Job) near(t *task) []string {
	return j.containersOf(t, func(o *proto.RoleSpec) bool { return t.role.Pack && o == t.role })
}

// containersOf names the containers of the other tasks of some roles, and those that stand in
// for such tasks.
func (j *Job) containersOf(t *task, some func(*proto.RoleSpec) bool) []string {
	if !slices.ContainsFunc(j.roles, some) { // as in most jobs, which may be large
		return nil
	}
	var list []string
	for _, o := range j.tasks {
		if o != t && o.loc.container != "" && some(o.role) {
			list = append(list, o.loc.container)
		}
	}
	for _, s := range j.spares {
		if s.task != nil && s.task != t && s.container != "" && some(s.task.role) {
			list = append(list, s.container)
		}
	}
	return list
}

// occupied reports whether a node has another task with which this one must not share it.
func (j *Job) occupied(t *task, node string) bool {
	return slices.ContainsFunc(j.roles, t.role.Apart) && j.any(func(o *task) bool {
		return o != t && o.loc.container != "" && o.loc.node == node && t.role.Apart(o.role)
	})
}
