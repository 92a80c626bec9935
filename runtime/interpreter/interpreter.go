// Package interpreter reads commands whose program is a Python interpreter or a shell: what they
// run.
package interpreter

import (
	"path"
	"regexp"
	"strings"
)

var (
	// Letters stand for what CPython was built with: t for threads without the GIL.
	pythonProgram = regexp.MustCompile(`^(?:python|pypy)(?:[0-9][0-9.]*[dmtu]*)?$`)
	shellProgram  = regexp.MustCompile(`^(?:ba|da|k|z)?sh$`)
)

// IsPython reports whether a program is a Python interpreter, by its name.
func IsPython(program string) bool { return pythonProgram.MatchString(path.Base(program)) }

// IsShell reports whether a program is a POSIX shell, by its name.
func IsShell(program string) bool { return shellProgram.MatchString(path.Base(program)) }

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

// ShellText returns the text that a shell runs by -c; "" if there is none.
func ShellText(command []string) string {
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
