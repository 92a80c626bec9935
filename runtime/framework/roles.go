package framework

import "holdfast/proto"

// FindRole returns a role of a job by its name; nil if there is none.
func FindRole(spec *proto.JobSpec, name string) *proto.RoleSpec {
	for _, r := range spec.Roles {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// HasRole reports whether a job has tasks of a role.
func HasRole(spec *proto.JobSpec, name string) bool { return RoleCount(spec, name) > 0 }

// RoleCount is how many tasks of a role a job has.
func RoleCount(spec *proto.JobSpec, name string) int { return int(FindRole(spec, name).GetCount()) }

// Words are the command of a role, which the spec has, before anything is put in.
func Words(spec *proto.JobSpec, role string) []string {
	if words := FindRole(spec, role).Command; len(words) > 0 {
		return words
	}
	return spec.Command
}
