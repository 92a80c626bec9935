package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"syscall"
	"time"

	"holdfast/internal/hadoop/yarn"
	"holdfast/proto"
	"holdfast/test/bench"
)

// recoverTasks is how many tasks the jobs have that lose them one by one. Each
// task is lost once, since what fails often is restarted later.
const recoverTasks = 4

// Replaced measures from kill -9 of an agent, which is a container's end, to
// the first act of the replacement's process; likewise what YARN takes at the
// least, and skein.
func (b *Jobs) Replaced(ctx context.Context) error {
	const aim, over = 0.6, 0.2
	var ours, floor, theirs bench.Series
	var way ways
	var skein error
	for len(ours) < b.Pairs {
		took, err := b.losses(ctx, &way, nil, func(t *proto.TaskStatus) int { return int(t.AgentPid) })
		if err != nil {
			return err
		}
		ours = append(ours, took...)
		if took, err = b.floorLosses(ctx); err != nil {
			return err
		}
		floor = append(floor, took...)
		if skein == nil { // what is ours is told without it, too
			took, skein = b.skeinLosses(ctx)
			theirs = append(theirs, took...)
		}
	}
	b.Title("From a container's end to its replacement's process running")
	bench.Line(b.Out, "yarn-submit", ours.Aimed(" s", 2, aim))
	bench.Line(b.Out, "YARN's own floor", floor.Format(" s", 2))
	above := ours.Median() - floor.Median()
	bench.Line(b.Out, "yarn-submit above it, medians", bench.Series{above}.Aimed(" s", 2, over))
	bench.Line(b.Out, "skein 0.8.2", theirs.Format(" s", 2))
	bench.Line(b.Out, "ratio", bench.Ratios(ours, theirs).Format("", 2))
	if skein != nil {
		bench.Line(b.Out, "skein has failed", skein.Error())
		if err := b.killTheirs(ctx); err != nil {
			return err
		}
	}
	way.print(b.Out, "where the time goes, medians in s")
	fmt.Fprintln(b.Out)
	return nil
}

// InPlace measures from kill -9 of a task's process to the first act of the next one.
func (b *Jobs) InPlace(ctx context.Context) error {
	return b.recovered(ctx, "From a process's end to the next one running in its container", 0.3, nil,
		func(t *proto.TaskStatus) int { return int(t.Pid) })
}

// Spared is replaced for a job that keeps a spare container.
func (b *Jobs) Spared(ctx context.Context) error {
	return b.recovered(ctx, "From a container's end to its task's process running in a spare one", 0.5, []string{"--spares", "1"},
		func(t *proto.TaskStatus) int { return int(t.AgentPid) })
}

func (b *Jobs) recovered(ctx context.Context, title string, aim float64, flags []string, victim func(*proto.TaskStatus) int) error {
	var all bench.Series
	var way ways
	for len(all) < b.Pairs {
		took, err := b.losses(ctx, &way, flags, victim)
		if err != nil {
			return err
		}
		all = append(all, took...)
	}
	b.Title(title)
	bench.Line(b.Out, "yarn-submit", all.Aimed(" s", 2, aim))
	way.print(b.Out, "where the time goes, medians in s")
	fmt.Fprintln(b.Out)
	return nil
}

// losses runs a job and kills one process of each of its tasks.
func (b *Jobs) losses(ctx context.Context, way *ways, flags []string, victim func(*proto.TaskStatus) int) (took bench.Series, err error) {
	m, err := b.newMarks()
	if err != nil {
		return nil, err
	}
	args := append([]string{"--worker", strconv.Itoa(recoverTasks), "--worker-memory", containerMB + "m"}, flags...)
	job, err := b.run(ctx, append(args, "--", "bash", m.script)...)
	if err != nil {
		return nil, err
	}
	if _, err := m.wait(ctx, recoverTasks); err != nil {
		return nil, b.explain(ctx, job, err)
	}
	spares := len(flags) > 0
	for i := range recoverTasks {
		s, err := b.settled(ctx, job, spares)
		if err != nil {
			return nil, err
		}
		lost := time.Now()
		if err := syscall.Kill(victim(s.Tasks[i]), syscall.SIGKILL); err != nil {
			return nil, err
		}
		all, err := m.wait(ctx, recoverTasks+i+1)
		if err != nil {
			return nil, b.explain(ctx, job, err)
		}
		back := all[recoverTasks+i]
		took = append(took, back.Sub(lost).Seconds())
		if s, err = b.settled(ctx, job, false); err != nil {
			return nil, err
		}
		passed := s.Tasks[i].Stages
		if spares && slices.ContainsFunc(passed, func(p *proto.Stage) bool { return p.Name == "asked" }) {
			return nil, b.explain(ctx, job, fmt.Errorf("%s was not given the spare container", s.Tasks[i].Task))
		}
		way.add(lost, passed, back)
	}
	return took, b.kill(ctx, job)
}

// settled returns the job's status once all tasks are known to run and, if
// there is to be one, a spare container does.
func (b *Jobs) settled(ctx context.Context, job string, spare bool) (s *proto.JobStatus, err error) {
	err = poll(ctx, time.Minute, "all tasks to run", func() (bool, error) {
		if s, err = b.status(ctx, job); err != nil {
			return false, err
		}
		return !slices.ContainsFunc(s.Tasks, func(t *proto.TaskStatus) bool { return t.Pid == 0 || t.AgentPid == 0 }), nil
	})
	if err != nil || !spare {
		return s, err
	}
	err = poll(ctx, time.Minute, "a spare container", func() (bool, error) {
		all, err := b.Cluster.Containers()
		return len(all) == len(s.Tasks)+2, err // the application master has one
	})
	if err != nil {
		return nil, err
	}
	time.Sleep(time.Second) // nothing tells that its agent has connected, too
	return s, nil
}

// floorLosses is losses with command bare.
func (b *Jobs) floorLosses(ctx context.Context) (took bench.Series, err error) {
	m, err := b.newMarks()
	if err != nil {
		return nil, err
	}
	_, err = b.floor(ctx, recoverTasks, m, func(yarn.ApplicationID) (err error) {
		took, err = b.killEach(ctx, m)
		return err
	})
	return took, err
}

// killEach kills the containers of processes that have begun, each when the one
// before it has its replacement.
func (b *Jobs) killEach(ctx context.Context, m marks) (took bench.Series, err error) {
	if _, err := m.wait(ctx, recoverTasks); err != nil {
		return nil, err
	}
	pids, err := m.pids()
	if err != nil {
		return nil, err
	}
	for i, pid := range pids {
		lost := time.Now()
		if err := b.killContainer(pid); err != nil {
			return nil, err
		}
		all, err := m.wait(ctx, recoverTasks+i+1)
		if err != nil {
			return nil, err
		}
		took = append(took, all[recoverTasks+i].Sub(lost).Seconds())
	}
	return took, nil
}

// killContainer kills all of the container that a process is of.
func (b *Jobs) killContainer(pid int) error {
	all, err := b.Cluster.Containers()
	if err != nil {
		return err
	}
	for _, c := range all {
		if !slices.Contains(c.PIDs, pid) {
			continue
		}
		for _, p := range c.PIDs {
			if err := syscall.Kill(p, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("process %d is of no container", pid)
}
