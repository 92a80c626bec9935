package warm

import (
	"slices"
	"strings"
	"unicode/utf8"

	"holdfast/container/sandbox"
	"holdfast/proto"
	"holdfast/runtime"
)

// importVariables are the variables of Holdfast's that an import depends on. The others, and
// those of the framework, identify task and attempt; nothing reads them before the script
// runs.
var importVariables = []string{proto.EnvWarm, "HOLDFAST_TF1", "HOLDFAST_RECOVERY_WAIT_SECS"}

// difference names what of an attempt's command the interpreter cannot start; empty if it can
// start it. The words after the script may differ. As long as the process has not reported
// where these begin, only the first word is compared, and the process compares the others.
func difference(i *interpreter, c sandbox.Command) string {
	words := max(i.common, 1)
	switch {
	case len(i.command.Argv) < words || len(c.Argv) < words || !slices.Equal(i.command.Argv[:words], c.Argv[:words]):
		return "command"
	case i.command.Dir != c.Dir:
		return "directory"
	}
	was, is := importEnvironment(i.command.Env), importEnvironment(c.Env)
	for name, v := range is {
		if old, ok := was[name]; !ok || old != v {
			return "environment variable " + name
		}
		delete(was, name)
	}
	for name := range was {
		return "environment variable " + name
	}
	return ""
}

func importEnvironment(env []string) map[string]string {
	m := map[string]string{}
	for _, kv := range env {
		name, v, _ := strings.Cut(kv, "=")
		own := runtime.SaysWhichTask(name) || strings.HasPrefix(name, "HOLDFAST_") && !slices.Contains(importVariables, name)
		if !own {
			m[name] = v
		}
	}
	return m
}

// module returns the module that is to be imported before a command's script runs; empty if
// there is none.
func module(c sandbox.Command) string {
	name := ""
	for _, kv := range c.Env {
		if !utf8.ValidString(kv) {
			return "" // JSON cannot carry it
		}
		if v, ok := strings.CutPrefix(kv, proto.EnvWarm+"="); ok {
			name = v
		}
	}
	for _, a := range c.Argv {
		if !utf8.ValidString(a) {
			return ""
		}
	}
	return name
}
