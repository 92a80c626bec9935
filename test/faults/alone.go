package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"holdfast/test/pyenv"
	"holdfast/test/testcluster"
)

// RunAlone is Run on a cluster that is started for it. It sees to all options but
// Submit, Script and those of what is done. Cutting nodes off takes root.
func RunAlone(ctx context.Context, o Options) (report *Report, err error) {
	if o.Submit, err = filepath.Abs(o.Submit); err != nil {
		return nil, err
	}
	if o.Script, err = filepath.Abs(o.Script); err != nil {
		return nil, err
	}
	if o.Examples, err = filepath.Abs(o.Examples); err != nil {
		return nil, err
	}
	if o.Python, err = pyenv.TensorFlow(ctx); err != nil {
		return nil, err
	}
	if o.Home, err = os.MkdirTemp("", "holdfast-faults-"); err != nil {
		return nil, fmt.Errorf("making a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.Home)) }()
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
	o.Cluster, o.Store = c, c.HDFS()+"/faults"
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
