package e2e

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/proto"
	"holdfast/test/pyenv"
	"holdfast/test/testcluster"
)

// TestLongElasticRanks: four ranks of PyTorch go on as two while another queue's job has the
// containers of two, and as four again when these are back.
func TestLongElasticRanks(t *testing.T) {
	daemons.enter(t)
	c := pair(t)
	w := where{c}
	j := startRanks(t, w, "2..4")
	defer j.explain()
	j.until(long, "all to run", running)
	before := j.untilCheckpoint(long, 10)

	begin := time.Now()
	other := w.start(t, "", "--queue", testcluster.OtherQueue, "--worker", "6", "--worker-memory", "448m", "--", "sleep", "1000")
	s := j.until(long, "the job to work without two", func(s *proto.JobStatus) bool { return len(parked(s)) == 2 && working(s) })
	notice := noticeOf(t, s)
	at := s.Step
	s = j.until(long, "steps to be made by fewer", func(s *proto.JobStatus) bool { return s.Step > at })
	measured(t, "from the scheduler's notice until two make steps", notice)
	t.Logf("the other queue's job began at 0 s; the notice came after %s; %v are parked, and steps are made after %s",
		notice.Sub(begin).Round(100*time.Millisecond), parked(s), time.Since(begin).Round(100*time.Millisecond))
	if world, from := j.began(s, "worker-0"); world != 2 || from < before {
		t.Errorf("worker-0 is one of %d, and began at step %d; want 2, and at %d or later", world, from, before)
	}
	j.goesOn()
	for _, i := range j.status().Incidents {
		if i.Recovery != "the others go on without it" || i.ResumedStep == 0 {
			t.Errorf("the loss of %s is not told as one that the others do without: %v", i.Task, i)
		}
	}
	text, _, _ := w.call(t.Context(), "", "status", j.id)
	t.Logf("status:\n%s", text)
	if want := "the others work without it: container preempted"; !strings.Contains(text, "parked") || !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
		t.Errorf("status does not tell %q", want)
	}
	for _, k := range s.Tasks {
		if k.Failures != 0 {
			t.Errorf("%s has %d failures", k.Task, k.Failures)
		}
	}

	whole := j.newestComplete()
	if _, errs, code := w.call(t.Context(), "", "kill", other.id); code != 0 {
		t.Fatalf("kill ended with %d: %s", code, errs)
	}
	begin = time.Now()
	s = j.until(long, "all to run again", running)
	at = s.Step
	s = j.until(long, "steps to be made by all", func(s *proto.JobStatus) bool { return s.Step > at })
	measured(t, "from the other job's end until four make steps", begin)
	for i := range 4 {
		if world, from := j.began(s, fmt.Sprintf("worker-%d", i)); world != 4 || from < whole {
			t.Errorf("worker-%d is one of %d, and began at step %d; want 4, and at %d or later", i, world, from, whole)
		}
	}

	j.scaled(w, 2)
	j.scaled(w, 4)
	s = j.status()
	text, _, _ = w.call(t.Context(), "", "status", j.id)
	t.Logf("status:\n%s", text)
	for i, g := range s.Generations {
		if i > 0 && g.FirstStep <= s.Generations[i-1].FirstStep || g.Tasks+int32(len(g.Parked)) != g.Of || g.Of != 4 {
			t.Errorf("a generation is told as %v", g)
		}
	}
	for _, i := range s.Incidents {
		if i.TasksBefore < 3 || i.TasksAfter < 2 || i.TasksAfter > i.TasksBefore {
			t.Errorf("a loss is told as that of one of %d, after which %d worked: %v", i.TasksBefore, i.TasksAfter, i)
		}
	}
	if _, errs, code := w.call(t.Context(), "", "kill", j.id); code != 0 {
		t.Errorf("kill ended with %d: %s", code, errs)
	}
}

// startRanks starts a job of PyTorch with a range of ranks, which never ends by itself.
func startRanks(t *testing.T, w where, ranks string, options ...string) *job {
	t.Helper()
	python, err := pyenv.Torch(t.Context())
	must(t, err)
	script, err := filepath.Abs("../../examples/pytorch-ddp/train.py")
	must(t, err)
	store := w.cluster.HDFS() + "/tests/" + t.Name()
	args := append([]string{"--framework", "pytorch", "--worker", ranks, "--worker-memory", "1g"}, options...)
	j := w.start(t, "", append(args,
		"--checkpoint", "./train_logs="+store, "--files", script, "--", python, "train.py", "--steps", "1000000", "--save_steps", "10", "--step_secs", "0.2")...)
	j.store = store
	return j
}

// explain logs a job's events if the test has failed; deferred, since it asks for them.
func (j *job) explain() {
	if j.t.Failed() {
		j.t.Logf("the job:\n%s", eventLog(j.status()))
	}
}

// scaled has a job of four ranks work with n, which then make steps.
func (j *job) scaled(w where, n int) {
	j.t.Helper()
	begin, whole := time.Now(), j.newestComplete()
	if _, errs, code := w.call(j.t.Context(), "", "scale", j.id, fmt.Sprintf("worker=%d", n)); code != 0 {
		j.t.Fatalf("scale ended with %d: %s", code, errs)
	}
	s := j.until(long, fmt.Sprintf("%d to work", n), func(s *proto.JobStatus) bool { return len(parked(s)) == 4-n && working(s) })
	at := s.Step
	s = j.until(long, "steps to be made", func(s *proto.JobStatus) bool { return s.Step > at })
	measured(j.t, fmt.Sprintf("from the call of scale until %d make steps", n), begin)
	if world, from := j.began(s, "worker-0"); world != n || from < whole {
		j.t.Errorf("worker-0 is one of %d, and began at step %d; want %d, and at %d or later", world, from, n, whole)
	}
}

// parked are the tasks without which the job works.
func parked(s *proto.JobStatus) []string {
	var names []string
	for _, k := range s.Tasks {
		if k.State == proto.TaskState_TASK_STATE_PARKED {
			names = append(names, k.Task)
		}
	}
	return names
}

// working reports whether all that are not parked run.
func working(s *proto.JobStatus) bool {
	return !slices.ContainsFunc(s.Tasks, func(k *proto.TaskStatus) bool {
		return k.State != proto.TaskState_TASK_STATE_PARKED && (k.State != proto.TaskState_TASK_STATE_RUNNING || k.Pid == 0)
	})
}

// noticeOf is when the scheduler said first that it takes containers.
func noticeOf(t *testing.T, s *proto.JobStatus) time.Time {
	t.Helper()
	for _, e := range s.Events {
		if strings.Contains(e.Text, "the scheduler") {
			return time.UnixMilli(e.AtUnixMs)
		}
	}
	t.Fatalf("the scheduler has not said that it takes containers:\n%s", eventLog(s))
	return time.Time{}
}

// began is of how many ranks a task's present attempt is one, and at which step it began.
func (j *job) began(s *proto.JobStatus, name string) (world int, step int64) {
	j.t.Helper()
	for end := time.Now().Add(long); ; time.Sleep(100 * time.Millisecond) { // logs come a little after steps
		_, text, _ := strings.Cut(j.logs(name), fmt.Sprintf("attempt %d <==\n", task(s, name).Attempt))
		if m := beginning.FindStringSubmatch(text); m != nil {
			_, _ = fmt.Sscan(m[1]+" "+m[2], &world, &step)
			return world, step
		}
		if time.Now().After(end) {
			j.t.Fatalf("%s does not say where it begins:\n%s", name, text)
		}
	}
}

// TestLongRanksSaveTogether: ranks that never save otherwise are told together that one of them
// is taken, save together in the time that is left, and go on from there.
func TestLongRanksSaveTogether(t *testing.T) {
	daemons.enter(t)
	// A quarter of the time that the scheduler leaves is for the save.
	conf := testcluster.TwoQueues(50)
	maps.Copy(conf, map[string]string{
		"dfs.replication":                     "1",
		"yarn.nodemanager.resource.memory-mb": "2048",
		"yarn.resourcemanager.monitor.capacity.preemption.max_wait_before_kill": "60000",
	})
	c := testcluster.ForTest(t, testcluster.Options{DataNodes: 1, Conf: conf})
	w := where{c}
	python, err := pyenv.Torch(t.Context())
	must(t, err)
	store := c.HDFS() + "/tests/" + t.Name()
	j := w.start(t, "", "--framework", "pytorch", "--worker", "4", "--worker-memory", "1g",
		"--checkpoint", "./train_logs="+store, "--files", "testdata/ranks/saves.py", "--", python, "saves.py")
	j.store = store
	defer j.explain()
	j.until(long, "steps to be made", func(s *proto.JobStatus) bool { return s.Step > 0 })
	other := w.start(t, "", "--queue", testcluster.OtherQueue, "--worker", "6", "--worker-memory", "448m", "--", "sleep", "1000")
	s := j.until(long, "the job to wait", func(s *proto.JobStatus) bool {
		return strings.Contains(eventLog(s), "waiting for") && !slices.ContainsFunc(s.Tasks, func(k *proto.TaskStatus) bool { return k.Pid != 0 })
	})
	saved := lastNumber(t, j.logs("worker-0"), `saved step (\d+) together`)
	if n := j.newestComplete(); n != saved {
		t.Errorf("the newest complete checkpoint is of step %d, and step %d was saved", n, saved)
	}
	if n := preempted(t, c, j.id); n != 0 || len(s.Incidents) == 0 {
		t.Errorf("the scheduler had to take %d containers itself: %v", n, s.Incidents)
	}
	if _, errs, code := w.call(t.Context(), "", "kill", other.id); code != 0 {
		t.Fatalf("kill ended with %d: %s", code, errs)
	}
	s = j.until(long, "all to run again", running)
	at := s.Step
	s = j.until(long, "steps to be made again", func(s *proto.JobStatus) bool { return s.Step > at })
	for _, k := range s.Tasks {
		if world, from := j.began(s, k.Task); world != 4 || int64(from) != saved || k.Failures != 0 {
			t.Errorf("%s is one of %d, began at step %d, and has %d failures; want 4, step %d, and none", k.Task, world, from, k.Failures, saved)
		}
	}
	if _, errs, code := w.call(t.Context(), "", "kill", j.id); code != 0 {
		t.Errorf("kill ended with %d: %s", code, errs)
	}
}

// beginning is what a rank of examples/pytorch-ddp prints first.
var beginning = regexp.MustCompile(`\brank \d+ of (\d+) begins at step (\d+)`)

// TestLongElasticRanksLoseANode: ranks go on without one whose node is lost before its lease
// has expired, also where torchrun is told the number of its nodes by the environment, and
// with either rendezvous.
func TestLongElasticRanksLoseANode(t *testing.T) {
	daemons.enter(t)
	for name, rendezvous := range map[string][]string{
		"static": nil,
		"c10d":   {"--rdzv-backend=c10d", "--rdzv-endpoint={master_addr}:{master_port}"},
	} {
		t.Run(name, func(t *testing.T) { loseANodeOfElasticRanks(t, rendezvous...) })
	}
}

// loseANodeOfElasticRanks loses a node of three ranks under torchrun, with these options.
func loseANodeOfElasticRanks(t *testing.T, torchrun ...string) {
	c := testcluster.ForTest(t, testcluster.Options{})
	w := where{c}
	python, err := pyenv.NewestTorch(t.Context())
	must(t, err)
	script, err := filepath.Abs("../../examples/pytorch-ddp/train.py")
	must(t, err)
	args := append([]string{"--framework", "pytorch", "--worker", "2..3", "--worker-spread", "--worker-memory", "1g",
		"--checkpoint", "./train_logs=" + c.HDFS() + "/tests/" + t.Name(), "--files", script, "--", filepath.Join(filepath.Dir(python), "torchrun")}, torchrun...)
	j := w.start(t, "", append(args, "train.py", "--steps", "1000000", "--save_steps", "10", "--step_secs", "0.2")...)
	j.store = c.HDFS() + "/tests/" + t.Name()
	defer j.explain()
	before := j.untilCheckpoint(long, 10)
	gone := awayFromMaster(t, j.until(long, "all to run", running))
	begin := time.Now()
	must(t, c.KillNode(c.NodeManager(gone.Node)))
	s := j.until(long, "the others to work", func(s *proto.JobStatus) bool {
		return slices.Equal(parked(s), []string{gone.Task}) && working(s)
	})
	at := s.Step
	s = j.until(long, "steps to be made without it", func(s *proto.JobStatus) bool { return s.Step > at && s.State == proto.JobState_JOB_STATE_RUNNING })
	measured(t, "from the loss of a node until two make steps (torchrun)", begin)
	j.withoutItsLease(s, gone.Task)
	for _, k := range s.Tasks {
		if k.Task == gone.Task {
			continue
		}
		if world, from := j.began(s, k.Task); world != 2 || from < before {
			t.Errorf("%s is one of %d, and began at step %d; want 2, and at %d or later", k.Task, world, from, before)
		}
	}
	if _, errs, code := w.call(t.Context(), "", "kill", j.id); code != 0 {
		t.Errorf("kill ended with %d: %s", code, errs)
	}
}

// TestLongElasticRanksWaitBelowTheMinimum: with fewer than they can work with, ranks wait, and
// the job says for what.
func TestLongElasticRanksWaitBelowTheMinimum(t *testing.T) {
	daemons.enter(t)
	c := pair(t)
	w := where{c}
	j := startRanks(t, w, "3..4")
	defer j.explain()
	j.until(long, "all to run", running)
	before := j.untilCheckpoint(long, 10)
	other := w.start(t, "", "--queue", testcluster.OtherQueue, "--worker", "6", "--worker-memory", "448m", "--", "sleep", "1000")
	other.until(long, "the other job to run", running)
	s := j.until(long, "the job to wait", func(s *proto.JobStatus) bool {
		return strings.Contains(eventLog(s), "waiting for 2 containers for worker") && !slices.ContainsFunc(s.Tasks, func(k *proto.TaskStatus) bool { return k.Pid != 0 })
	})
	if names := parked(s); names != nil || !strings.Contains(eventLog(s), "is full") {
		t.Errorf("%v are parked in a job that waits:\n%s", names, eventLog(s))
	}
	if _, errs, code := w.call(t.Context(), "", "kill", other.id); code != 0 {
		t.Fatalf("kill ended with %d: %s", code, errs)
	}
	s = j.until(long, "all to run again", running)
	at := s.Step
	s = j.until(long, "steps to be made by all", func(s *proto.JobStatus) bool { return s.Step > at })
	if world, from := j.began(s, "worker-0"); world != 4 || from < before {
		t.Errorf("worker-0 is one of %d, and began at step %d; want 4, and at %d or later", world, from, before)
	}
	text, _, _ := w.call(t.Context(), "", "status", j.id)
	t.Logf("status:\n%s", text)
	if _, errs, code := w.call(t.Context(), "", "kill", j.id); code != 0 {
		t.Errorf("kill ended with %d: %s", code, errs)
	}
}

// TestLongElasticParameterServers: workers with parameter servers that another queue's job
// takes the containers of come back when these do, and the others never stop.
func TestLongElasticParameterServers(t *testing.T) {
	daemons.enter(t)
	c := pair(t)
	w := where{c}
	python := tensorflow(t)
	script, err := filepath.Abs("../../examples/monitored-session/monitored_session.py")
	must(t, err)
	store := c.HDFS() + "/tests/" + t.Name()
	j := w.start(t, "", "--framework", "tensorflow", "--tf1", "--ps", "1", "--worker", "2..4", "--ps-memory", "512m", "--worker-memory", "900m",
		"--checkpoint", "./train_logs="+store, "--files", script, "--", python, "monitored_session.py", "--job_name={role}", "--task_index={index}",
		"--ps_hosts={ps_hosts}", "--worker_hosts={worker_hosts}", "--steps", "1000000")
	j.store = store
	defer j.explain()
	before := j.until(tfLimit, "all to run", running)
	j.untilCheckpoint(tfLimit, 1)

	other := w.start(t, "", "--queue", testcluster.OtherQueue, "--worker", "6", "--worker-memory", "448m", "--", "sleep", "1000")
	lost := func(s *proto.JobStatus) (names []string) {
		for _, i := range s.Incidents {
			if s.IsOpen(i) {
				names = append(names, i.Task)
			}
		}
		return names
	}
	s := j.until(long, "two workers to be lost", func(s *proto.JobStatus) bool { return len(lost(s)) == 2 })
	taken, notice, at := lost(s), noticeOf(t, s), s.Step
	j.until(long, "steps to be made by the others", func(s *proto.JobStatus) bool { return s.Step > at })
	measured(t, "from the scheduler's notice until the workers that it left make steps (parameter servers)", notice)
	j.goesOn()
	j.undisturbed(before, taken...)

	if _, errs, code := w.call(t.Context(), "", "kill", other.id); code != 0 {
		t.Fatalf("kill ended with %d: %s", code, errs)
	}
	begin := time.Now()
	j.until(tfLimit, "all to run again", running)
	measured(t, "from the other job's end until four workers run (parameter servers)", begin)
	j.undisturbed(before, taken...)
	j.goesOn()

	// A person may want fewer, too, and those that stay never stop.
	if _, errs, code := w.call(t.Context(), "", "scale", j.id, "worker=2"); code != 0 {
		t.Fatalf("scale ended with %d: %s", code, errs)
	}
	j.until(long, "two workers to leave", func(s *proto.JobStatus) bool { return len(parked(s)) == 2 })
	j.goesOn()
	j.undisturbed(before, append(parked(j.status()), taken...)...)
	if _, errs, code := w.call(t.Context(), "", "kill", j.id); code != 0 {
		t.Errorf("kill ended with %d: %s", code, errs)
	}
}
