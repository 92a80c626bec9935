package runtime

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"

	"holdfast/proto"
	"holdfast/runtime/framework"
	"holdfast/runtime/frameworks"
)

// Command makes the command and the environment of an attempt.
func Command(spec *proto.JobSpec, a framework.Attempt) ([]string, map[string]string, error) {
	task := a.Task
	if role := framework.FindRole(spec, task.Role); role == nil || task.Index < 0 || task.Index >= int(role.Count) {
		return nil, nil, fmt.Errorf("the job has no task %s", task.Name)
	}
	if a.Ports[task.Name] == 0 {
		return nil, nil, unknownPort(task.Name)
	}
	command := framework.Words(spec, task.Role)
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
	if f := frameworks.Of(spec); f.Launch != nil {
		argv = f.Launch(spec, member(spec, a), argv)
	}
	for k, v := range spec.Env {
		env[k] = fill(v, values)
	}
	maps.Copy(env, ownEnv(spec, a))
	return argv, env, nil
}

// frameworkEnv is what the job's framework adds to a task's environment.
func frameworkEnv(spec *proto.JobSpec, a framework.Attempt) (map[string]string, error) {
	f, env := frameworks.Of(spec), map[string]string{}
	processes := Processes(spec, a.Task.Role)
	if Warm(spec) && processes == 1 {
		env[proto.EnvWarm] = f.Warm
	}
	maps.Copy(env, gpus(f, a, processes))
	if f.Shim != nil {
		maps.Copy(env, f.Shim(spec))
	}
	maps.Copy(env, f.Defaults)
	if f.Env != nil {
		m := member(spec, a)
		for _, p := range m.Members {
			if p.Port == 0 {
				return nil, unknownPort(p.Name)
			}
		}
		maps.Copy(env, f.Env(m))
	}
	return env, nil
}

func unknownPort(task string) error { return fmt.Errorf("the port of %s is not known yet", task) }

// Sets reports whether the tasks of a job get a variable of the environment from the job itself,
// whatever its user has it be.
func Sets(spec *proto.JobSpec, name string) bool {
	_, sets := ownEnv(spec, framework.Attempt{WorldChanged: true})[name]
	return sets
}

// ownEnv is what every task finds. The list of a role that is too large for a
// variable is left out; checkLengths refuses jobs that are seen to use it.
func ownEnv(spec *proto.JobSpec, a framework.Attempt) map[string]string {
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
		"HOLDFAST_WORLD_MAX":  strconv.Itoa(mostProcesses(spec)),
	}
	if a.WorldChanged {
		env["HOLDFAST_WORLD_CHANGED"] = "1"
	}
	for _, r := range spec.Roles {
		name, list := hostsVariable(r.Name), strings.Join(hosts(spec, r.Name, a.Ports), ",")
		if framework.Fits(name, list) { // else a program that has no use for it could not be started
			env[name] = list
		}
	}
	return env
}

// taskVariables are those that Env of any framework sets, those that name an attempt's
// error file, and those that limit a process to GPUs.
var taskVariables = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{visibleGPUs: true, orderOfGPUs: true}
	m := framework.Member{Locals: 1, Members: []framework.Peer{{}}, TensorBoardPort: 1, Attempt: framework.Attempt{Interface: "lo"}}
	for _, f := range frameworks.All {
		if f.ErrorFile != nil {
			all[f.ErrorFile.Variable] = true
		}
		if f.Env == nil {
			continue
		}
		for name := range f.Env(m) {
			all[name] = true
		}
	}
	return all
})

// SaysWhichTask reports whether a variable is one of those by which frameworks tell a
// process which task and attempt it is. Nothing reads them as it is imported.
func SaysWhichTask(variable string) bool { return taskVariables()[variable] }
