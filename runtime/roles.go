package runtime

import "holdfast/proto"

func findRole(spec *proto.JobSpec, name string) *proto.RoleSpec {
	for _, r := range spec.Roles {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// hasRole reports whether a job has tasks of a role.
func hasRole(spec *proto.JobSpec, name string) bool { return roleCount(spec, name) > 0 }

// roleCount is how many tasks of a role a job has.
func roleCount(spec *proto.JobSpec, name string) int { return int(findRole(spec, name).GetCount()) }

// Words are the command of a role, which the spec has, before anything is put in.
func Words(spec *proto.JobSpec, role string) []string {
	if words := findRole(spec, role).Command; len(words) > 0 {
		return words
	}
	return spec.Command
}
