package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/proto"
	"holdfast/test/testcluster"
)

// TestLongElasticRanksLoseTheMaster: the one that takes over while two of four are parked
// leaves the others alone, knows since when and why those are parked, and has them join again.
func TestLongElasticRanksLoseTheMaster(t *testing.T) {
	daemons.enter(t)
	c := pair(t)
	w := where{c}
	j := startRanks(t, w, "2..4")
	defer j.explain()
	j.until(long, "all to run", running)
	j.untilCheckpoint(long, 10)
	other := w.start(t, "", "--queue", testcluster.OtherQueue, "--worker", "6", "--worker-memory", "448m", "--", "sleep", "1000")
	before := j.until(long, "the job to work without two", func(s *proto.JobStatus) bool { return len(parked(s)) == 2 && working(s) })
	before = j.until(long, "steps to be made by fewer", func(s *proto.JobStatus) bool { return s.Step > before.Step })

	masters := j.masters()
	if len(masters) != 1 {
		t.Fatalf("application masters: %v", masters)
	}
	begin := time.Now()
	must(t, syscall.Kill(masters[0], syscall.SIGKILL))
	s := j.until(long, "the next master to have the agents of those that work", func(s *proto.JobStatus) bool {
		return strings.Contains(eventLog(s), "attempt 2 has taken over") && len(s.Tasks) == 4 && working(s) &&
			!slices.ContainsFunc(s.Tasks, func(k *proto.TaskStatus) bool { return k.Pid != 0 && k.AgentPid == 0 })
	})
	measured(t, "from the loss of the application master until another has all agents", begin)
	for _, b := range before.Tasks {
		now := task(s, b.Task)
		if now.State != b.State || now.Attempt != b.Attempt || now.Pid != b.Pid || now.ParkedSinceUnixMs != b.ParkedSinceUnixMs || now.ParkedCause != b.ParkedCause {
			t.Errorf("%s is known to the next master as %v, and was to the one before as %v", b.Task, now, b)
		}
	}
	if s.Generation != before.Generation {
		t.Errorf("generation %d works under the next master, and %d did before", s.Generation, before.Generation)
	}
	j.goesOn()

	whole := j.newestComplete()
	if _, errs, code := w.call(t.Context(), "", "kill", other.id); code != 0 {
		t.Fatalf("kill ended with %d: %s", code, errs)
	}
	s = j.until(long, "all to run again", running)
	s = j.until(long, "steps to be made by all", func(n *proto.JobStatus) bool { return n.Step > s.Step })
	if world, from := j.began(s, "worker-0"); world != 4 || from < whole {
		t.Errorf("worker-0 is one of %d, and began at step %d; want 4, and at %d or later", world, from, whole)
	}
	if _, errs, code := w.call(t.Context(), "", "kill", j.id); code != 0 {
		t.Errorf("kill ended with %d: %s", code, errs)
	}
}

// TestLongElasticRanksLoseANodeWhileFewWork: another queue's job takes the container of one of
// three ranks, the node of one of the others is lost, and all three work again once the node is
// back and the other job has ended.
func TestLongElasticRanksLoseANodeWhileFewWork(t *testing.T) {
	daemons.enter(t)
	conf := testcluster.TwoQueues(50)
	maps.Copy(conf, map[string]string{"yarn.nodemanager.resource.memory-mb": "2048", "yarn.nm.liveness-monitor.expiry-interval-ms": "40000"})
	c := testcluster.ForTest(t, testcluster.Options{Conf: conf})
	w := where{c}
	j := startRanks(t, w, "1..3", "--worker-spread")
	defer j.explain()
	j.until(long, "all to run", running)
	j.untilCheckpoint(long, 10)
	other := w.start(t, "", "--queue", testcluster.OtherQueue, "--worker", "6", "--worker-memory", "448m", "--", "sleep", "1000")
	s := j.until(long, "the job to work without one", func(s *proto.JobStatus) bool { return len(parked(s)) == 1 && working(s) })
	notice := noticeOf(t, s)
	s = j.until(long, "steps to be made by two", func(n *proto.JobStatus) bool { return n.Step > s.Step })
	measured(t, "from the scheduler's notice until two make steps", notice)
	j.goesOn()

	s = j.status()
	i := slices.IndexFunc(s.Tasks, func(k *proto.TaskStatus) bool {
		return k.Pid != 0 && k.Node != s.AmHost
	})
	if i < 0 {
		t.Fatalf("no task that works is on a node without the application master: %v", s.Tasks)
	}
	gone, whole := s.Tasks[i], j.newestComplete()
	node := c.NodeManager(gone.Node)
	begin := time.Now()
	must(t, c.KillNode(node))
	s = j.until(long, "one to work alone", func(s *proto.JobStatus) bool {
		return len(parked(s)) == 2 && slices.Contains(parked(s), gone.Task) && working(s)
	})
	s = j.until(long, "steps to be made by one", func(n *proto.JobStatus) bool { return n.Step > s.Step })
	measured(t, "from the loss of a node until one makes steps", begin)
	j.withoutItsLease(s, gone.Task)
	rest := s.Tasks[slices.IndexFunc(s.Tasks, func(k *proto.TaskStatus) bool { return k.Pid != 0 })]
	if world, from := j.began(s, rest.Task); world != 1 || from < whole {
		t.Errorf("%s is one of %d, and began at step %d; want 1, and at %d or later", rest.Task, world, from, whole)
	}

	whole = j.newestComplete()
	must(t, c.DataNode(node).Restart(t.Context()))
	must(t, node.Restart(t.Context()))
	if _, errs, code := w.call(t.Context(), "", "kill", other.id); code != 0 {
		t.Fatalf("kill ended with %d: %s", code, errs)
	}
	begin = time.Now()
	s = j.until(long, "all to run again", running)
	s = j.until(long, "steps to be made by all", func(n *proto.JobStatus) bool { return n.Step > s.Step })
	measured(t, "from the other job's end until three make steps", begin)
	for i := range 3 {
		if world, from := j.began(s, fmt.Sprintf("worker-%d", i)); world != 3 || from < whole {
			t.Errorf("worker-%d is one of %d, and began at step %d; want 3, and at %d or later", i, world, from, whole)
		}
	}
	if _, errs, code := w.call(t.Context(), "", "kill", j.id); code != 0 {
		t.Errorf("kill ended with %d: %s", code, errs)
	}
}

// withoutItsLease checks that the others have gone on without a task before the lease of its
// agent had expired.
func (j *job) withoutItsLease(s *proto.JobStatus, name string) {
	j.t.Helper()
	for _, i := range slices.Backward(s.Incidents) {
		if i.Task == name {
			j.t.Logf("%s: %s (%s), the others go on after %d ms, and make steps after %d ms", i.Task, i.Cause, i.Evidence, i.RecoveredAfterMs, i.ProgressAfterMs)
			if !strings.Contains(i.Evidence, "and the others can go on without it") {
				j.t.Errorf("the others have waited for the lease of the agent of %s", name)
			}
			return
		}
	}
	j.t.Errorf("the loss of %s is not told:\n%s", name, eventLog(s))
}

// measured logs how long something has taken.
func measured(t *testing.T, what string, since time.Time) {
	t.Helper()
	t.Logf("measured: %s: %s", what, time.Since(since).Round(100*time.Millisecond))
}
