// Package programs runs programs of many frameworks on a real YARN and HDFS, loses
// something of each while it trains, and prints what came of it as a table.
//
// A program is a row of a family (torch.go and so on). It runs as one job, which loses
// a process, a container and a node, one after another: each once a checkpoint newer
// than that of the last loss is sealed. Then it runs to its end. A job that a loss has
// ended is followed by another, for the losses that are left. What the tasks print is
// read from their agents' files (test/joblogs), so that times do not depend on what the
// application master says of steps; that it knows of them is a column of its own.
//
// With Options.Local the jobs run on this machine without Hadoop, and lose no node.
package programs

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Program is a program that is run.
type Program struct {
	Name     string
	Packages []string // of its Python, whose versions are told
	// Python returns its interpreter. It makes what that needs.
	Python func(context.Context) (string, error)
	Files  []string // below Options.Examples; none: it comes with its packages
	Flags  []string // of yarn-submit run: its roles and what they need
	// Command is what starts it. The word python stands for its interpreter, and
	// bin/NAME for a command that was installed beside that.
	Command []string
	Path    string // of its checkpoints, as it spells it
	Format  string // of which they are
	// Step is what a step looks like in its output; its group is the number.
	Step *regexp.Regexp
	// OwnNumbers says that its checkpoints are not numbered by what Step captures.
	OwnNumbers bool
	Victim     string // the task whose process and container are lost
	// GoOn says that the other tasks go on while one is lost: none of their attempts tells
	// of a step twice, and none of them is started again.
	GoOn bool
}

// step is what a line of the examples looks like that tells of a step.
var step = regexp.MustCompile(`\bstep (\d+) loss`)

// Families are the programs, by the name of what they have in common.
var Families = map[string][]Program{
	"boosting":            boostingPrograms,
	"horovod":             horovodPrograms,
	"jax":                 jaxPrograms,
	"mxnet":               mxnetPrograms,
	"ray":                 rayPrograms,
	"tensorflow-versions": tensorflowVersions,
	"tensorflow":          tensorflowPrograms,
	"torch":               torchPrograms,
	"torchft":             torchftPrograms,
}

// Select returns the programs of some families or names, in order; all if there are no
// names. unknown are the names that there are not.
func Select(names []string) (chosen []Program, unknown []string) {
	known := map[string]bool{}
	for _, family := range sortedFamilies() {
		for _, p := range Families[family] {
			known[family], known[p.Name] = true, true
			if len(names) == 0 || slices.Contains(names, family) || slices.Contains(names, p.Name) {
				chosen = append(chosen, p)
			}
		}
	}
	for _, n := range names {
		if !known[n] {
			unknown = append(unknown, n)
		}
	}
	return chosen, unknown
}

func sortedFamilies() []string {
	var all []string
	for name := range Families {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// last is the step that a program is to come to; 0 if its command does not say.
func (p Program) last() int64 {
	for i, word := range p.Command[:max(0, len(p.Command)-1)] {
		if word == "--steps" || word == "--max-update" {
			n, _ := strconv.ParseInt(p.Command[i+1], 10, 64) // TestRows misses what is no number
			return n
		}
	}
	return 0
}

// nearly reports whether a step is so near the last that a program has come to its end: not
// all tell of each step, and losses come in the first third.
func (p Program) nearly(step int64) bool { return 4*step >= 3*p.last() }

// arguments are those of yarn-submit run.
func (p Program) arguments(python, examples, store string) []string {
	args := append([]string{"--name", p.Name, "--env", "OMP_NUM_THREADS=1", "--checkpoint", p.Path + "=" + store}, p.Flags...)
	var files []string
	for _, f := range p.Files {
		files = append(files, filepath.Join(examples, f))
	}
	if len(files) > 0 {
		args = append(args, "--files", strings.Join(files, ","))
	}
	args = append(args, "--")
	for _, word := range p.Command {
		if word == "python" {
			word = python
		} else if name, ok := strings.CutPrefix(word, "bin/"); ok {
			word = filepath.Join(filepath.Dir(python), name)
		}
		args = append(args, word)
	}
	return args
}
