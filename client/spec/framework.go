package spec

import (
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"holdfast/proto"
	"holdfast/runtime"
	"holdfast/runtime/interpreter"
)

// FrameworkNote says which framework a job is taken to be of that names none, if its
// commands or scripts say so; "" if they do not, or it names one. spec is the draft's.
func (d *Draft) FrameworkNote(spec *proto.JobSpec) string {
	if d.Job.Framework != "" {
		return ""
	}
	name, why := d.impliedFramework(spec)
	if why == "" {
		return ""
	}
	return fmt.Sprintf("the framework is taken to be %s, because %s; --framework names another one, or none", name, why)
}

// impliedFramework is the framework of a job that names none, and why, where its commands
// or the scripts that they run say so.
func (d *Draft) impliedFramework(spec *proto.JobSpec) (name, why string) {
	name, why = runtime.ImpliedFramework(spec)
	if name != "none" && why == "" {
		return name, ""
	}
	for _, command := range commands(spec) {
		for _, script := range startedScripts(command) {
			imported, how := runtime.ImportedFramework(d.source(script))
			if imported != "" && (why == "" || runtime.StartedAs(imported, name)) {
				return imported, script + " " + how
			}
		}
	}
	return name, why
}

// startedScripts returns the files that may be the Python script that a command runs, the
// likeliest first, also where it is another program that starts Python, as in horovodrun -np 2
// python train.py, or a launcher, as in torchrun train.py.
func startedScripts(command []string) []string {
	at := slices.IndexFunc(command, interpreter.IsPython)
	if at < 0 {
		if script, _ := scriptOf(command); path.Ext(script) == ".py" {
			return []string{script}
		}
		return launchedScripts(command)
	}
	command = command[at:]
	switch module, script := interpreter.PythonRuns(command); {
	case path.Ext(script) == ".py":
		return []string{script}
	case script != "": // a directory, for one
		return []string{path.Join(script, mainFile)}
	case module != "": // it may be a launcher's
		at = slices.IndexFunc(command, func(word string) bool { return strings.HasSuffix(word, module) })
		return append(moduleFiles(module), launchedScripts(command[at+1:])...)
	}
	return nil
}

// launchedScripts are those among the arguments of a launcher.
func launchedScripts(command []string) []string {
	for i, word := range command {
		switch {
		case path.Ext(word) == ".py":
			return []string{word}
		case word == "-m" && i+1 < len(command):
			return moduleFiles(command[i+1])
		}
	}
	return nil
}

// mainFile is what Python runs of a directory.
const mainFile = "__main__.py"

// moduleFiles are the files that a module may be.
func moduleFiles(module string) []string {
	name := strings.ReplaceAll(module, ".", "/")
	return []string{name + ".py", path.Join(name, mainFile)}
}

// source is the beginning of a script, by the name that a command has for it, as far as it
// is here.
func (d *Draft) source(script string) []byte {
	const most = 1 << 20
	file := script
	for _, in := range d.Inputs {
		if name := path.Clean(script); !in.Archive && isWithin(name, in.Name) {
			file = in.Path + name[len(in.Name):]
		}
	}
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil { // a directory, for one
		return nil
	}
	return b
}
