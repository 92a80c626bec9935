package runtime

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"holdfast/proto"
)

// placeholder is a word in braces that a $ does not claim for a shell. RE2 has
// no look-behind, so the character before belongs to the match.
var placeholder = regexp.MustCompile(`(^|[^$])\{([A-Za-z][A-Za-z0-9_-]*)\}`)

// Attempt is one run of a task, for which Command makes the command and the
// environment.
type Attempt struct {
	Task       Task
	Local      int    // which of the task's processes, from 0
	Number     int    // how often the task was started before
	Generation int    // how often all tasks were started again together
	Job        string // the job's ID
	// Absent are the tasks that the generation is without, by their places in Tasks.
	// WorldChanged: it has other members than the one before.
	Absent       []int32
	WorldChanged bool
	// Ports are those of the tasks, by their names. That of the task itself is the
	// one on which it is to listen; of the others, those by which they are reached.
	Ports map[string]int
	// Host is the address or the name under which peers reach the task's node.
	Host string
	// Addresses replace the names of tasks where these cannot be resolved; nil
	// elsewhere.
	Addresses map[string]string
	// Forwarded says that connections to peers are forwarded by the agent, which does
	// so for the ports in Ports only.
	Forwarded bool
	// Virtual are the addresses by which the task reaches the others, in the order of Tasks;
	// nil: those of VirtualAddress.
	Virtual []netip.Addr
	// Interface is the network interface by which peers reach the node, where programs
	// would not find it by themselves; empty elsewhere.
	Interface string
	// MorePorts are free ports of the node: the second, the third. Their number is
	// that of MorePorts for the task.
	MorePorts []int
	// GPUs are those that the task may use, in the order and by the names of
	// CUDA_VISIBLE_DEVICES; nil: all that it sees.
	GPUs []string
}

// address returns what stands for a task in front of a port.
func (a Attempt) address(task string) string {
	if address := a.Addresses[task]; address != "" {
		return address
	}
	return task
}

// Command makes the command and the environment of an attempt.
func Command(spec *proto.JobSpec, a Attempt) ([]string, map[string]string, error) {
	task := a.Task
	if role := findRole(spec, task.Role); role == nil || task.Index < 0 || task.Index >= int(role.Count) {
		return nil, nil, fmt.Errorf("the job has no task %s", task.Name)
	}
	if a.Ports[task.Name] == 0 {
		return nil, nil, unknownPort(task.Name)
	}
	command := Words(spec, task.Role)
	if len(command) == 0 {
		return nil, nil, errors.New("the job has no command")
	}
	values := placeholders(spec, a)
	argv := make([]string, len(command))
	for i, word := range command {
		argv[i] = fill(word, values)
	}

	env, err := frameworkEnv(spec, a)
	if err != nil {
		return nil, nil, err
	}
	if f := frameworkOf(spec); f.Launch != nil {
		argv = f.Launch(spec, f.member(spec, a), argv)
	}
	for k, v := range spec.Env {
		env[k] = fill(v, values)
	}
	maps.Copy(env, ownEnv(spec, a))
	return argv, env, nil
}

// frameworkEnv is what the job's framework adds to a task's environment.
func frameworkEnv(spec *proto.JobSpec, a Attempt) (map[string]string, error) {
	f, env := frameworkOf(spec), map[string]string{}
	processes := Processes(spec, a.Task.Role)
	if Warm(spec) && processes == 1 {
		env[proto.EnvWarm] = f.Warm
	}
	maps.Copy(env, f.gpus(a, processes))
	if f.Shim != nil {
		maps.Copy(env, f.Shim(spec))
	}
	maps.Copy(env, f.Defaults)
	if f.Env != nil {
		m := f.member(spec, a)
		for _, p := range m.Members {
			if p.Port == 0 {
				return nil, unknownPort(p.Name)
			}
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
	values := placeholders(spec, Attempt{})
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

// Observes reports whether the tasks of a role only look on: the job's result does not depend on
// them.
func Observes(spec *proto.JobSpec, role string) bool {
	return findRole(spec, role).GetCompletion() == proto.CompletionRule_COMPLETION_RULE_OPTIONAL
}

func findRole(spec *proto.JobSpec, name string) *proto.RoleSpec {
	for _, r := range spec.Roles {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// Placeholders returns the names of what is replaced in commands, sorted, of any framework; but for
// the addresses of roles, {ROLE_hosts}.
func Placeholders() []string {
	names := map[string]bool{}
	for _, f := range frameworks {
		for name := range placeholders(&proto.JobSpec{Framework: f.Name}, Attempt{}) {
			if !strings.HasSuffix(name, "_hosts") {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func placeholders(spec *proto.JobSpec, a Attempt) map[string]string {
	values := map[string]string{
		// A script that takes --ps_hosts takes it empty as well, so jobs
		// without such a role need no other command line.
		"ps_hosts": "", "worker_hosts": "", "chief_hosts": "", "evaluator_hosts": "",
	}
	for _, r := range spec.Roles {
		values[r.Name+"_hosts"] = strings.Join(hosts(spec, r.Name, a.Ports), ",")
	}
	f := frameworkOf(spec)
	m := f.member(spec, a)
	maps.Copy(values, m.placeholders())
	if f.Placeholders != nil {
		maps.Copy(values, f.Placeholders(m))
	}
	values["role"] = a.Task.Role
	values["index"] = strconv.Itoa(a.Task.Index)
	values["task"] = a.Task.Name
	values["port"] = strconv.Itoa(a.Ports[a.Task.Name])
	for i := range mostPorts - 1 {
		values[portPlaceholder(i)] = ""
		if i < len(a.MorePorts) {
			values[portPlaceholder(i)] = strconv.Itoa(a.MorePorts[i])
		}
	}
	values["host"] = a.Host
	values["attempt"] = strconv.Itoa(a.Number)
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

// Sets reports whether the tasks of a job get a variable of the environment from the job itself,
// whatever its user has it be.
func Sets(spec *proto.JobSpec, name string) bool {
	_, sets := ownEnv(spec, Attempt{WorldChanged: true})[name]
	return sets
}

// ownEnv is what every task finds. The list of a role that is too large for a
// variable is left out; checkLengths refuses jobs that are seen to use it.
func ownEnv(spec *proto.JobSpec, a Attempt) map[string]string {
	env := map[string]string{
		"HOLDFAST_FRAMEWORK":  spec.Framework,
		"HOLDFAST_TASK":       a.Task.Name,
		"HOLDFAST_ROLE":       a.Task.Role,
		"HOLDFAST_INDEX":      strconv.Itoa(a.Task.Index),
		"HOLDFAST_PORT":       strconv.Itoa(a.Ports[a.Task.Name]),
		"HOLDFAST_HOST":       a.Host,
		"HOLDFAST_JOB":        a.Job,
		"HOLDFAST_ATTEMPT":    strconv.Itoa(a.Number),
		"HOLDFAST_GENERATION": strconv.Itoa(a.Generation),
		"HOLDFAST_LOCAL_RANK": strconv.Itoa(a.Local),
		"HOLDFAST_WORLD_MAX":  strconv.Itoa(frameworkOf(spec).mostProcesses(spec)),
	}
	if a.WorldChanged {
		env["HOLDFAST_WORLD_CHANGED"] = "1"
	}
	for _, r := range spec.Roles {
		name, list := hostsVariable(r.Name), strings.Join(hosts(spec, r.Name, a.Ports), ",")
		if fits(name, list) { // else a program that has no use for it could not be started
			env[name] = list
		}
	}
	return env
}
