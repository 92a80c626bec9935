package faults

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"holdfast/proto"
	"holdfast/test/testcluster"
)

// keptApart loses the parameter server of a job whose workers must not share its node, while
// each of the others has one of them.
func keptApart(ctx context.Context, s *scene) (time.Duration, error) {
	const server = "ps-0"
	script, err := s.unfiltered("monitored-session/monitored_session.py")
	if err != nil {
		return 0, err
	}
	s.steps = 100_000 // it ends when all is seen
	if err := s.start(ctx, s.train(script, 1, 2, stepsPerSecond, "--ps-memory", "1200m", "--worker-memory", "1200m",
		"--worker-spread", "--worker-anti-affinity", "ps")...); err != nil {
		return 0, err
	}
	if err := s.awaitSteps(ctx, "steps after a checkpoint", func() bool { return s.watch.step() > saveSteps }); err != nil {
		return 0, err
	}
	st, err := s.until(ctx, "all tasks run", allRun)
	if err != nil {
		return 0, err
	}
	s.judgeApart(st)
	before := anyTask(s.rng, st, server)
	took, err := s.lose(ctx, func() error { return signal(int(before.AgentPid), syscall.SIGKILL) })
	if err != nil {
		return took, err
	}
	if st, err = s.until(ctx, server+" runs again", func(st *proto.JobStatus) bool {
		t := anyTask(s.rng, st, server)
		return allRun(st) && t.Container != before.Container
	}); err != nil {
		return took, err
	}
	s.judgeApart(st)
	return took, s.abandon()
}

// allRun reports whether every task of a job has its process.
func allRun(st *proto.JobStatus) bool {
	return !slices.ContainsFunc(st.Tasks, func(t *proto.TaskStatus) bool { return t.Pid == 0 || t.AgentPid == 0 })
}

// lose strikes a job with two workers, and returns after what time both make steps again. It
// counts the steps that are made again.
func (s *scene) lose(ctx context.Context, strike func() error) (time.Duration, error) {
	struck, step := time.Now(), s.watch.step()
	if err := strike(); err != nil {
		return 0, err
	}
	if err := s.awaitSteps(ctx, "steps after the loss", func() bool { return s.watch.moved(2, struck.Add(time.Second)) }); err != nil {
		return 0, err
	}
	took := time.Since(struck)
	_, again := s.watch.begun(struck, step)
	s.again = max(s.again, again)
	return took, nil
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

const (
	boundTo = "gpu" // the label of the nodes nm1, nm2 and nm3
	// A node has room for two of the three tasks, so that they are on two nodes at least, and
	// a third one can take what another had.
	labelledMB = 2700
)

// labelled loses a container, and then a node, of a job that is bound to a node label, while
// a node without it is idle.
func labelled(ctx context.Context, s *scene) (took time.Duration, err error) {
	const server, worker = "ps-0", "worker-1"
	script, err := s.unfiltered("monitored-session/monitored_session.py")
	if err != nil {
		return 0, err
	}
	play := func() error {
		if err := s.Cluster.Label(ctx, []string{boundTo}, map[string]string{"nm1": boundTo, "nm2": boundTo, "nm3": boundTo}); err != nil {
			return err
		}
		s.steps = 100_000 // it ends when all is seen
		if err := s.start(ctx, s.train(script, 1, 2, stepsPerSecond, "--ps-memory", "1200m", "--worker-memory", "1200m",
			"--worker-spread", "--node-label", boundTo)...); err != nil {
			return err
		}
		if err := s.awaitSteps(ctx, "steps of both workers after a checkpoint", func() bool { return s.watch.step() > saveSteps && s.watch.moved(2, time.Time{}) }); err != nil {
			return err
		}
		st, err := s.until(ctx, "all tasks run", allRun)
		if err != nil {
			return err
		}
		before := anyTask(s.rng, st, worker)
		alone, err := s.lose(ctx, func() error { return signal(int(before.AgentPid), syscall.SIGKILL) })
		if err != nil {
			return err
		}
		if st, err = s.until(ctx, worker+" runs in another container", func(st *proto.JobStatus) bool {
			return allRun(st) && anyTask(s.rng, st, worker).Container != before.Container
		}); err != nil {
			return err
		}
		s.Log("%.1f s after the loss of its container, %s runs on %s", alone.Seconds(), worker, anyTask(s.rng, st, worker).Node)
		lost := anyTask(s.rng, st, server).Node
		for _, t := range st.Tasks {
			if lost == st.AmHost && t.Role == "worker" { // of which one is elsewhere: they share no node
				lost = t.Node
			}
		}
		s.Log("%s, the node of %s, is lost", lost, strings.Join(tasksOn(st, lost), ", "))
		complete, struck := st.CompleteStep, time.Now()
		if took, err = s.lose(ctx, func() error { return s.Cluster.KillNode(s.Cluster.NodeManager(lost)) }); err != nil {
			return err
		}
		if st, err = s.until(ctx, "all tasks run on other nodes", func(st *proto.JobStatus) bool {
			return allRun(st) && !slices.ContainsFunc(st.Tasks, func(t *proto.TaskStatus) bool { return t.Node == lost })
		}); err != nil {
			return err
		}
		if lowest, _ := s.watch.begun(struck, 0); lowest >= 0 && lowest < complete {
			s.fault("it went on from step %d, and the checkpoint of step %d was complete", lowest, complete)
		}
		s.judgeLabelled(st)
		return nil
	}
	err = s.on(ctx, 4, labelledMB, testcluster.Partitions(boundTo), play)
	return took, err
}

// tasksOn are the names of the tasks on a node.
func tasksOn(st *proto.JobStatus, node string) (names []string) {
	for _, t := range st.Tasks {
		if t.Node == node {
			names = append(names, t.Task)
		}
	}
	return names
}

// judgeLabelled says which containers of the job are, or have been, on the node without the
// label: its NodeManager tells of each that it has ever started.
func (s *scene) judgeLabelled(st *proto.JobStatus) {
	outside := s.Cluster.Daemon("nm0")
	for _, t := range st.Tasks {
		s.Log("%s is on %s", t.Task, t.Node)
		if s.Cluster.NodeManager(t.Node) == outside {
			s.fault("%s is on %s, which has no label", t.Task, t.Node)
		}
	}
	// container_[eEPOCH_]CLUSTER_APPLICATION_ATTEMPT_NUMBER (ContainerId.toString)
	containers := regexp.MustCompile(`container\w*` + strings.TrimPrefix(s.id, "application") + `_\w+`)
	log := outside.Log()
	if !strings.Contains(log, "Registered with ResourceManager as") {
		s.fault("what %s has logged is not known", outside.Name())
	}
	if found := containers.FindString(log); found != "" {
		s.fault("%s was on the node without a label", found)
	}
	if !containers.MatchString(s.Cluster.NodeManager(st.AmHost).Log()) {
		s.fault("the log of the application master's node tells of no container of the job")
	}
}
