package spec

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"holdfast/client"
	"holdfast/proto"
	"holdfast/runtime"
	"holdfast/runtime/framework"
	"holdfast/runtime/interpreter"
)

// CheckCommands returns an error for commands that no task can run, as far as this is
// known before the job starts: scripts that are not among the tasks' files or, for a
// local job, do not exist on this machine, and misspelt placeholders. Files that may
// exist on the nodes are not checked.
func CheckCommands(spec *proto.JobSpec) error {
	wrong := checkPlaceholders(spec)
	seen := map[string]bool{}
	for _, command := range commands(spec) {
		if key := strings.Join(command, "\x00"); !seen[key] {
			seen[key] = true
			if err := checkCommand(spec, command); err != nil {
				wrong = append(wrong, err)
			}
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return joinErrors("the tasks cannot run their commands:", wrong)
}

// Replaced says, for --help, what is replaced in commands, and which roles flags have.
func Replaced() string {
	return "In COMMAND and in --env values, {" + strings.Join(runtime.Placeholders(), "}, {") +
		"} and {ROLE_hosts} of any role (as in {ps_hosts}, name:port separated by commas) are replaced for each task. In a flag, ROLE is " +
		strings.Join(KnownRoles, ", ") + ", or a role that --role or the YAML file names."
}

// checkPlaceholders are complaints about words in braces that can hardly be anything but
// placeholders.
func checkPlaceholders(spec *proto.JobSpec) []error {
	var texts []string
	for _, command := range commands(spec) {
		texts = append(texts, command...)
	}
	for _, k := range slices.Sorted(maps.Keys(spec.Env)) {
		texts = append(texts, spec.Env[k])
	}
	var wrong []error
	seen := map[string]bool{}
	for _, text := range texts {
		left, known := runtime.Left(spec, text)
		for _, name := range left {
			meant := client.DidYouMeanWithin(name, known, max(1, len(name)/4))
			if other, ok := launcherNames[name]; ok {
				meant = "; did you mean " + other + "?"
			}
			if meant != "" && !seen[name] {
				seen[name] = true
				wrong = append(wrong, client.Usagef("{%s} is no placeholder%s (if it is the program's own, give it another name)", name, meant))
			}
		}
	}
	return wrong
}

// launcherNames are what frameworks' own launchers call something that has a placeholder.
var launcherNames = map[string]string{
	"nnodes": "world_size", "num_nodes": "world_size", "num_processes": "world_size", "num_workers": "world_size",
	"machine_rank": "node_rank", "global_rank": "rank", "process_id": "rank",
	"local_process_id": "local_rank", "nproc_per_node": "local_world_size", "local_size": "local_world_size",
	"main_process_ip": "master_addr", "main_process_port": "master_port", "hostname": "host", "task_index": "index",
}

// tensorboard is the role that looks at what the others report.
const tensorboard = "tensorboard"

// Notes are about what will probably not work: a script among the words of a
// command that is here, but is not among the files that the tasks are given, a
// placeholder that is none but may have been meant as one, a job that would never grow
// again, and what the job's framework knows.
func Notes(spec *proto.JobSpec) []string {
	var notes []string
	seen := map[string]bool{}
	note := func(format string, args ...any) {
		if n := fmt.Sprintf(format, args...); !seen[n] {
			seen[n] = true
			notes = append(notes, n)
		}
	}
	braces := func(text string) {
		left, known := runtime.Left(spec, text)
		for _, name := range left {
			if meant := client.DidYouMean(name, known); meant != "" {
				note("{%s} is left as it is%s", name, meant)
			}
		}
	}
	for _, command := range commands(spec) {
		for _, word := range command {
			if ext := path.Ext(word); (ext == ".py" || ext == ".sh") && !isShipped(spec, word) {
				if fix := shipFlag(word); fix != "" {
					note("%s", notThere(spec, nil, word, fix))
				}
			}
			braces(word)
		}
	}
	for _, r := range spec.Roles {
		if r.Name == tensorboard && r.Count > 0 && len(r.Command) == 0 && !strings.Contains(strings.Join(spec.Command, " "), "{role}") {
			note("the role %[1]s runs the job's command as the others do: --%[1]s-command 'tensorboard --logdir ./train_logs --port {port} --bind_all' gives it its own", r.Name)
		}
		if r.Loss == proto.LossRule_LOSS_RULE_ALL && r.Min > 0 && r.Min < r.Count && len(spec.Checkpoints) == 0 && spec.ElasticGrowMs == 0 {
			note("tasks of the role %s that were missing join at a complete checkpoint, and the job has no --checkpoint: --elastic-grow 10m has them join after a time", r.Name)
		}
	}
	if (spec.ElasticWaitMs != nil || spec.ElasticGrowMs != 0) && !slices.ContainsFunc(spec.Roles, func(r *proto.RoleSpec) bool { return r.Min > 0 && r.Min < r.Count }) {
		note("--elastic-wait and --elastic-grow have no effect: they are about tasks that the job can do without, and it needs all of its own; a range, as --worker 1..2, says how few it can do with")
	}
	for _, k := range slices.Sorted(maps.Keys(spec.Env)) {
		braces(spec.Env[k])
	}
	return append(notes, runtime.Notes(spec)...)
}

// commands returns the commands that tasks run: the role's or, if it has none, the
// job's.
func commands(spec *proto.JobSpec) [][]string {
	var list [][]string
	for _, r := range spec.Roles {
		if words := framework.Words(spec, r.Name); r.Count > 0 && len(words) > 0 {
			list = append(list, words)
		}
	}
	return list
}

func checkCommand(spec *proto.JobSpec, command []string) error {
	program := command[0]
	if first, _, several := strings.Cut(program, " "); several && !path.IsAbs(program) && !isShipped(spec, program) {
		return client.Usagef("the program is called %q, with spaces: leave out the quotes around the command, as in -- %s, or have a shell read it: -- sh -c %q",
			program, program, first+" ...")
	}
	script, searched := scriptOf(command)
	if script == "" || strings.Contains(script, "{") || isShipped(spec, script) {
		return nil
	}
	if path.IsAbs(script) {
		if _, err := os.Stat(script); spec.Local && errors.Is(err, fs.ErrNotExist) {
			return client.Usagef("there is no script %s: check the path", script)
		}
		return nil
	}
	if searched { // a shell looks on the PATH too, and that is the node's
		return nil
	}
	if fix := shipFlag(script); fix != "" {
		return client.Usagef("%s", notThere(spec, command[:slices.Index(command, script)], script, fix))
	}
	return client.Usagef("there is no script %s for the tasks to run: it is not among --files and --archives, nor in this directory; check the path", script)
}

// scriptOf returns the script in a command: the program itself if it is a path, or what
// an interpreter is to run; empty if there is none or it cannot be determined. searched
// reports whether it is also searched for on the PATH.
func scriptOf(command []string) (script string, searched bool) {
	if interpreter.IsPython(command[0]) {
		_, script = interpreter.PythonRuns(command)
		return script, false
	}
	if !interpreter.IsShell(command[0]) {
		if strings.Contains(command[0], "/") {
			return command[0], false
		}
		return "", false
	}
	for i := 1; i < len(command); i++ {
		word := command[i]
		switch {
		case word == "-" || word == "":
			return "", false // standard input
		case !strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "+"):
			return word, !strings.Contains(word, "/")
		case strings.HasPrefix(word, "--"):
			return "", false
		case strings.ContainsAny(word, "cs"): // a command, standard input
			return "", false
		case strings.ContainsAny(word, "oO"):
			i++ // has a value
		}
	}
	return "", false
}

// isShipped reports whether tasks have a file with that path: it is among their files,
// above one of them, or in an archive or checkpoint directory.
func isShipped(spec *proto.JobSpec, name string) bool {
	name = path.Clean(name)
	if name == "." {
		return true
	}
	for _, f := range spec.Files {
		if isWithin(f.Name, name) || f.Archive && isWithin(name, f.Name) {
			return true
		}
	}
	return slices.ContainsFunc(spec.Checkpoints, func(c *proto.CheckpointSpec) bool {
		switch {
		case !isWithin(name, c.Path):
			return false
		case !isWhole(c):
			return true
		case spec.Local:
			_, err := os.Stat(path.Join(c.Uri, name))
			return err == nil
		}
		return shipFlag(name) == "" // a file that is here is hardly meant to be the one on HDFS
	})
}

// notThere says that the tasks have no file with the path that a command names, and how they get
// it: by the flag fix or, where they have the file under another name, by that in the command,
// in which before stands in front of it.
func notThere(spec *proto.JobSpec, before []string, name, fix string) string {
	local, err := filepath.Abs(name)
	at := slices.IndexFunc(spec.Files, func(f *proto.FileSpec) bool { return err == nil && !f.Archive && f.Uri == local })
	if at < 0 {
		return fmt.Sprintf("%s is here, but the tasks do not get it: add %s", name, fix)
	}
	arrives := spec.Files[at].Name
	write := arrives
	if len(before) == 0 && !strings.Contains(arrives, "/") {
		write = "./" + arrives // else it would be searched for on the PATH
	}
	return fmt.Sprintf("%s arrives as %s: write %s, or %s", name, arrives, strings.Join(append(slices.Clone(before), write), " "), fix)
}

// shipFlag returns the flag that ships a file of the working directory under the path
// that the command uses; empty if the file does not exist.
func shipFlag(name string) string {
	p := path.Clean(name)
	if info, err := os.Stat(p); err != nil || !info.Mode().IsRegular() || !fs.ValidPath(p) {
		return ""
	}
	if strings.Contains(p, "/") {
		return fmt.Sprintf("--files %s#%[1]s", p)
	}
	return "--files " + p
}
