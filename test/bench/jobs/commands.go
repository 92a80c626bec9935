package jobs

import (
	"context"
	"os/exec"
	"slices"

	"holdfast/test/bench"
)

// Commands measures what a person waits for all day: the list of jobs and the state of one,
// beside yarn application -list and -status, and mapred job -status of a MapReduce job that
// runs beside it.
func (b *Jobs) Commands(ctx context.Context) error {
	job, err := b.run(ctx, "--worker", "2", "--worker-memory", containerMB+"m", "--", "sleep", "1000000")
	if err != nil {
		return err
	}
	if _, err := b.settled(ctx, job, false); err != nil {
		return b.explain(ctx, job, err)
	}
	err = b.mapReduceJob(ctx, func(sleeping string) error {
		b.Title("Commands that show jobs, while one with 2 tasks and one of MapReduce run")
		yarn := func(args ...string) func() (*exec.Cmd, error) {
			return func() (*exec.Cmd, error) {
				return b.Cluster.HadoopCommand(ctx, append([]string{"application"}, args...)...), nil
			}
		}
		status := []string{"status", job}
		for _, c := range []struct {
			ours   []string
			theirs string
			run    func() (*exec.Cmd, error)
		}{
			{[]string{"list"}, "yarn application -list", yarn("-list")},
			{status, "yarn application -status", yarn("-status", job)},
			{status, "mapred job -status", func() (*exec.Cmd, error) {
				return b.mapReduce(ctx, "org.apache.hadoop.mapred.JobClient", append(slices.Clone(onYarn), "-status", sleeping)...)
			}},
		} {
			if err := b.besides(ctx, c.ours, c.theirs, c.run); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return b.kill(ctx, job)
}

// besides measures a command of yarn-submit beside another one.
func (b *Jobs) besides(ctx context.Context, command []string, name string, other func() (*exec.Cmd, error)) error {
	var ours, theirs bench.Usages
	for i := range b.Pairs + 1 {
		cmd, err := other()
		if err != nil {
			return err
		}
		for _, x := range []struct {
			into *bench.Usages
			cmd  *exec.Cmd
		}{{&ours, b.user().Command(ctx, command...)}, {&theirs, cmd}} {
			u, err := bench.Measure(x.cmd)
			if err != nil {
				return err
			}
			if i > 0 { // the first one warms the caches of both
				*x.into = append(*x.into, u)
			}
		}
	}
	r := bench.Ratios(ours.Wall(), theirs.Wall())
	bench.Line(b.Out, "yarn-submit "+command[0], ours.Wall().Format(" s", 3))
	bench.Line(b.Out, name, theirs.Wall().Format(" s", 3))
	bench.Line(b.Out, "ratio", r.Aimed("", 3, 0.25))
	return nil
}
