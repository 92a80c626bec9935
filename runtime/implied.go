package runtime

import (
	"bytes"
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
	// Letters stand for what CPython was built with: t for threads without the GIL.
	pythonProgram = regexp.MustCompile(`^(?:python|pypy)(?:[0-9][0-9.]*[dmtu]*)?$`)
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
	case IsPython(command[0]):
		if module, _ := PythonRuns(command); slices.Contains(f.LaunchModules, module) {
			return module
		}
	case shellProgram.MatchString(name):
		for _, word := range strings.Fields(shellText(command)) {
			if base := path.Base(word); slices.Contains(f.Commands, base) {
				return base
			}
		}
	}
	return ""
}

// launches reports whether a command starts the processes of a task itself.
func (f *Framework) launches(command []string) bool {
	other := find(f.StartedAs)
	return f.program(command) != "" || other != nil && other.program(command) != ""
}

// IsPython reports whether a program is a Python interpreter, by its name.
func IsPython(program string) bool { return pythonProgram.MatchString(path.Base(program)) }

// PythonRuns returns what a command whose program is a Python interpreter runs: a module, by
// -m, or a script; neither if it is a text, by -c, or what comes from standard input.
func PythonRuns(command []string) (module, script string) {
	for i := 1; i < len(command); i++ {
		word := command[i]
		switch {
		case word == "" || word == "-":
			return "", ""
		case !strings.HasPrefix(word, "-"):
			return "", word
		case word == "--check-hash-based-pycs":
			i++
			continue
		case word == "--":
			return "", strings.Join(command[min(i+1, len(command)):min(i+2, len(command))], "")
		case strings.HasPrefix(word, "--"):
			return "", ""
		}
		// Letters, of which one that has a value is the last: what follows it, or the next word.
		at := strings.IndexAny(word, "cmWX")
		if at < 0 {
			continue
		}
		value := word[at+1:]
		if value == "" {
			i++
			value = strings.Join(command[min(i, len(command)):min(i+1, len(command))], "")
		}
		switch word[at] {
		case 'c':
			return "", ""
		case 'm':
			return value, ""
		}
	}
	return "", ""
}

// shellText returns the text that a shell runs by -c; "" if there is none.
func shellText(command []string) string {
	text := false
	for i := 1; i < len(command); i++ {
		switch word := command[i]; {
		case word == "--rcfile" || word == "--init-file":
			i++
		case strings.HasPrefix(word, "--") && word != "--":
		case word != "--" && len(word) > 1 && (word[0] == '-' || word[0] == '+'):
			text = text || word[0] == '-' && strings.Contains(word, "c")
			if strings.ContainsAny(word, "oO") { // the option's name
				i++
			}
		default:
			if word == "--" {
				i++
			}
			if text && i < len(command) {
				return command[i]
			}
			return ""
		}
	}
	return ""
}

// imported are modules in a script's import statements, but for those in functions and
// the like, which it may never come to. A statement may be lazy (PEP 810).
var imported = regexp.MustCompile(`(?m)^(?:lazy[ \t]+)?(?:import[ \t]+([\w., \t]+)|from[ \t]+([\w.]+)[ \t]+import\b)`)

// byteOrderMark may stand at the beginning of a script.
var byteOrderMark = []byte("\ufeff")

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
	for _, m := range imported.FindAllSubmatch(bytes.TrimPrefix(script, byteOrderMark), -1) {
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
