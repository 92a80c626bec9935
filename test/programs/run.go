package programs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"holdfast/proto"
	"holdfast/test/asuser"
	"holdfast/test/testcluster"
)

// Options say with what programs are run.
type Options struct {
	Submit   string // the yarn-submit binary
	Examples string // the directory of the programs' files
	Local    bool   // run jobs on this machine, without Hadoop
	// Log takes a line of what is going on; nil: nobody wants it.
	Log func(format string, args ...any)
}

// nodeMB is the memory of each of three nodes: one task of a program with two that need
// most of it, so that a node can be lost without the other task and the application
// master.
const nodeMB = 2816

// limits of what is waited for. Importing a framework takes up to half a minute on busy
// cores.
const (
	startLimit = 5 * time.Minute // to the first sealed checkpoint, and from each to the next
	backLimit  = 4 * time.Minute // from a loss to the next step
	endLimit   = 8 * time.Minute // from the last loss to the end
)

// runner is what all programs are run with.
type runner struct {
	Options
	cluster *testcluster.Cluster // nil: Local
	home    string               // HOLDFAST_HOME
	stores  string               // each job's checkpoints are in a directory below
}

// Run runs programs one after another, on a cluster that is started for them unless they
// run on this machine. An error says that nothing can be concluded; what a program did
// wrong is in its result.
func Run(ctx context.Context, o Options, programs []Program) (results []Result, err error) {
	r := &runner{Options: o}
	if r.Log == nil {
		r.Log = func(string, ...any) {}
	}
	for _, path := range []*string{&r.Submit, &r.Examples} {
		if *path, err = filepath.Abs(*path); err != nil {
			return nil, err
		}
	}
	if o.Local {
		if r.home, err = os.MkdirTemp("", "holdfast-programs-"); err != nil {
			return nil, fmt.Errorf("making a directory: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(r.home)) }()
		r.stores = filepath.Join(r.home, "stores")
	} else {
		conf := map[string]string{"yarn.nodemanager.resource.memory-mb": fmt.Sprint(nodeMB)}
		if r.cluster, err = testcluster.Start(ctx, testcluster.Options{Conf: conf}); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, r.cluster.Stop()) }()
		r.stores, r.home = r.cluster.HDFS()+"/programs", filepath.Join(r.cluster.Dir(), "home") // which goes with the cluster
		if err := os.Mkdir(r.home, 0o755); err != nil {
			return nil, fmt.Errorf("making the home of who runs the jobs: %w", err)
		}
	}
	for _, p := range programs {
		result, err := r.run(ctx, p)
		if err != nil {
			return results, fmt.Errorf("%s: %w", p.Name, err)
		}
		r.Log("%s", result)
		results = append(results, result)
	}
	return results, nil
}

// run has a program lose everything, in as many jobs as that takes.
func (r *runner) run(ctx context.Context, p Program) (Result, error) {
	result := Result{Program: p}
	python, err := p.Python(ctx)
	if err != nil {
		return result, err
	}
	if result.Versions, err = versions(ctx, python, p.Packages); err != nil {
		return result, err
	}
	left := losses
	if r.Local {
		left = losses[:2]
	}
	for n := 1; n == 1 || len(left) > 0; n++ {
		j, err := r.start(ctx, p, python, n)
		if err != nil {
			return result, err
		}
		done := j.lose(ctx, left, &result)
		left = left[done:]
		if err := errors.Join(j.close(), ctx.Err()); err != nil {
			return result, err
		}
	}
	return result, nil
}

// versions are those of some packages.
func versions(ctx context.Context, python string, packages []string) (string, error) {
	// Python 3.7 has it as a distribution of its own.
	const ask = `import sys
try:
    import importlib.metadata as m
except ImportError:
    import importlib_metadata as m
print(", ".join(p + " " + m.version(p) for p in sys.argv[1:]))`
	cmd := exec.CommandContext(ctx, python, append([]string{"-c", ask}, packages...)...)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("asking %s for the versions of %s: %w", python, strings.Join(packages, ", "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

func (r *runner) user() asuser.Caller {
	c := asuser.Caller{Submit: r.Submit, Home: r.home}
	if r.cluster != nil {
		c.ConfDir = r.cluster.ConfDir()
	}
	return c
}

// logs is the pattern of the files with what a job's tasks print.
func (r *runner) logs(id string) string {
	if r.cluster == nil {
		return filepath.Join(r.home, "jobs", id, "containers", "*", "*.log")
	}
	return filepath.Join(r.cluster.Dir(), "yarn", "*", "local", "usercache", "*", "appcache", id, "*", "*.log")
}

// running reports whether all tasks of a job run.
func running(s *proto.JobStatus) bool {
	for _, t := range s.Tasks {
		if t.State != proto.TaskState_TASK_STATE_RUNNING || t.Pid == 0 || t.AgentPid == 0 {
			return false
		}
	}
	return s.State == proto.JobState_JOB_STATE_RUNNING && len(s.Tasks) > 0
}
