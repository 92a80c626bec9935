package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"holdfast/test/pyenv"
	"holdfast/test/testcluster"
)

// RunAlone is Run on a cluster that is started for it. It sees to all options but
// Submit and those of what is done; Script and Examples are those of this module, unless
// they are given. Cutting nodes off takes root.
func RunAlone(ctx context.Context, o Options) (report *Report, err error) {
	if err := errors.Join(o.something(), o.find(ctx)); err != nil {
		return nil, err
	}
	if o.Python, err = pyenv.TensorFlow(ctx); err != nil {
		return nil, err
	}
	c, err := testcluster.Start(ctx, testcluster.Options{Standby: o.Standby, Conf: ClusterConf()})
	if err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, c.Stop())
		for _, c := range o.Cuts {
			err = errors.Join(err, c.Close())
		}
	}()
	o.Cluster, o.Store, o.Home = c, c.HDFS()+"/faults", filepath.Join(c.Dir(), "home") // which goes with the cluster
	if err := os.Mkdir(o.Home, 0o755); err != nil {
		return nil, fmt.Errorf("making the home of who runs the jobs: %w", err)
	}
	if slices.ContainsFunc(o.Rounds, Round.cuts) {
		for _, node := range []string{"nm0", "nm1", "nm2"} {
			cut, err := NewCut(ctx, c, node)
			if err != nil {
				return nil, err
			}
			o.Cuts = append(o.Cuts, cut)
		}
	}
	return Run(ctx, o)
}

// something reports that there is nothing to be done: that must not pass for what was
// done and found good.
func (o *Options) something() error {
	if len(o.Rounds)+len(o.Scenarios) == 0 {
		return errors.New("nothing is to be lost: there is neither a round nor a scenario")
	}
	return nil
}

// find sees to the programs of jobs: where they are, from anywhere, and that they are
// there.
func (o *Options) find(ctx context.Context) (err error) {
	if o.Examples == "" {
		dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "holdfast").Output()
		if err != nil {
			return fmt.Errorf("finding the programs that are to train: %w", err)
		}
		o.Examples = filepath.Join(strings.TrimSpace(string(dir)), "examples")
	}
	if o.Script == "" {
		o.Script = filepath.Join(o.Examples, "monitored-session", "monitored_session.py")
	}
	for _, path := range []*string{&o.Submit, &o.Examples, &o.Script} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
		if _, err := os.Stat(*path); err != nil {
			return fmt.Errorf("looking for what jobs run: %w", err)
		}
	}
	return nil
}
