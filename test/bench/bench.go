// Package bench is what measurements of Holdfast beside others have in common: the test
// cluster that they share, pairs, and the report. Measurements that are compared
// alternate, so that a machine that gets busier is busier for both, and each pair
// gives a ratio; what is reported is the median and the range, and how busy the
// machine was. What is measured is in packages jobs and files; command cmd lists it.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"holdfast/test/testcluster"
)

// Options say what to measure and how often.
type Options struct {
	Submit string    // the yarn-submit binary
	Pairs  int       // of each comparison
	FileMB int       // size of the files that are written and read, in all
	SaveMB int       // size of the checkpoint that is saved and restored
	Only   []string  // the names of some measurements; all if empty
	Out    io.Writer // the report
}

// Bench is what a measurement gets.
type Bench struct {
	Options
	Cluster *testcluster.Cluster // nil where only measurements OnItsOwn are made
	Dir     string               // for files, and with the programs that are compared
}

// Place is what a measurement needs.
type Place int

const (
	OnHDFS   Place = iota
	OnYARN         // it runs jobs
	OnItsOwn       // it starts a cluster of its own
)

// Measurement is one that can be asked for.
type Measurement struct {
	Name string
	On   Place
	Run  func(context.Context, *Bench) error
}

// List is measurements, in the order in which they are made.
type List []Measurement

// Names are those of all measurements.
func (l List) Names() (names []string) {
	for _, m := range l {
		names = append(names, m.Name)
	}
	return names
}

// Run starts a cluster, measures, and prints as it goes.
func Run(ctx context.Context, opts Options, all List) (err error) {
	for _, name := range opts.Only {
		if !slices.Contains(all.Names(), name) {
			return fmt.Errorf("there is no measurement %q: choose from %s", name, strings.Join(all.Names(), ", "))
		}
	}
	b := &Bench{Options: opts}
	if b.Submit, err = filepath.Abs(b.Submit); err != nil {
		return err
	}
	if b.Dir, err = os.MkdirTemp("", "holdfast-bench-"); err != nil {
		return fmt.Errorf("making a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.Dir)) }()
	measurements := slices.DeleteFunc(slices.Clone(all), func(m Measurement) bool {
		return len(b.Only) > 0 && !slices.Contains(b.Only, m.Name)
	})
	needed := func(p Place) bool {
		return slices.ContainsFunc(measurements, func(m Measurement) bool { return m.On == p })
	}
	if err := b.build(ctx); err != nil {
		return err
	}
	if yarn := needed(OnYARN); yarn || needed(OnHDFS) {
		if b.Cluster, err = testcluster.Start(ctx, testcluster.Options{HDFSOnly: !yarn}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.Cluster.Stop()) }()
	}
	fmt.Fprintf(b.Out, "%s\n\n", machine())
	for _, m := range measurements {
		if err := m.Run(ctx, b); err != nil {
			return fmt.Errorf("measuring %s: %w", m.Name, err)
		}
	}
	return nil
}

// machine describes what the figures were taken on.
func machine() string {
	cpus := 0
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		cpus = strings.Count(string(text), "processor\t:")
	}
	return fmt.Sprintf("%d processors, load %s at the beginning, %s", cpus, load(), time.Now().Format(time.DateTime))
}
