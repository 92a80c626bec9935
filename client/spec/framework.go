package spec

import (
	"fmt"
	"io"
	"os"
	"path"
	"slices"

	"holdfast/proto"
	"holdfast/runtime"
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
		script := startedScript(command)
		if script == "" {
			continue
		}
		imported, how := runtime.ImportedFramework(d.source(script))
		if imported != "" && (why == "" || runtime.StartedAs(imported, name)) {
			return imported, script + " " + how
		}
	}
	return name, why
}

// startedScript returns the Python script that a command runs, also where it is another
// program that starts Python, as in horovodrun -np 2 python train.py, or a launcher, as in
// torchrun train.py; empty if there is none.
func startedScript(command []string) string {
	at := slices.IndexFunc(command, func(word string) bool { return runtime.IsPython(word) })
	if script, _ := scriptOf(command[max(at, 0):]); path.Ext(script) == ".py" {
		return script
	}
	if at >= 0 && !slices.Contains(command[at:], "-m") {
		return ""
	}
	i := slices.IndexFunc(command, func(word string) bool { return path.Ext(word) == ".py" })
	if i < 0 {
		return ""
	}
	return command[i]
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
