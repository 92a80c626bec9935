package runtime

import (
	"path"
	"strings"

	"holdfast/proto"
	"holdfast/runtime/framework"
	"holdfast/runtime/frameworks"
	"holdfast/runtime/interpreter"
)

// completeProcesses decides how many processes run the program in each task of a role, and
// who starts them.
//
// A launcher starts them itself, and is told how many. A command that is neither a known
// launcher nor a Python script may be either, a shell script for one: it is started once,
// unless the user asks for several processes.
func completeProcesses(f *framework.Framework, spec *proto.JobSpec, r *proto.RoleSpec) {
	command, asked := framework.Words(spec, r.Name), r.Processes > 0
	if !asked {
		r.Processes = 1
		if f.ProcessPerGPU && !f.Observes(r.Name) {
			r.Processes = max(1, r.Gpus)
		}
	}
	r.Launcher = launches(f, command) || !asked && !runsPython(command)
}

// runsPython reports whether a command is a Python interpreter or a Python script, with
// its arguments.
func runsPython(command []string) bool {
	return len(command) > 0 && (interpreter.IsPython(command[0]) || path.Ext(command[0]) == ".py")
}

// Processes returns how many processes a task of a role is started as. The spec is
// complete.
func Processes(spec *proto.JobSpec, role string) int {
	if r := framework.FindRole(spec, role); r != nil && !r.Launcher {
		return max(1, int(r.Processes))
	}
	return 1
}

// launchedProcesses returns how many processes a task of a role runs the program as, whether
// it is started as them or starts them. The spec is complete.
func launchedProcesses(spec *proto.JobSpec, role string) int {
	return max(1, int(framework.FindRole(spec, role).GetProcesses()))
}

// mostProcesses is how many processes the tasks of all members run the program as, whoever
// starts them, where no task is absent.
func mostProcesses(spec *proto.JobSpec) int {
	f, n := frameworks.Of(spec), 0
	for _, r := range spec.Roles {
		if !f.Observes(r.Name) {
			each := Processes(spec, r.Name)
			if f.TellsLaunchers {
				each = launchedProcesses(spec, r.Name)
			}
			n += int(r.Count) * each
		}
	}
	return n
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

// Variables by which CUDA limits a process to GPUs, and numbers them.
const (
	visibleGPUs = "CUDA_VISIBLE_DEVICES"
	orderOfGPUs = "CUDA_DEVICE_ORDER"
)

// noGPU as the value of CUDA_VISIBLE_DEVICES hides all: CUDA ignores what stands after a
// number that no device has.
const noGPU = "-1"

// gpus returns the variables that limit one of a task's processes to GPUs.
func gpus(f *framework.Framework, a framework.Attempt, processes int) map[string]string {
	if a.GPUs == nil {
		return nil
	}
	own := a.GPUs
	if !f.SharedGPUs {
		own = share(own, a.Local, processes)
	}
	visible := strings.Join(own, ",")
	if visible == "" {
		visible = noGPU
	}
	return map[string]string{visibleGPUs: visible, orderOfGPUs: "PCI_BUS_ID"}
}

// share returns the part of a list for one of several processes: neighbours, and as many
// for each as for any other, give or take one. Where there are more processes than items,
// some share one.
func share(list []string, process, processes int) []string {
	if len(list) == 0 {
		return nil
	}
	from := process * len(list) / processes
	return list[from:max(from+1, (process+1)*len(list)/processes)]
}
