package runtime

import (
	"path"

	"holdfast/proto"
)

// completeProcesses decides how many processes run the program in each task of a role, and
// who starts them.
//
// A launcher starts them itself, and is told how many. A command that is neither a known
// launcher nor a Python script may be either, a shell script for one: it is started once,
// unless the user asks for several processes.
func (f *Framework) completeProcesses(spec *proto.JobSpec, r *proto.RoleSpec) {
	command, asked := Words(spec, r.Name), r.Processes > 0
	if !asked {
		r.Processes = 1
		if f.ProcessPerGPU && !f.observes(r.Name) {
			r.Processes = max(1, r.Gpus)
		}
	}
	r.Launcher = f.program(command) != "" || !asked && !runsPython(command)
}

// runsPython reports whether a command is a Python interpreter or a Python script, with
// its arguments.
func runsPython(command []string) bool {
	return len(command) > 0 && (pythonProgram.MatchString(path.Base(command[0])) || path.Ext(command[0]) == ".py")
}

// Processes returns how many processes a task of a role is started as. The spec is
// complete.
func Processes(spec *proto.JobSpec, role string) int {
	if r := findRole(spec, role); r != nil && !r.Launcher {
		return max(1, int(r.Processes))
	}
	return 1
}

// AsksForGPUs returns how many GPUs each task of a role asks for. others reports whether
// those of another role ask for some.
func AsksForGPUs(spec *proto.JobSpec, role string) (gpus int, others bool) {
	for _, r := range spec.Roles {
		if r.Name == role {
			gpus = int(r.Gpus)
		} else if r.Gpus > 0 {
			others = true
		}
	}
	return gpus, others
}
