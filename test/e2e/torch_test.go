package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/am/core"
	"holdfast/proto"
	"holdfast/test/pyenv"
)

// TestRanksOnHostsOfTheirOwn: the ranks of PyTorch find each other on hosts whose own
// name stands for a loopback address, as Debian's installer leaves it: gloo listens on
// the address of that name, and tells it to its peers.
func TestRanksOnHostsOfTheirOwn(t *testing.T) {
	training.enter(t)
	python, err := pyenv.Torch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("../../examples/pytorch-ddp/train.py")
	if err != nil {
		t.Fatal(err)
	}
	train := []string{script, "--steps", "20"}
	for name, test := range map[string]struct {
		forbid string // a system call that agents may not use
		words  []string
	}{
		"steered":   {"", nil},
		"forwarded": {"pidfd_getfd", nil},
		"torchrun":  {"", []string{"-m", "torch.distributed.run", "--tee", "1", "--redirects", "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLAN(t, 2, false)
			l.forbid = test.forbid
			spec := &proto.JobSpec{
				// Where connections are forwarded, PyTorch's store can be reset by one that
				// came too early.
				Name: "ranks", Local: true, Restarts: 3, Framework: "pytorch", Roles: []*proto.RoleSpec{{Name: "worker", Count: 2}},
				Command: append(append([]string{python}, test.words...), train...),
			}
			j := l.run(spec, core.Limits{}, func(_ string, asks int) int { return asks % 2 })
			s := j.until("the end", func(s *proto.JobStatus) bool { return s.State.Done() })
			if s.State != proto.JobState_JOB_STATE_SUCCEEDED {
				t.Errorf("the job ended as %s (%s)\n%s", s.State, s.Why, j.logs())
			}
		})
	}
}

// TestSeveralRanksATask: two tasks of two processes each are four ranks. When one of them
// is killed, all are started again, and go on from the newest checkpoint.
func TestSeveralRanksATask(t *testing.T) {
	training.enter(t)
	python, err := pyenv.Torch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("../../examples/pytorch-ddp/train.py")
	if err != nil {
		t.Fatal(err)
	}
	places(t, func(t *testing.T, w where, store string) {
		j := w.start(t, "", "--framework", "pytorch", "--worker", "2", "--worker-processes", "2", "--worker-memory", "2g",
			"--checkpoint", "./train_logs="+store, "--files", script, "--", python, "train.py", "--steps", "200")
		j.store = store
		before := j.untilCheckpoint(long, 40)
		j.killRank("worker-1", 1, "200")
		s := j.end(long, proto.JobState_JOB_STATE_SUCCEEDED)
		if s.Generation != 1 || task(s, "worker-0").Attempt != 1 || task(s, "worker-0").Failures != 0 || task(s, "worker-1").Failures != 1 {
			t.Errorf("not all began once more, at the expense of worker-1 alone: %v", s.Tasks)
		}
		if len(s.Incidents) != 1 || s.Incidents[0].Task != "worker-1" || !strings.Contains(s.Incidents[0].Evidence, "process 1 of 0 to 1: killed by SIGKILL") {
			t.Errorf("what happened: %v", s.Incidents)
		}
		if n := j.newestComplete(); n != 200 {
			t.Errorf("the newest checkpoint is of step %d", n)
		}
		for i := range 2 {
			text := j.logs(fmt.Sprintf("worker-%d", i))
			for local := range 2 {
				name := fmt.Sprintf("worker-%d", i)
				if local > 0 {
					name += fmt.Sprintf(".%d", local)
				}
				_, again, _ := strings.Cut(text, "==> "+name+", attempt 1 <==\n")
				var rank, world, step int64
				if at := strings.Index(again, "rank "); at >= 0 {
					_, _ = fmt.Sscanf(again[at:], "rank %d of %d begins at step %d", &rank, &world, &step)
				}
				if int(rank) != 2*i+local || world != 4 || step < before {
					t.Errorf("the second attempt of %s, after step %d was saved, is rank %d of %d from step %d:\n%s", name, before, rank, world, step, text)
				}
			}
		}
	})
}

// failingRanks starts three ranks of PyTorch that fail as kind says.
func failingRanks(t *testing.T, kind string, launcher ...string) *job {
	t.Helper()
	python, err := pyenv.Torch(t.Context())
	must(t, err)
	args := append([]string{"--framework", "pytorch", "--worker", "3", "--files", "testdata/ranks/fails.py", "--", python}, launcher...)
	return where{}.start(t, "", append(args, "fails.py", kind)...)
}

// TestTheRankThatFailsIsNamed: where one rank fails, and the others complain of it and end
// before it does, the failure is charged to that one, with its exception, and the event log
// names it as the reason why all start again. So it is where torch.distributed.elastic
// records the exception, for ranks and for torchrun.
func TestTheRankThatFailsIsNamed(t *testing.T) {
	training.enter(t)
	for name, c := range map[string]struct {
		kind     string
		launcher []string
	}{
		"what it prints":      {"one", nil},
		"what it records":     {"recorded", nil},
		"what torchrun tells": {"launched", []string{"-m", "torch.distributed.run", "--tee", "1", "--redirects", "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			j := failingRanks(t, c.kind, c.launcher...)
			s := j.end(tfLimit, proto.JobState_JOB_STATE_SUCCEEDED)
			for _, k := range s.Tasks {
				if want := int32(strings.Count(k.Task, "2")); k.Failures != want || k.Attempt != 1 {
					t.Errorf("%s is charged with %d failures, want %d, and ended as attempt %d", k.Task, k.Failures, want, k.Attempt)
				}
			}
			const why = "ValueError: bad batch in step 20"
			if log := eventLog(s); !strings.Contains(log, "generation 1: all tasks start again because of worker-2: its process failed ("+why) {
				t.Errorf("the event log does not name worker-2:\n%s", log)
			}
			named := 0
			for _, i := range s.Incidents {
				if strings.HasPrefix(i.Evidence, why) {
					named++
				}
				if strings.HasPrefix(i.Evidence, why) != (i.Task == "worker-2") {
					t.Errorf("the incident of %s: %s", i.Task, i.Evidence)
				}
			}
			if named != 1 || s.Generation != 1 {
				t.Errorf("%d incidents name the error, in %d generations: %v", named, s.Generation, s.Incidents)
			}
			if t.Failed() {
				t.Log(j.allLogs())
			}
		})
	}
}

// TestOneErrorOfAllRanks: where each rank fails by the same error before its first step, each
// generation is one failure, and the second, which does not wait, is the last.
func TestOneErrorOfAllRanks(t *testing.T) {
	training.enter(t)
	j := failingRanks(t, "all")
	s := j.end(tfLimit, proto.JobState_JOB_STATE_FAILED)
	failures := int32(0)
	for _, k := range s.Tasks {
		failures += k.Failures
		if k.Attempt != 1 {
			t.Errorf("%s ended as attempt %d", k.Task, k.Attempt)
		}
	}
	if failures != 2 || len(s.Generations) != 2 {
		t.Errorf("%d failures in the generations %v: %v", failures, s.Generations, s.Tasks)
	}
	if !strings.Contains(s.Why, "failed twice, each time soon and in the same way, and has never made a step: KeyError: 'lr'") {
		t.Errorf("it failed because %q", s.Why)
	}
	if log := eventLog(s); strings.Contains(log, "waits for") {
		t.Errorf("the second generation has waited:\n%s", log)
	}
}

// TestLongTorchrunRestartsItsProcesses: where one of them is killed, torchrun starts those
// of all nodes again, in the attempts that run, each time anew.
func TestLongTorchrunRestartsItsProcesses(t *testing.T) {
	training.enter(t)
	python, err := pyenv.NewestTorch(t.Context())
	must(t, err)
	script, err := filepath.Abs("../../examples/pytorch-ddp/train.py")
	must(t, err)
	c := hadoop(t)
	j := where{c}.start(t, "", "--worker", "2", "--worker-processes", "2", "--worker-memory", "1600m", "--no-warm", "--env", "OMP_NUM_THREADS=1",
		"--checkpoint", "./train_logs="+c.HDFS()+"/tests/"+t.Name(), "--files", script, "--",
		filepath.Join(filepath.Dir(python), "torchrun"), "--rdzv-backend=c10d", "--rdzv-endpoint={master_addr}:{master_port}", "--max-restarts=9", "train.py", "--steps", "1000000")
	j.store = c.HDFS() + "/tests/" + t.Name()
	begun := func() int { return strings.Count(j.logs("worker-0"), " begins at step ") }
	j.untilCheckpoint(long, 20)
	for range 4 {
		n, at := begun(), time.Now()
		j.killRank("worker-1", 1, "1000000")
		j.until(long, "all processes to begin again", func(*proto.JobStatus) bool { return begun() == n+2 })
		j.goesOn()
		t.Logf("a process was killed, and the next checkpoint is complete after %s", time.Since(at).Round(100*time.Millisecond))
	}
	s := j.status()
	if s.Generation != 0 || task(s, "worker-0").Attempt != 0 || task(s, "worker-1").Attempt != 0 {
		t.Errorf("it was not torchrun that started them again: %v", s.Tasks)
	}
	if _, errs, code := j.w.call(t.Context(), "", "kill", j.id); code != 0 {
		t.Errorf("kill ended with %d: %s", code, errs)
	}
}

// killRank ends one of a task's processes, which runs for so many steps.
func (j *job) killRank(task string, local int, steps string) {
	j.t.Helper()
	for _, pid := range j.processes("train.py\x00--steps\x00" + steps + "\x00") {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil || !bytes.Contains(environ, []byte("\x00HOLDFAST_TASK="+task+"\x00")) || !bytes.Contains(environ, fmt.Appendf(nil, "\x00LOCAL_RANK=%d\x00", local)) {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			j.t.Fatal(err)
		}
		return
	}
	j.t.Fatalf("no process %d of %s runs", local, task)
}
