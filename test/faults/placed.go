package faults

import (
	"context"
	"slices"
	"syscall"
	"time"

	"holdfast/proto"
)

// keptApart loses the parameter server of a job whose workers must not share its node, while
// each of the others has one of them.
func keptApart(ctx context.Context, s *scene) (time.Duration, error) {
	const server = "ps-0"
	script, err := s.unfiltered("monitored-session/monitored_session.py")
	if err != nil {
		return 0, err
	}
	run := func(st *proto.JobStatus) bool {
		return !slices.ContainsFunc(st.Tasks, func(t *proto.TaskStatus) bool { return t.Pid == 0 || t.AgentPid == 0 })
	}
	s.steps = 100_000 // it ends when all is seen
	if err := s.start(ctx, s.train(script, 1, 2, stepsPerSecond, "--ps-memory", "1200m", "--worker-memory", "1200m",
		"--worker-spread", "--worker-anti-affinity", "ps")...); err != nil {
		return 0, err
	}
	if err := s.awaitSteps(ctx, "steps after a checkpoint", func() bool { return s.watch.step() > saveSteps }); err != nil {
		return 0, err
	}
	st, err := s.until(ctx, "all tasks run", run)
	if err != nil {
		return 0, err
	}
	s.judgeApart(st)
	before := anyTask(s.rng, st, server)
	struck := time.Now()
	if err := signal(int(before.AgentPid), syscall.SIGKILL); err != nil {
		return 0, err
	}
	if err := s.awaitSteps(ctx, "steps after the loss", func() bool { return s.watch.moved(2, struck.Add(time.Second)) }); err != nil {
		return 0, err
	}
	took := time.Since(struck)
	if st, err = s.until(ctx, server+" runs again", func(st *proto.JobStatus) bool {
		t := anyTask(s.rng, st, server)
		return run(st) && t.Container != before.Container
	}); err != nil {
		return took, err
	}
	s.judgeApart(st)
	return took, s.abandon()
}

// judgeApart says which tasks share a node, and must not.
func (s *scene) judgeApart(st *proto.JobStatus) {
	var nodes []string
	for _, t := range st.Tasks {
		s.Log("%s is on %s", t.Task, t.Node)
		if slices.Contains(nodes, t.Node) {
			s.fault("%s shares the node %s", t.Task, t.Node)
		}
		nodes = append(nodes, t.Node)
	}
}
