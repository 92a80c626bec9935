package bench

import (
	"context"
	"os/exec"
)

// commands measures what a person waits for all day: the list of jobs and the state of one,
// beside yarn application -list and -status, while the job runs.
func (b *bench) commands(ctx context.Context) error {
	job, err := b.run(ctx, "--worker", "2", "--worker-memory", containerMB+"m", "--", "sleep", "1000000")
	if err != nil {
		return err
	}
	if _, err := b.settled(ctx, job, false); err != nil {
		return b.explain(ctx, job, err)
	}
	b.title("Commands that show jobs, while one with 2 tasks runs")
	for _, c := range []struct{ ours, theirs []string }{
		{[]string{"list"}, []string{"application", "-list"}},
		{[]string{"status", job}, []string{"application", "-status", job}},
	} {
		var ours, theirs usages
		for i := range b.Pairs + 1 {
			for _, x := range []struct {
				into *usages
				cmd  *exec.Cmd
			}{{&ours, b.user().Command(ctx, c.ours...)}, {&theirs, b.cluster.HadoopCommand(ctx, c.theirs...)}} {
				u, err := measure(x.cmd)
				if err != nil {
					return err
				}
				if i > 0 { // the first one warms the caches of both
					*x.into = append(*x.into, u)
				}
			}
		}
		r := ratios(ours.wall(), theirs.wall())
		line(b.Out, "yarn-submit "+c.ours[0], ours.wall().format(" s", 3))
		line(b.Out, "yarn application "+c.theirs[1], theirs.wall().format(" s", 3))
		line(b.Out, "ratio", aimed(r.format("", 3), r.median(), 0.25, ""))
	}
	return b.kill(ctx, job)
}
