package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"holdfast/internal/hadoop/yarn"
	"holdfast/internal/proc"
	"holdfast/proto"
	"holdfast/test/bench"
)

const containerMB = "256"

// Start measures from the start of the client's process to the first act of
// the last task's process.
func (b *Jobs) Start(ctx context.Context, tasks int, aim float64) error {
	var ours, theirs, floor, master, agents, theirMaster bench.Series
	var way, floorWay ways
	// The first one uploads the binary and warms the caches of both.
	first, err := b.startOurs(ctx, tasks, &ways{}, nil, nil)
	if err != nil {
		return err
	}
	if _, err := b.startTheirs(ctx, tasks, nil); err != nil {
		return err
	}
	for range b.Pairs {
		t, err := b.startOurs(ctx, tasks, &way, &master, &agents)
		if err != nil {
			return err
		}
		ours = append(ours, t)
		if t, err = b.startFloor(ctx, tasks, &floorWay); err != nil {
			return err
		}
		floor = append(floor, t)
		if t, err = b.startTheirs(ctx, tasks, &theirMaster); err != nil {
			return err
		}
		theirs = append(theirs, t)
	}
	r := bench.Ratios(ours, theirs)
	b.Title(fmt.Sprintf("From the command's start to the last of %d processes running", tasks))
	bench.Line(b.Out, "yarn-submit", ours.Format(" s", 2))
	bench.Line(b.Out, "yarn-submit, first time", bench.Series{first}.Format(" s", 2))
	bench.Line(b.Out, "YARN's own floor, from the submission", floor.Format(" s", 2))
	bench.Line(b.Out, "DistributedShell", theirs.Format(" s", 2))
	bench.Line(b.Out, "ratio", r.Aimed("", 2, aim))
	way.print(b.Out, "where the time goes, medians in s")
	floorWay.print(b.Out, "in YARN's own floor")
	b.Title(fmt.Sprintf("Resident memory with %d tasks", tasks))
	bench.Line(b.Out, "yarn-submit's application master", master.Aimed(" MB", 0, 40))
	bench.Line(b.Out, "DistributedShell's", theirMaster.Format(" MB", 0))
	bench.Line(b.Out, "an agent", agents.Aimed(" MB", 0, 30))
	fmt.Fprintln(b.Out)
	return nil
}

func (b *Jobs) startOurs(ctx context.Context, tasks int, way *ways, master, agents *bench.Series) (float64, error) {
	m, err := b.newMarks()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	job, err := b.run(ctx, "--worker", strconv.Itoa(tasks), "--worker-memory", containerMB+"m", "--", "bash", m.script)
	if err != nil {
		return 0, err
	}
	all, err := m.wait(ctx, tasks)
	if err != nil {
		return 0, b.explain(ctx, job, err)
	}
	last := all[tasks-1]
	s, err := b.settled(ctx, job, false)
	if err != nil {
		return 0, err
	}
	passed, err := b.startStages(ctx, s)
	if err != nil {
		return 0, err
	}
	way.add(began, passed, last)
	if master != nil {
		if err := b.memory(s, master, agents); err != nil {
			return 0, err
		}
	}
	return last.Sub(began).Seconds(), b.kill(ctx, job)
}

// startStages are those of a job's start: where the ResourceManager had the
// application, what its master passed, and when the last task passed each.
func (b *Jobs) startStages(ctx context.Context, s *proto.JobStatus) ([]*proto.Stage, error) {
	var known struct{ App struct{ StartedTime int64 } }
	if err := b.rm(ctx, "apps/"+s.Id, &known); err != nil {
		return nil, err
	}
	passed := append([]*proto.Stage{{Name: "submitted", AtUnixMs: known.App.StartedTime}}, s.Stages...)
	common := len(passed)
	for _, t := range s.Tasks {
		for i, p := range t.Stages {
			if common+i == len(passed) {
				passed = append(passed, &proto.Stage{Name: p.Name})
			}
			passed[common+i].AtUnixMs = max(passed[common+i].AtUnixMs, p.AtUnixMs)
		}
	}
	return passed, nil
}

// startFloor is what YARN takes at the least.
func (b *Jobs) startFloor(ctx context.Context, tasks int, way *ways) (float64, error) {
	m, err := b.newMarks()
	if err != nil {
		return 0, err
	}
	var all []time.Time
	began, err := b.floor(ctx, tasks, m, func(yarn.ApplicationID) (err error) {
		all, err = m.wait(ctx, tasks)
		return err
	})
	if err != nil {
		return 0, err
	}
	passed, err := m.bareStages()
	way.add(began, passed, all[tasks-1])
	return all[tasks-1].Sub(began).Seconds(), err
}

// explain adds what the job's state says to an error.
func (b *Jobs) explain(ctx context.Context, job string, err error) error {
	text, statusErr := b.user().Call(ctx, "status", job)
	if statusErr != nil {
		return fmt.Errorf("%w (and %v)", err, statusErr)
	}
	return fmt.Errorf("%w\n%s", err, text)
}

func (b *Jobs) memory(s *proto.JobStatus, master, agents *bench.Series) error {
	for _, t := range s.Tasks {
		mb, err := resident(int(t.AgentPid))
		if err != nil {
			return err
		}
		*agents = append(*agents, mb)
	}
	return b.masterMemory(master)
}

// masterMemory adds the application master's.
func (b *Jobs) masterMemory(into *bench.Series) error {
	pid, err := b.master()
	if err != nil {
		return err
	}
	mb, err := resident(pid)
	*into = append(*into, mb)
	return err
}

// master finds the application master: its container is the first one, and it
// is the largest process there.
func (b *Jobs) master() (pid int, err error) {
	all, err := b.Cluster.Containers()
	if err != nil {
		return 0, err
	}
	largest := 0.0
	for _, c := range all {
		if !strings.HasSuffix(c.ID, "_000001") {
			continue
		}
		for _, p := range c.PIDs {
			if mb, err := resident(p); err == nil && mb > largest {
				pid, largest = p, mb
			}
		}
	}
	if pid == 0 {
		return 0, fmt.Errorf("found no application master among %d containers", len(all))
	}
	return pid, nil
}

// resident is a process's resident memory in MB.
func resident(pid int) (float64, error) {
	n, err := proc.RSS(pid)
	if err == nil && n == 0 {
		err = errors.New("it has ended")
	}
	if err != nil {
		return 0, fmt.Errorf("reading the memory of process %d: %w", pid, err)
	}
	return float64(n) / (1 << 20), nil
}

func (b *Jobs) startTheirs(ctx context.Context, tasks int, master *bench.Series) (float64, error) {
	m, err := b.newMarks()
	if err != nil {
		return 0, err
	}
	cmd := b.Cluster.HadoopCommand(ctx, "distributedshell", "-jar", b.Cluster.Jar("hadoop-yarn-applications-distributedshell"),
		"-shell_command", "bash "+m.script, "-num_containers", strconv.Itoa(tasks),
		"-container_memory", containerMB, "-master_memory", containerMB)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	all, err := m.wait(ctx, tasks)
	if err != nil {
		return 0, fmt.Errorf("%w\n%s", err, output.Bytes())
	}
	if master != nil {
		if err := b.masterMemory(master); err != nil {
			return 0, err
		}
	}
	return all[tasks-1].Sub(began).Seconds(), b.killTheirs(ctx)
}

func (b *Jobs) killTheirs(ctx context.Context) error {
	var running struct {
		Apps struct{ App []struct{ ID string } }
	}
	if err := b.rm(ctx, "apps?states=RUNNING,ACCEPTED", &running); err != nil {
		return err
	}
	for _, a := range running.Apps.App {
		if _, err := b.Cluster.Hadoop(ctx, "application", "-kill", a.ID); err != nil {
			return err
		}
	}
	return b.idle(ctx)
}
