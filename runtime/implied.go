package runtime

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"holdfast/proto"
	"holdfast/runtime/framework"
	"holdfast/runtime/frameworks"
)

// FrameworkNames are the values of JobSpec.framework.
func FrameworkNames() []string {
	var names []string
	for _, f := range frameworks.All {
		names = append(names, f.Name)
	}
	return names
}

// ImpliedFramework returns the framework of a job that names none: the first that
// its options, roles or commands imply, and otherwise none. Where a command implies
// it, why says so to a person.
func ImpliedFramework(spec *proto.JobSpec) (name, why string) {
	commands := [][]string{spec.Command}
	for _, r := range spec.Roles {
		commands = append(commands, r.Command)
	}
	for _, f := range frameworks.All {
		if f.Implied != nil && f.Implied(spec) {
			return f.Name, ""
		}
	}
	for _, f := range frameworks.All {
		for _, command := range commands {
			if program := f.Program(command); program != "" {
				return f.Name, "the command runs " + program
			}
		}
	}
	return frameworks.None.Name, ""
}

// launches reports whether a command starts the processes of a task itself.
func launches(f *framework.Framework, command []string) bool {
	other := frameworks.Named(f.StartedAs)
	return f.Program(command) != "" || other != nil && other.Program(command) != ""
}

// imported are modules in a script's import statements, but for those in functions and
// the like, which it may never come to. A statement may be lazy (PEP 810).
var imported = regexp.MustCompile(`(?m)^(?:lazy[ \t]+)?(?:import[ \t]+([\w., \t]+)|from[ \t]+([\w.]+)[ \t]+import\b)`)

// byteOrderMark may stand at the beginning of a script.
var byteOrderMark = []byte("\ufeff")

// StartedAs reports whether programs of a framework are also started by the commands of
// another.
func StartedAs(framework, other string) bool {
	f := frameworks.Named(framework)
	return f != nil && f.StartedAs == other
}

// ImportedFramework returns the framework whose modules a Python script imports, and
// why, for a person; "" if it imports those of none, or of several of one precedence.
func ImportedFramework(script []byte) (name, why string) {
	var found *framework.Framework
	several := false
	for _, m := range imported.FindAllSubmatch(bytes.TrimPrefix(script, byteOrderMark), -1) {
		for _, item := range strings.Split(string(m[1])+string(m[2]), ",") {
			module, _, _ := strings.Cut(strings.TrimSpace(item), " ") // import torch as t
			top, _, _ := strings.Cut(module, ".")
			for _, f := range frameworks.All {
				switch {
				case !slices.Contains(f.Imports, top) || f == found:
				case found == nil || f.Precedence > found.Precedence:
					found, several, why = f, false, fmt.Sprintf("imports %s", top)
				case f.Precedence == found.Precedence:
					several = true
				}
			}
		}
	}
	if found == nil || several {
		return "", ""
	}
	return found.Name, why
}
