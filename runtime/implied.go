package runtime

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"holdfast/proto"
)

// ImpliedFramework returns the framework of a job that names none: the first that
// its options, roles or commands imply, and otherwise none. Where a command implies
// it, why says so to a person.
func ImpliedFramework(spec *proto.JobSpec) (name, why string) {
	commands := [][]string{spec.Command}
	for _, r := range spec.Roles {
		commands = append(commands, r.Command)
	}
	for _, f := range frameworks {
		if f.Implied != nil && f.Implied(spec) {
			return f.Name, ""
		}
	}
	for _, f := range frameworks {
		for _, command := range commands {
			if program := f.program(command); program != "" {
				return f.Name, "the command runs " + program
			}
		}
	}
	return none.Name, ""
}

var (
	pythonProgram = regexp.MustCompile(`^(?:python|pypy)[0-9.]*$`)
	shellProgram  = regexp.MustCompile(`^(?:ba|da|k|z)?sh$`)
)

// program returns what a command runs that implies the framework; "" if nothing does.
func (f *Framework) program(command []string) string {
	if len(command) == 0 {
		return ""
	}
	name := path.Base(command[0])
	switch {
	case slices.Contains(f.Commands, name):
		return name
	case pythonProgram.MatchString(name):
		for i, word := range command[1:] {
			switch {
			case word == "-m" && i+2 < len(command) && slices.Contains(f.LaunchModules, command[i+2]):
				return command[i+2]
			case !strings.HasPrefix(word, "-") || word == "-m" || word == "-c":
				return ""
			}
		}
	case shellProgram.MatchString(name) && len(command) > 2 && strings.HasPrefix(command[1], "-") && strings.HasSuffix(command[1], "c"):
		for _, word := range strings.Fields(command[2]) {
			if base := path.Base(word); slices.Contains(f.Commands, base) {
				return base
			}
		}
	}
	return ""
}

// imported are modules in a script's import statements, but for those in functions and
// the like, which it may never come to.
var imported = regexp.MustCompile(`(?m)^(?:import[ \t]+([\w., \t]+)|from[ \t]+([\w.]+)[ \t]+import\b)`)

// StartedAs reports whether programs of a framework are also started by the commands of
// another.
func StartedAs(framework, other string) bool {
	f := find(framework)
	return f != nil && f.StartedAs == other
}

// ImportedFramework returns the framework whose modules a Python script imports, and
// why, for a person; "" if it imports those of none, or of several of one precedence.
func ImportedFramework(script []byte) (name, why string) {
	var found *Framework
	several := false
	for _, m := range imported.FindAllSubmatch(script, -1) {
		for _, item := range strings.Split(string(m[1])+string(m[2]), ",") {
			module, _, _ := strings.Cut(strings.TrimSpace(item), " ") // import torch as t
			top, _, _ := strings.Cut(module, ".")
			for _, f := range frameworks {
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
