package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/proto"
)

// long is how long a step of a job may take on a machine that is busy
// otherwise. Nothing waits for it when all is well.
const long = 3 * time.Minute

// untilFinish, in place of a number of steps, is as many as are made until the test
// calls finish: what it does meanwhile takes as long as it takes.
const untilFinish = 0

// trainerArgs runs the Go example with two parameter servers and two workers.
func trainerArgs(store string, steps int, more ...string) []string {
	args := []string{"--ps", "2", "--worker", "2", "--ps-memory", "256m", "--worker-memory", "256m",
		"--checkpoint", "./train_logs=" + store}
	args = append(args, more...)
	args = append(args, "--", trainer, "--job_name={role}", "--task_index={index}",
		"--ps_hosts={ps_hosts}", "--worker_hosts={worker_hosts}", "--train_dir=./train_logs", "--step_time=20ms")
	if steps == untilFinish {
		return append(args, "--until=./train_logs/"+finished)
	}
	return append(args, "--steps="+strconv.Itoa(steps))
}

// places are the two ways to run a job.
func places(t *testing.T, f func(t *testing.T, w where, store string)) {
	t.Run("local", func(t *testing.T) {
		f(t, where{}, filepath.Join(t.TempDir(), "store"))
	})
	t.Run("yarn", func(t *testing.T) {
		c := hadoop(t)
		f(t, where{c}, c.HDFS()+"/tests/"+strings.ReplaceAll(t.Name(), "/", "-"))
	})
}

// ship gives a task the trainer: on YARN it is one of the job's files.
func ship(w where, args []string) []string {
	if w.cluster == nil {
		return args
	}
	out := append([]string{"--files", trainer}, args...)
	for i, a := range out[2:] {
		if a == trainer {
			out[i+2] = "./" + filepath.Base(trainer)
		}
	}
	return out
}

func (w where) train(t *testing.T, store string, steps int, more ...string) *job {
	t.Helper()
	j := w.start(t, "", ship(w, trainerArgs(store, steps, more...))...)
	j.store = store
	return j
}

func TestTrainerLosesAParameterServer(t *testing.T) {
	plain.enter(t)
	places(t, func(t *testing.T, w where, store string) {
		w.trainThroughLoss(t, store, (*job).killContainer, (*job).killProcess)
	})
}

// trainThroughLoss trains to the end, ps-1 lost on the way in each of these ways.
func (w where) trainThroughLoss(t *testing.T, store string, kills ...func(*job, string)) *job {
	t.Helper()
	j := w.train(t, store, untilFinish)
	j.until(long, "all to run", running)
	restores := func() int { return strings.Count(j.logs("worker-0"), "restored step") }
	before := int64(0)
	for _, kill := range kills {
		already := restores()
		before = j.untilCheckpoint(long, before+1)
		kill(j, "ps-1")
		took := j.back(long, "ps-1")
		j.until(long, "worker-0 to go on", func(*proto.JobStatus) bool { return restores() > already })
		restored := lastNumber(t, j.logs("worker-0"), `restored step (\d+)`)
		if restored < before {
			t.Errorf("it went on from step %d, and the checkpoint of step %d was complete", restored, before)
		}
		t.Logf("ps-1 lost after step %d: running again after %s, continued from step %d", before, took, restored)
	}
	j.finish(long)
	return j
}

// finished is the file in the checkpoint directory for which jobs train that end when
// the test is done with them.
const finished = "finished"

// letFinish has a job end that was to train untilFinish.
func (j *job) letFinish() {
	j.t.Helper()
	if c := j.w.cluster; c == nil {
		must(j.t, os.WriteFile(filepath.Join(j.store, finished), nil, 0o644))
	} else if _, err := c.Hadoop(j.t.Context(), "fs", "-touchz", j.store+"/"+finished); err != nil {
		j.t.Fatal(err)
	}
}

// finish is letFinish, and looks at what the job leaves.
func (j *job) finish(limit time.Duration) {
	j.t.Helper()
	j.letFinish()
	j.end(limit, proto.JobState_JOB_STATE_SUCCEEDED)
	last := lastNumber(j.t, j.logs("worker-0"), `final step (\d+)`)
	if newest := j.newestComplete(); newest != last {
		j.t.Errorf("the newest checkpoint is of step %d, and the last step was %d", newest, last)
	}
}

func running(s *proto.JobStatus) bool {
	for _, t := range s.Tasks {
		if t.State != proto.TaskState_TASK_STATE_RUNNING || t.Pid == 0 {
			return false
		}
	}
	return len(s.Tasks) > 0
}

func number(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAFailingTaskEndsTheJob(t *testing.T) {
	plain.enter(t)
	places(t, func(t *testing.T, w where, _ string) {
		j := w.start(t, "", "--worker", "2", "--worker-memory", "256m", "--restarts", "1", "--",
			"sh", "-c", "echo this is {role}-{index}; if [ {index} = 1 ]; then echo it went wrong >&2; exit 7; fi; sleep 600")
		s := j.end(long, proto.JobState_JOB_STATE_FAILED)
		for _, want := range []string{"worker-1", "7", "twice"} {
			if !strings.Contains(s.Why, want) {
				t.Errorf("why it failed: %q does not say %q", s.Why, want)
			}
		}
		if got := strings.Join(task(s, "worker-1").Tail, "\n"); !strings.Contains(got, "it went wrong") {
			t.Errorf("its last lines: %q", got)
		}
		if text := j.logs("worker-1"); strings.Count(text, "it went wrong") != 2 {
			t.Errorf("the logs of both attempts of worker-1:\n%s", text)
		}
		stamped := regexp.MustCompile(`(?m)^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ it went wrong$`)
		if out, errs, code := w.call(t.Context(), "", "logs", j.id, "worker-1", "--timestamps", "--since", "1h"); code != 0 || errs != "" || len(stamped.FindAllString(out, -1)) != 2 {
			t.Errorf("the logs of worker-1 with times ended with %d:\n%s%s", code, out, errs)
		}
	})
}

func TestACommandThatIsNotThere(t *testing.T) {
	plain.enter(t)
	places(t, func(t *testing.T, w where, _ string) {
		j := w.start(t, "", "--worker", "1", "--worker-memory", "256m", "--", "pyton3", "train.py")
		s := j.end(long, proto.JobState_JOB_STATE_FAILED)
		if !strings.Contains(s.Why, "pyton3") {
			t.Errorf("why it failed: %q", s.Why)
		}
		if a := task(s, "worker-0").Attempt; a != 0 {
			t.Errorf("it was tried again: attempt %d", a)
		}
	})
}

func TestKill(t *testing.T) {
	plain.enter(t)
	places(t, func(t *testing.T, w where, store string) {
		j := w.train(t, store, untilFinish)
		j.until(long, "all to run", running)
		if _, stderr, code := w.call(t.Context(), "", "kill", j.id); code != 0 {
			t.Fatalf("kill ended with %d: %s", code, stderr)
		}
		j.end(long, proto.JobState_JOB_STATE_KILLED)
	})
}

func TestFollowingTellsTheStory(t *testing.T) {
	plain.enter(t)
	places(t, func(t *testing.T, w where, _ string) {
		args := []string{"run"}
		if w.cluster == nil {
			args = append(args, "--local")
		}
		dir := t.TempDir()
		stdout, stderr, code := w.call(t.Context(), dir, append(args, "--worker", "1", "--worker-memory", "256m", "--", "true")...)
		if code != 0 {
			t.Fatalf("ended with %d:\n%s\n%s", code, stdout, stderr)
		}
		stdout, stderr, code = w.call(t.Context(), dir, append(args, "--worker", "1", "--worker-memory", "256m", "--restarts", "0", "--", "sh", "-c", "echo alas; exit 3")...)
		all := stdout + stderr
		if code != 1 {
			t.Errorf("a job that fails: exit code %d, want 1", code)
		}
		for _, want := range []string{"worker-0", "alas", "3"} {
			if !strings.Contains(all, want) {
				t.Errorf("a job that fails: %q is not in\n%s", want, all)
			}
		}
	})
}

// TestOneDirectoryForAll: what one task has closed, all others see, wherever
// they run and however they spell the path.
func TestOneDirectoryForAll(t *testing.T) {
	plain.enter(t)
	places(t, func(t *testing.T, w where, store string) {
		args := []string{"--worker", "2", "--worker-memory", "256m", "--restarts", "0"}
		paths := []string{"./logs", "deep/er/logs", "/tmp/holdfast-e2e-logs"}
		for i, path := range paths {
			args = append(args, "--checkpoint", fmt.Sprintf("%s=%s/%d", path, store, i))
		}
		script := fmt.Sprintf(`for p in %s; do
echo $p-{index} > $p/part-{index} && mv $p/part-{index} $p/done-{index} || exit 1
for i in $(seq 1 600); do [ "$(cat $p/done-0 $p/done-1 2>/dev/null | tr '\n' ' ')" = "$p-0 $p-1 " ] && continue 2; sleep 0.1; done
ls -la $p; exit 1
done`, strings.Join(paths, " "))
		j := w.start(t, "", append(args, "--", "sh", "-c", script)...)
		j.store = store
		j.end(long, proto.JobState_JOB_STATE_SUCCEEDED)
	})
}

// TestAPathMeansTheSameInAllContainers: a task saves where another one says, by an absolute path,
// as ranks do to which the first one sends where the checkpoint is to be.
func TestAPathMeansTheSameInAllContainers(t *testing.T) {
	plain.enter(t)
	places(t, func(t *testing.T, w where, store string) {
		script := `if [ {index} = 0 ]; then mkdir logs/step_10 && (cd logs/step_10 && pwd -P) >logs/where; fi
for i in $(seq 1 600); do [ -s logs/where ] && break; sleep 0.1; done
dir=$(cat logs/where) && mkdir -p $dir && echo {index} >$dir/shard-{index}`
		j := w.start(t, "", "--worker", "2", "--worker-memory", "256m", "--restarts", "0", "--checkpoint", "./logs="+store, "--", "sh", "-c", script)
		j.store = store
		j.end(long, proto.JobState_JOB_STATE_SUCCEEDED)
		want := []string{"step_10", "step_10/shard-0", "step_10/shard-1", "where"}
		if got := j.stored(); !slices.Equal(got, want) {
			t.Errorf("the directory has %q instead of %q", got, want)
		}
	})
}

// TestTwoJobsOnOneDirectory: each would take the other's unfinished saves for what a
// lost task has left, so the second is refused, also above and below the first one's
// directory, unless it is told to share.
func TestTwoJobsOnOneDirectory(t *testing.T) {
	plain.enter(t)
	places(t, func(t *testing.T, w where, store string) {
		above := store
		store += "/a"
		args := []string{"--worker", "1", "--worker-memory", "256m", "--checkpoint", "./logs=" + store}
		j := w.start(t, "", append(args, "--", "sh", "-c", "echo x > logs/a && echo written; sleep 600")...)
		j.store = store
		j.said(long, "worker-0", "written")
		second := append([]string{"run"}, args...)
		if w.cluster == nil {
			second = append(second, "--local")
		}
		for _, uri := range []string{store, above, store + "/b/c"} {
			second[len(args)] = "./logs=" + uri
			if out, errs, code := w.call(t.Context(), "", append(second, "--", "true")...); code != 2 || !strings.Contains(errs, j.id) || !strings.Contains(errs, "share=true") {
				t.Errorf("a second job on %s ended with %d:\n%s%s", uri, code, out, errs)
			}
		}
		second = append([]string{"run", "--worker", "1", "--worker-memory", "256m", "--checkpoint", "./logs=" + store + ",share=true"}, second[len(args)+1:]...)
		if out, errs, code := w.call(t.Context(), "", append(second, "--", "cat", "logs/a")...); code != 0 {
			t.Errorf("a second job that shares the directory ended with %d:\n%s%s", code, out, errs)
		}
	})
}

// TestAJobThatWaitsHasItsDirectory: also while its application master has no container, so
// that nothing of it runs.
func TestAJobThatWaitsHasItsDirectory(t *testing.T) {
	plain.enter(t)
	w := where{hadoop(t)}
	small := []string{"--worker", "1", "--worker-memory", "256m"}
	// The queue has room for one application master.
	w.start(t, "", append(small, "--queue", "small", "--am-memory", "1g", "--", "sleep", "600")...)
	args := append(small, "--checkpoint", "./logs="+w.cluster.HDFS()+"/tests/waits")
	waits := w.start(t, "", append(args, "--queue", "small", "--am-memory", "1g", "--", "true")...)
	if s := waits.status(); s.State != proto.JobState_JOB_STATE_WAITING || len(s.Tasks) > 0 {
		t.Fatalf("it does not wait for its application master: %s (%s)", s.State, s.Why)
	}
	out, errs, code := w.call(t.Context(), "", append(append([]string{"run"}, args...), "--", "true")...)
	if code != 2 || !strings.Contains(errs, waits.id) || !strings.Contains(errs, "share=true") {
		t.Errorf("a second job ended with %d:\n%s%s", code, out, errs)
	}
}
