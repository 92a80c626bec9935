package runtime

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"holdfast/proto"
)

// placeholder is a word in braces that a $ does not claim for a shell. RE2 has
// no look-behind, so the character before belongs to the match.
var placeholder = regexp.MustCompile(`(^|[^$])\{([A-Za-z][A-Za-z0-9_-]*)\}`)

// Command makes the command and the environment of a task. peers gives the
// port of every task that has one, under the task's name; the task's own is
// the one on which it is to listen.
func Command(spec *proto.JobSpec, task Task, peers map[string]int) ([]string, map[string]string, error) {
	if role := findRole(spec, task.Role); role == nil || task.Index < 0 || task.Index >= int(role.Count) {
		return nil, nil, fmt.Errorf("the job has no task %s", task.Name)
	}
	if peers[task.Name] == 0 {
		return nil, nil, unknownPort(task.Name)
	}
	command := Words(spec, task.Role)
	if len(command) == 0 {
		return nil, nil, errors.New("the job has no command")
	}
	values := placeholders(spec, task, peers)
	argv := make([]string, len(command))
	for i, word := range command {
		argv[i] = fill(word, values)
	}

	env, err := frameworkEnv(spec, task, peers)
	if err != nil {
		return nil, nil, err
	}
	for k, v := range spec.Env {
		env[k] = fill(v, values)
	}
	maps.Copy(env, ownEnv(spec, task, peers))
	return argv, env, nil
}

// frameworkEnv is what the job's framework adds to a task's environment.
func frameworkEnv(spec *proto.JobSpec, task Task, peers map[string]int) (map[string]string, error) {
	f, env := frameworkOf(spec), map[string]string{}
	if Warm(spec) {
		env[proto.EnvWarm] = f.Warm
	}
	if f.Shim != nil {
		maps.Copy(env, f.Shim(spec))
	}
	maps.Copy(env, f.Defaults)
	if f.Env != nil {
		m, err := f.member(spec, task, peers)
		if err != nil {
			return nil, err
		}
		maps.Copy(env, f.Env(m))
	}
	return env, nil
}

// python keeps the output of Python programs from staying in their buffer,
// where the log of a task that dies would lack its last lines.
var python = map[string]string{"PYTHONUNBUFFERED": "1"}

func unknownPort(task string) error { return fmt.Errorf("the port of %s is not known yet", task) }

// Left returns the words in braces that Command leaves in text as they are, and
// those in whose place it would put something.
func Left(spec *proto.JobSpec, text string) (left, known []string) {
	values := placeholders(spec, Task{}, nil)
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		if _, ok := values[m[2]]; !ok {
			left = append(left, m[2])
		}
	}
	return left, slices.Sorted(maps.Keys(values))
}

// Words are the command of a role, which the spec has, before anything is put in.
func Words(spec *proto.JobSpec, role string) []string {
	if words := findRole(spec, role).Command; len(words) > 0 {
		return words
	}
	return spec.Command
}

func findRole(spec *proto.JobSpec, name string) *proto.RoleSpec {
	for _, r := range spec.Roles {
		if r.Name == name {
			return r
		}
	}
	return nil
}

func placeholders(spec *proto.JobSpec, task Task, peers map[string]int) map[string]string {
	values := map[string]string{
		// A script that takes --ps_hosts takes it empty as well, so jobs
		// without such a role need no other command line.
		"ps_hosts": "", "worker_hosts": "", "chief_hosts": "", "evaluator_hosts": "",
	}
	for _, r := range spec.Roles {
		values[r.Name+"_hosts"] = strings.Join(hosts(spec, r.Name, peers), ",")
	}
	values["role"] = task.Role
	values["index"] = strconv.Itoa(task.Index)
	values["task"] = task.Name
	values["port"] = strconv.Itoa(peers[task.Name])
	return values
}

// fill replaces the placeholders in one word, once: what was put in is not
// looked at again.
func fill(word string, values map[string]string) string {
	var out strings.Builder
	rest := 0
	for at := 0; at <= len(word); {
		m := placeholder.FindStringSubmatchIndex(word[at:])
		if m == nil {
			break
		}
		name := word[at+m[4] : at+m[5]]
		open, end := at+m[4]-1, at+m[1]
		if v, ok := values[name]; ok {
			out.WriteString(word[rest:open])
			out.WriteString(v)
			rest = end
		}
		// The closing brace may be the character before the next opening one.
		at = end - 1
	}
	out.WriteString(word[rest:])
	return out.String()
}

// ownEnv is what every task finds. The list of a role that is too large for a
// variable is left out; checkLengths refuses jobs that are seen to use it.
func ownEnv(spec *proto.JobSpec, task Task, peers map[string]int) map[string]string {
	env := map[string]string{
		"HOLDFAST_FRAMEWORK": spec.Framework,
		"HOLDFAST_TASK":      task.Name,
		"HOLDFAST_ROLE":      task.Role,
		"HOLDFAST_INDEX":     strconv.Itoa(task.Index),
		"HOLDFAST_PORT":      strconv.Itoa(peers[task.Name]),
	}
	for _, r := range spec.Roles {
		name, list := hostsVariable(r.Name), strings.Join(hosts(spec, r.Name, peers), ",")
		if fits(name, list) { // else a program that has no use for it could not be started
			env[name] = list
		}
	}
	return env
}
