package bench

import (
	"context"
	"fmt"
	"strconv"
	"syscall"
	"time"
)

// recover measures from kill -9 of an agent, which is a container's end, to
// the first act of the replacement's process. Each task of a job is killed
// once, since what fails often is restarted later.
func (b *bench) recover(ctx context.Context) error {
	const tasks, aim = 4, 0.6
	var took series
	for len(took) < max(b.Pairs, tasks) {
		m, err := b.newMarks()
		if err != nil {
			return err
		}
		job, err := b.run(ctx, "--worker", strconv.Itoa(tasks), "--worker-memory", containerMB+"m", "--", "bash", m.script)
		if err != nil {
			return err
		}
		if _, err := m.wait(ctx, tasks); err != nil {
			return b.explain(ctx, job, err)
		}
		for i := range tasks {
			s, err := b.status(ctx, job)
			if err != nil {
				return err
			}
			pid := int(s.Tasks[i].AgentPid)
			if pid == 0 {
				return fmt.Errorf("%s has no agent", s.Tasks[i].Task)
			}
			lost := time.Now()
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				return err
			}
			all, err := m.wait(ctx, tasks+i+1)
			if err != nil {
				return b.explain(ctx, job, err)
			}
			took = append(took, all[tasks+i].Sub(lost).Seconds())
		}
		if err := b.kill(ctx, job); err != nil {
			return err
		}
	}
	b.title("From a container's end to its replacement's process running")
	line(b.Out, "yarn-submit", aimed(took.format(" s", 2), took.median(), aim, " s"))
	fmt.Fprintln(b.Out)
	return nil
}
