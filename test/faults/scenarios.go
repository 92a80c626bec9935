package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"holdfast/proto"
)

// Scenario is a fault that takes a job, or a cluster, of its own shape. It is played
// once and has a row of its own in the report.
type Scenario struct {
	name string
	took string // what the time in its row is
	run  func(context.Context, *scene) (time.Duration, error)
}

func (c Scenario) String() string { return c.name }

var scenarios = []Scenario{
	{"late chief (monitored-session)", lateChiefTook, lateChief("monitored-session/monitored_session.py")},
	{"late chief (supervisor)", lateChiefTook, lateChief("supervisor/supervisor.py")},
	{"late chief (supervisor-sharded)", lateChiefTook, lateChief("supervisor-sharded/supervisor_sharded.py")},
	{"over memory", overMemoryTook, overMemory("")},
	{"over memory without heeding SIGTERM", overMemoryTook, overMemory(" ignore SIGTERM")},
	{"slow archive", "from the submission to the task's start, with an archive of 4 GB that is unpacked slowly", slowArchive},
	{"room for fewer", "from the submission until those train for which there is room", roomForFewer},
	{"kept apart", "from the parameter server's loss to steps of both workers, on nodes of their own as before", keptApart},
	{"node label", "from the loss of a node with the job's label to steps of both workers, on the others with it", labelled},
}

// ScenarioNames are those of all scenarios.
func ScenarioNames() []string {
	var names []string
	for _, c := range scenarios {
		names = append(names, c.name)
	}
	return names
}

// Scenarios takes the names of scenarios out of some, in their order.
func Scenarios(names []string) (rest []string, chosen []Scenario) {
	for _, name := range names {
		if i := slices.IndexFunc(scenarios, func(c Scenario) bool { return c.name == name }); i >= 0 {
			chosen = append(chosen, scenarios[i])
		} else {
			rest = append(rest, name)
		}
	}
	return rest, chosen
}

const lateChiefTook = "from the chief's loss, when the others end, to the job's end"

// lateChief has the chief come back when the other workers have ended, with a program
// that would wait for them.
func lateChief(example string) func(context.Context, *scene) (time.Duration, error) {
	const left, perSecond = 100, 50
	return func(ctx context.Context, s *scene) (time.Duration, error) {
		script, err := s.unfiltered(example)
		if err != nil {
			return 0, err
		}
		s.steps = 1500
		if err := s.start(ctx, s.train(script, parameterServers, workers, perSecond, "--ps-memory", "1200m", "--worker-memory", "1200m")...); err != nil {
			return 0, err
		}
		st, err := s.until(ctx, "all tasks run", running)
		if err != nil {
			return 0, err
		}
		if err := s.awaitSteps(ctx, "near the end", func() bool { return s.watch.step() >= int64(s.steps-left) }); err != nil {
			return 0, err
		}
		if !s.watch.moved(workers, time.Time{}) {
			return 0, errors.New("not all workers made steps before the last ones")
		}
		struck := time.Now()
		for _, t := range st.Tasks {
			if t.Task == chief {
				s.Log("%s, process %d, at step %d of %d", chief, t.Pid, s.watch.step(), s.steps)
				err = signal(int(t.Pid), syscall.SIGKILL)
			}
		}
		if err != nil {
			return 0, err
		}
		if err := s.holdChief(ctx); err != nil {
			return 0, err
		}
		end, err := s.ended(ctx)
		took := time.Since(struck)
		if err != nil {
			return took, err
		}
		s.wrong = append(s.wrong, s.judgeEnd(ctx, end)...)
		s.judgeLateChief(end)
		return took, nil
	}
}

// holdChief keeps the chief's next attempt from coming before the other workers have
// ended: usually they make their last steps while it imports TensorFlow.
func (s *scene) holdChief(ctx context.Context) (err error) {
	held := 0
	_, waited := s.until(ctx, "the other workers have ended", func(st *proto.JobStatus) bool {
		others := 0
		for _, t := range st.Tasks {
			if t.Task == chief && t.Attempt > 0 && t.Pid != 0 && held == 0 {
				held = int(t.Pid)
				err = signal(held, syscall.SIGSTOP)
			}
			if t.Role == "worker" && t.Task != chief && t.State == proto.TaskState_TASK_STATE_SUCCEEDED {
				others++
			}
		}
		return others == workers-1
	})
	if held != 0 {
		err = errors.Join(err, signal(held, syscall.SIGCONT))
	}
	return errors.Join(waited, err)
}

// judgeLateChief says what was wrong beside the end: that it was no late chief, or that
// others were started again.
func (s *scene) judgeLateChief(end *proto.JobStatus) {
	again := s.watch.beganAt(chief)
	for _, t := range end.Tasks {
		if (t.Task == chief) != (t.Attempt == 1) || t.Attempt > 1 {
			s.fault("%s ended as attempt %d", t.Task, t.Attempt)
		}
	}
	ended := 0
	for _, m := range end.Events {
		if m.Kind != "ended" || !strings.HasPrefix(m.Task, "worker-") || m.Task == chief {
			continue
		}
		ended++
		if time.UnixMilli(m.AtUnixMs).After(again) {
			s.fault("the chief had a session again before %s ended: it did not come late", m.Task)
		}
	}
	if again.IsZero() || ended != workers-1 {
		s.fault("whether the chief came late is not known: its last session began at %s, and the event log has the ends of %d other workers", again, ended)
	}
}

const (
	overMemoryTook = "from when the task takes too much to its next step, in a larger container"
	// A worker of the examples has some 500 MB.
	smallMB, takenMB, largerMB = 1200, 928, 1800
)

// overMemory has a worker take more memory than its container has, but not more than
// the next one has; how is what it does beside.
func overMemory(how string) func(context.Context, *scene) (time.Duration, error) {
	const worker = "worker-1"
	return func(ctx context.Context, s *scene) (time.Duration, error) {
		s.steps = 100_000 // it ends when all is seen
		script := filepath.Join(s.Examples, "monitored-session/monitored_session.py")
		if err := s.start(ctx, s.train(script, 1, 2, stepsPerSecond, "--ps-memory", "1200m",
			"--worker-memory", fmt.Sprintf("%dm", smallMB), "--worker-memory-max", fmt.Sprintf("%dm", largerMB))...); err != nil {
			return 0, err
		}
		task := func(st *proto.JobStatus) *proto.TaskStatus { return anyTask(s.rng, st, worker) }
		moves := func() bool { return s.watch.longest(worker, time.Time{}, time.Now()).length() > 0 }
		if err := s.awaitSteps(ctx, worker+" at work", moves); err != nil {
			return 0, err
		}
		st, err := s.until(ctx, worker+" runs", func(st *proto.JobStatus) bool { return task(st).Pid != 0 && task(st).AgentPid != 0 })
		if err != nil {
			return 0, err
		}
		gone := processes(int(task(st).Pid), int(task(st).AgentPid))
		struck := time.Now()
		if err := grow(task(st), takenMB, how); err != nil {
			return 0, err
		}
		if err := s.awaitSteps(ctx, worker+" at work again", func() bool { return !s.watch.anew(worker, struck).IsZero() }); err != nil {
			return 0, err
		}
		took := s.watch.anew(worker, struck).Sub(struck)
		if slices.ContainsFunc(gone, process.lives) {
			s.fault("the worker makes steps again, and of the processes %v, which were killed for memory, not all have ended", gone)
		}
		if st, err = s.until(ctx, "it is known to run again", func(st *proto.JobStatus) bool { return task(st).Pid != 0 }); err != nil {
			return took, err
		}
		s.judgeGrowth(st, worker)
		// Now it has room for as much.
		if err := grow(task(st), takenMB, how); err != nil {
			return took, err
		}
		if _, err = s.until(ctx, "it has taken as much again", func(st *proto.JobStatus) bool { return task(st).RssBytes > (smallMB+50)<<20 }); err != nil {
			return took, err
		}
		moved := time.Now()
		if err := s.awaitSteps(ctx, "steps after that", func() bool { return s.watch.moved(2, moved.Add(3*time.Second)) }); err != nil {
			return took, err
		}
		if st, err = s.status(ctx); err == nil && task(st).Attempt != 1 {
			s.fault("%s is at attempt %d, though it had room: %s", worker, task(st).Attempt, task(st).Why)
		}
		return took, errors.Join(err, s.abandon())
	}
}

// grow has a task take memory.
func grow(t *proto.TaskStatus, mb int, how string) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/cwd/grow", t.Pid), fmt.Appendf(nil, "%d%s", mb, how), 0o600)
}

// judgeGrowth says what was wrong with how the loss of a task by its memory is told.
func (s *scene) judgeGrowth(st *proto.JobStatus, worker string) {
	losses := 0
	for _, i := range st.Incidents {
		s.Log("%s: %s: %s", i.Task, i.Cause, i.Evidence)
		if i.Task != worker {
			s.fault("%s was lost too: %s: %s", i.Task, i.Cause, i.Evidence)
			continue
		}
		losses++
		if i.Cause != "out of memory" || !strings.Contains(i.Evidence, strconv.Itoa(smallMB)) || !strings.Contains(i.Evidence, strconv.Itoa(largerMB)) {
			s.fault("the loss is told as %q: %s", i.Cause, i.Evidence)
		}
	}
	if losses != 1 {
		s.fault("%s was lost %d times, and not once", worker, losses)
	}
	if t := anyTask(s.rng, st, worker); t.Failures != 1 {
		s.fault("%s is charged with %d failures, and not one", worker, t.Failures)
	}
}

// roomForFewer asks for more workers than there is room for, with a program that would
// wait for all.
func roomForFewer(ctx context.Context, s *scene) (time.Duration, error) {
	const asked, room = 4, 3 // one on each node
	script, err := s.unfiltered("monitored-session/monitored_session.py")
	if err != nil {
		return 0, err
	}
	s.steps = 600
	begun := time.Now()
	if err := s.start(ctx, s.train(script, 1, asked, stepsPerSecond, "--ps-memory", "700m", "--worker-memory", "2800m", "--worker-min", "2")...); err != nil {
		return 0, err
	}
	if err := s.awaitSteps(ctx, "steps", func() bool { return s.watch.step() > saveSteps }); err != nil {
		return 0, err
	}
	took := time.Since(begun)
	st, err := s.status(ctx)
	if err != nil {
		return took, err
	}
	var run []string
	for _, t := range st.Tasks {
		if t.Role == "worker" && t.State == proto.TaskState_TASK_STATE_RUNNING {
			run = append(run, t.Task)
		}
	}
	if len(run) != room {
		s.fault("the job trains with %v, and there is room for %d", run, room)
	}
	end, err := s.ended(ctx)
	if err != nil {
		return took, err
	}
	s.wrong = append(s.wrong, s.judgeEnd(ctx, end)...)
	for _, t := range end.Tasks {
		// Who had no container until the others were done may have none at the end (-1).
		if t.Attempt > 0 || t.Failures != 0 {
			s.fault("%s ended as attempt %d with %d failures", t.Task, t.Attempt, t.Failures)
		}
	}
	return took, nil
}

// slowArchive has a node unpack a large archive for longer than agents may take to come
// and than the start may take, and once only for two jobs.
func slowArchive(ctx context.Context, s *scene) (took time.Duration, err error) {
	const (
		size  = 4 << 30
		limit = 20 * time.Second // of the start, which the files' way does not count for
		hung  = 70 * time.Second // longer than an agent may take to come
	)
	archive := filepath.Join(s.Home, "venv.tar.gz")
	if err := writeZeros(archive, "zeros", size); err != nil {
		return 0, err
	}
	job := func() error {
		return s.start(ctx, "--worker", "1", "--worker-memory", "256m", "--start-limit", limit.String(),
			"--archives", archive+"#venv", "--", "sh", "-c", `stat -L -c "inode %i, %s bytes" venv/zeros`)
	}
	said := func() (string, error) {
		if _, err := s.ended(ctx); err != nil {
			return "", err
		}
		out, err := s.user().Call(ctx, "logs", s.id, "worker-0")
		if !strings.Contains(string(out), strconv.Itoa(size)+" bytes") {
			s.fault("the task did not find what was unpacked: %s", out)
		}
		return string(out), err
	}
	err = s.on(ctx, 1, 2048, nil, func() error {
		begun := time.Now()
		if err := job(); err != nil {
			return err
		}
		tar, err := s.unpacking(ctx)
		if err != nil {
			return err
		}
		s.Log("process %d unpacks, and is stopped for %s", tar, hung)
		if err := signal(tar, syscall.SIGSTOP); err != nil {
			return err
		}
		wait(ctx, hung) // it ends early with ctx
		if err := signal(tar, syscall.SIGCONT); err != nil {
			return err
		}
		first, err := said()
		if err != nil {
			return err
		}
		st, err := s.status(ctx)
		if err != nil {
			return err
		}
		took = s.judgeUnpacking(st, begun)
		if err := s.leave(); err != nil {
			return err
		}
		again := time.Now()
		if err := job(); err != nil {
			return err
		}
		second, err := said()
		if err == nil && second != first {
			s.fault("the node has unpacked the archive again for the next job: %q, and before %q", second, first)
		}
		s.Log("the next job with this archive took %.1f s", time.Since(again).Seconds())
		return err
	})
	return took, err
}

// judgeUnpacking says what was wrong with a start that had to wait for an archive, and
// tells when it was.
func (s *scene) judgeUnpacking(st *proto.JobStatus, begun time.Time) (took time.Duration) {
	told := false
	for _, m := range st.Events {
		told = told || strings.Contains(m.Text, "fetching and unpacking") && strings.Contains(m.Text, ".tar.gz")
		if m.Task == "worker-0" && m.Kind == "started" && took == 0 {
			took = time.UnixMilli(m.AtUnixMs).Sub(begun)
		}
	}
	if !told {
		s.fault("the event log does not say what was unpacked")
	}
	if took == 0 {
		s.fault("the event log does not say when the task started")
	}
	for _, i := range st.Incidents {
		s.fault("%s was lost meanwhile: %s: %s", i.Task, i.Cause, i.Evidence)
	}
	return took
}

// unpacking is the process that unpacks an archive for a node of the cluster.
func (s *scene) unpacking(ctx context.Context) (pid int, err error) {
	below := filepath.Join(s.Cluster.Dir(), "yarn") + "/"
	for end := time.Now().Add(sceneLimit); time.Now().Before(end); {
		all, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well-formed
		for _, dir := range all {
			comm, _ := os.ReadFile(dir + "/comm")
			cwd, _ := os.Readlink(dir + "/cwd")
			if string(bytes.TrimSpace(comm)) == "tar" && strings.HasPrefix(cwd, below) {
				return strconv.Atoi(filepath.Base(dir))
			}
		}
		if !wait(ctx, lookEvery) {
			return 0, ctx.Err()
		}
	}
	return 0, fmt.Errorf("no node unpacked anything within %s:\n%w", sceneLimit, s.explain(time.Time{}))
}
