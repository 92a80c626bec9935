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
	if name != "none" || why != "" {
		return name, why
	}
	for _, command := range commands(spec) {
		// Another program may start Python: horovodrun -np 2 python train.py.
		at := slices.IndexFunc(command, func(word string) bool { return python.MatchString(path.Base(word)) })
		script, _ := scriptOf(command[max(at, 0):])
		if path.Ext(script) != ".py" {
			continue
		}
		if imported, how := runtime.ImportedFramework(d.source(script)); imported != "" {
			return imported, script + " " + how
		}
	}
	return name, ""
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
