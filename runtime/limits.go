package runtime

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"holdfast/proto"
)

// What Linux lets a program be started with, execve(2).
const (
	// maxString is how long a word or variable may be, its NUL included:
	// MAX_ARG_STRLEN, linux/binfmts.h, with pages of 4 KiB.
	maxString = 128 << 10
	// maxStrings is how long all may be together: a quarter of the stack, which
	// usually may be 8 MiB, less some for what the container has.
	maxStrings = 2<<20 - 256<<10
	// longestPort is one for which as much room is needed as for any.
	longestPort = 65535
)

// fits reports whether a program can be started with a variable.
func fits(name, value string) bool { return len(name)+len("=")+len(value) < maxString }

// hostsVariable holds the addresses of a role's tasks.
func hostsVariable(role string) string { return "HOLDFAST_" + variable(role) + "_HOSTS" }

// checkLengths refuses a job whose tasks could not be started because the lists
// of hosts in their commands and environments would be too long.
func checkLengths(spec *proto.JobSpec) error {
	peers := map[string]int{}
	for _, t := range Tasks(spec) {
		peers[t.Name] = longestPort
	}
	for _, r := range spec.Roles {
		last := int(r.Count) - 1
		argv, env, err := Command(spec, Attempt{Task: Task{Name: taskName(r.Name, last), Role: r.Name, Index: last}, Ports: peers})
		if err != nil {
			return err
		}
		all := 0
		for i, word := range argv {
			if len(word) >= maxString {
				return fmt.Errorf("the word %q in the command of %s would be %d bytes long with the addresses of all tasks, and Linux allows %d: leave the list out, or split the role whose tasks it lists into smaller ones, each with a list of its own", Words(spec, r.Name)[i], r.Name, len(word), maxString-1)
			}
			all += len(word)
		}
		for _, name := range slices.Sorted(maps.Keys(env)) {
			if !fits(name, env[name]) {
				return tooLong(spec, name, len(name)+1+len(env[name]))
			}
			all += len(name) + 1 + len(env[name])
		}
		if all > maxStrings {
			return fmt.Errorf("the command and environment of %s would be %d bytes long with the addresses of all tasks, and Linux allows about %d: leave lists like {%s_hosts} out of the command and of --env where they are not needed", r.Name, all, maxStrings, r.Name)
		}
		for _, of := range spec.Roles {
			if name := hostsVariable(of.Name); env[name] == "" && mentions(spec, r.Name, name) {
				return fmt.Errorf("the command or the environment of %s uses %s, which would be longer than the %d bytes that Linux allows: split the role %s into smaller ones, each with a variable of its own", r.Name, name, maxString-1, of.Name)
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
	return fmt.Errorf("the variable %s would be %d bytes long with the addresses of all tasks, and Linux allows %d: %s", name, size, maxString-1, remedy)
}

// mentions reports whether what the user wrote for a role names a variable.
func mentions(spec *proto.JobSpec, role, variable string) bool {
	said := append(slices.Collect(maps.Values(spec.Env)), Words(spec, role)...)
	return slices.ContainsFunc(said, func(text string) bool { return strings.Contains(text, variable) })
}
