// Package framework defines what there is to know of a framework: the contract of a Framework,
// of which there is one for each that is known (package frameworks, beside this one). What is
// done with jobs and their tasks asks the framework, and decides nothing by its name.
//
// The contract is in framework.go and failures.go. member.go has what a framework sees of a
// task and its peers; roles.go and limits.go are what frameworks read specs with.
package framework

import (
	"path"
	"slices"
	"strings"
	"time"

	"holdfast/proto"
	"holdfast/runtime/interpreter"
)

// Framework is what Holdfast knows about one framework. Except for Name, every
// field may be empty.
type Framework struct {
	Name  string // the value of JobSpec.framework
	Title string // the framework as its makers write it

	// Implied reports whether a job that names no framework is one of this
	// framework. Commands are programs that imply the same, by the base names
	// under which a command runs them; LaunchModules are Python modules that do where
	// python -m runs them, and Imports where a script imports them. Commands and
	// LaunchModules start the processes of a task themselves.
	Implied       func(*proto.JobSpec) bool
	Commands      []string
	LaunchModules []string
	Imports       []string
	// Precedence decides whose a script is that imports several: that of the highest.
	Precedence int
	// StartedAs is the framework whose commands start programs of this one, too: a script
	// that imports this one is of this one then.
	StartedAs string

	// AddRoles adds the roles that every job of the framework has.
	AddRoles func(*proto.JobSpec)
	// Observers are roles that are no members of the framework's cluster: they
	// have no rank, and neither their loss nor their end affects the others.
	// Each has the time for which its tasks may go on after the job has
	// succeeded, unless the user chooses another.
	Observers map[string]time.Duration
	// Rules returns the rules of a role that is no observer. Without it, every
	// task is restarted alone and must end successfully.
	Rules func(spec *proto.JobSpec, role string) (proto.LossRule, proto.CompletionRule)
	// SavesTogether reports whether ranks take SIGTERM as a sign to agree on a step at which
	// all of them save, and do not end by it. With one of them lost they cannot.
	SavesTogether func(*proto.JobSpec) bool
	// Check refuses what the framework would refuse, or wait for, later.
	Check func(*proto.JobSpec) error
	// Notes are about what is accepted and may not work.
	Notes func(*proto.JobSpec) []string
	// Elastic says that ranks can go on as another number of them, from a checkpoint.
	Elastic bool
	// Options are those options of a job that only this framework has.
	Options []Option

	// Defaults are environment variables of every task.
	Defaults map[string]string
	// Env returns the environment variables by which a task finds its peers.
	Env func(Member) map[string]string
	// Launch returns the command that an attempt is started with, given the user's.
	Launch func(spec *proto.JobSpec, m Member, command []string) []string
	// Placeholders are those that only this framework has.
	Placeholders func(Member) map[string]string
	// TensorBoard reports whether TensorBoard has the second port of a task.
	TensorBoard func(*proto.JobSpec, Task) bool
	// ProcessPerGPU says that scripts run as one process for each GPU of a task, unless
	// the user chooses another number. SharedGPUs says that processes of a task see all
	// its GPUs and choose one by LOCAL_RANK; otherwise each sees its own share only.
	ProcessPerGPU, SharedGPUs bool
	// TellsLaunchers says that launchers find in the environment how many processes they are
	// to start (Member.Launched).
	TellsLaunchers bool
	// Shim returns the settings of the framework's Python module in
	// runtime/python/_holdfast.
	Shim func(*proto.JobSpec) map[string]string
	// Warm is the Python module that warm interpreters import: it takes seconds
	// to import, and a forked process can use it.
	Warm string

	Failures  Failures
	Advice    []Advice
	ErrorFile *ErrorFile

	// Modules are the names of the framework's distributions on PyPI.
	Modules []string
}

// The values of Framework.Precedence beside 0.
const (
	Yields = -1 // its library often serves a single process of another framework's script
	Leads  = 1  // its scripts use others
)

// Option is an option of a job that one framework has.
type Option struct {
	Flag  string // --tf1
	For   string // what it is for, as in "it is for ..."
	Given func(*proto.JobSpec) bool
}

// Observes reports whether a role is one of Observers.
func (f *Framework) Observes(role string) bool {
	_, ok := f.Observers[role]
	return ok
}

// Program returns what a command runs that implies the framework; "" if nothing does.
func (f *Framework) Program(command []string) string {
	if len(command) == 0 {
		return ""
	}
	name := path.Base(command[0])
	switch {
	case slices.Contains(f.Commands, name):
		return name
	case interpreter.IsPython(command[0]):
		if module, _ := interpreter.PythonRuns(command); slices.Contains(f.LaunchModules, module) {
			return module
		}
	case interpreter.IsShell(command[0]):
		for _, word := range strings.Fields(interpreter.ShellText(command)) {
			if base := path.Base(word); slices.Contains(f.Commands, base) {
				return base
			}
		}
	}
	return ""
}
