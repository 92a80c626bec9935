package runtime

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"holdfast/proto"
	"holdfast/runtime/framework"
)

// What Linux lets a program be started with, execve(2).
const (
	// maxStrings is how long all may be together: a quarter of the stack, which
	// usually may be 8 MiB, less some for what the container has.
	maxStrings = 2<<20 - 256<<10
	// longestPort is one for which as much room is needed as for any.
	longestPort = 65535
)

// checkLengths refuses a job whose tasks could not be started because the lists
// of hosts in their commands and environments would be too long.
func checkLengths(spec *proto.JobSpec) error {
	peers := map[string]int{}
	for _, t := range Tasks(spec) {
		peers[t.Name] = longestPort
	}
	for _, r := range spec.Roles {
		last := int(r.Count) - 1
		argv, env, err := Command(spec, framework.Attempt{Task: framework.Task{Name: taskName(r.Name, last), Role: r.Name, Index: last}, Ports: peers})
		if err != nil {
			return err
		}
		all := 0
		for i, word := range argv {
			if len(word) >= framework.MaxString {
				return fmt.Errorf("the word %q in the command of %s would be %d bytes long with the addresses of all tasks, and Linux allows %d: leave the list out, or split the role whose tasks it lists into smaller ones, each with a list of its own", framework.Words(spec, r.Name)[i], r.Name, len(word), framework.MaxString-1)
			}
			all += len(word)
		}
		for _, name := range slices.Sorted(maps.Keys(env)) {
			if !framework.Fits(name, env[name]) {
				return tooLong(spec, name, len(name)+1+len(env[name]))
			}
			all += len(name) + 1 + len(env[name])
		}
		if all > maxStrings {
			return fmt.Errorf("the command and environment of %s would be %d bytes long with the addresses of all tasks, and Linux allows about %d: leave lists like {%s_hosts} out of the command and of --env where they are not needed", r.Name, all, maxStrings, r.Name)
		}
		for _, of := range spec.Roles {
			if name := hostsVariable(of.Name); env[name] == "" && mentions(spec, r.Name, name) {
				return fmt.Errorf("the command or the environment of %s uses %s, which would be longer than the %d bytes that Linux allows: split the role %s into smaller ones, each with a variable of its own", r.Name, name, framework.MaxString-1, of.Name)
			}
		}
	}
	return nil
}

// tooLong says what to do about a variable.
func tooLong(spec *proto.JobSpec, name string, size int) error {
	remedy := "leave the list of addresses out of --env " + name + ", or split the role whose tasks it lists into smaller ones"
	if _, users := spec.Env[name]; !users {
		remedy = "ask for fewer tasks, or use --framework none if the program does not read " + name
	}
	return fmt.Errorf("the variable %s would be %d bytes long with the addresses of all tasks, and Linux allows %d: %s", name, size, framework.MaxString-1, remedy)
}

// mentions reports whether what the user wrote for a role names a variable.
func mentions(spec *proto.JobSpec, role, variable string) bool {
	said := append(slices.Collect(maps.Values(spec.Env)), framework.Words(spec, role)...)
	return slices.ContainsFunc(said, func(text string) bool { return strings.Contains(text, variable) })
}
