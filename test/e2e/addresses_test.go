package e2e

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/am/core"
	"holdfast/proto"
	"holdfast/test/pyenv"
)

// pids are those of a job's tasks of a role.
func pids(s *proto.JobStatus, role string) map[string]int32 {
	m := map[string]int32{}
	for _, t := range s.Tasks {
		if t.Role == role {
			m[t.Task] = t.Pid
		}
	}
	return m
}

// noted reports whether a line of a job's event log has a text.
func noted(s *proto.JobStatus, text string) bool {
	return slices.ContainsFunc(s.Events, func(m *proto.JobEvent) bool { return strings.Contains(m.Text, text) })
}

// newSteps waits until a job has made steps beyond those it had made.
func (j *job) newSteps(than int64) {
	j.t.Helper()
	j.until(tfLimit, fmt.Sprintf("steps after %d", than), func(s *proto.JobStatus) bool { return s.Step > than })
}

// TestLongASpareWithAWarmTorch: a rank that moves into a spare container does not import torch, and
// all go on together from the checkpoint.
func TestLongASpareWithAWarmTorch(t *testing.T) {
	training.enter(t)
	python, err := pyenv.Torch(t.Context())
	must(t, err)
	script, err := filepath.Abs("../../examples/pytorch-ddp/train.py")
	must(t, err)
	store := filepath.Join(t.TempDir(), "store")
	j := where{}.start(t, t.TempDir(), "--framework", "pytorch", "--worker", "2", "--spares", "1", "--worker-memory", "900m",
		"--files", script, "--checkpoint", "./train_logs="+store, "--", python, filepath.Base(script), "--steps", "1000000")
	j.store = store
	before := j.untilCheckpoint(tfLimit, 10)
	s := j.until(tfLimit, "a spare with an interpreter", func(s *proto.JobStatus) bool {
		return len(s.Spares) == 1 && strings.Contains(s.Spares[0].WarmStatus, "is ready")
	})
	spare := s.Spares[0].Container
	j.killContainer("worker-1")
	took := j.back(tfLimit, "worker-1")
	s = j.until(tfLimit, "what is said of worker-1", func(s *proto.JobStatus) bool {
		return strings.Contains(task(s, "worker-1").WarmStatus, "came from")
	})
	if c := task(s, "worker-1").Container; c != spare {
		t.Errorf("worker-1 is in %s, and the spare was %s", c, spare)
	}
	j.newSteps(s.Step)
	s = j.status()
	for _, name := range []string{"worker-0", "worker-1"} {
		if world, from := j.began(s, name); world != 2 || from < before {
			t.Errorf("%s is one of %d, and began at step %d; want 2, and at %d or later", name, world, from, before)
		}
	}
	t.Logf("the processes run after %s", took)
}

// TestLongASpareWithAWarmInterpreter: a parameter server that moves into a spare
// container does not import TensorFlow, and the workers' processes stay.
func TestLongASpareWithAWarmInterpreter(t *testing.T) {
	training.enter(t)
	python := tensorflow(t)
	script, err := filepath.Abs("../../examples/monitored-session/monitored_session.py")
	if err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(t.TempDir(), "store")
	j := where{}.start(t, t.TempDir(), "--framework", "tensorflow", "--tf1", "--ps", "1", "--worker", "2", "--spares", "1",
		"--ps-memory", "900m", "--worker-memory", "900m", "--files", script, "--checkpoint", "./train_logs="+store, "--",
		python, filepath.Base(script), "--job_name={role}", "--task_index={index}",
		"--ps_hosts={ps_hosts}", "--worker_hosts={worker_hosts}", "--steps", "1000000")
	j.store = store
	j.untilCheckpoint(tfLimit, 10)
	s := j.until(tfLimit, "a spare with an interpreter", func(s *proto.JobStatus) bool {
		return len(s.Spares) == 1 && strings.Contains(s.Spares[0].WarmStatus, "is ready")
	})
	if p := s.Spares[0]; p.WarmRssBytes <= 0 || p.AgentRssBytes < p.WarmRssBytes {
		t.Errorf("the spare's memory is not told: %v", p)
	}
	before, spare := pids(s, "worker"), s.Spares[0].Container
	lost := time.Now()
	j.killContainer("ps-0")
	took := j.back(tfLimit, "ps-0")
	s = j.until(tfLimit, "what is said of ps-0", func(s *proto.JobStatus) bool {
		return strings.Contains(task(s, "ps-0").WarmStatus, "came from")
	})
	if c := task(s, "ps-0").Container; c != spare {
		t.Errorf("ps-0 is in %s, and the spare was %s", c, spare)
	}
	j.newSteps(s.Step)
	t.Logf("its process runs after %s, and the job trains after %s at the latest", took, time.Since(lost).Round(time.Millisecond))
	if after := pids(j.status(), "worker"); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the workers' processes were %v and are %v", before, after)
	}
}

// TestASilentHost: a parameter server's host falls silent, so that nobody is told
// that its connections are gone. The parameter server comes back on another
// host, and the workers train on in the same processes.
func TestASilentHost(t *testing.T) {
	training.enter(t)
	script, err := filepath.Abs("../../examples/monitored-session/monitored_session.py")
	if err != nil {
		t.Fatal(err)
	}
	silentHost(t, &proto.JobSpec{
		Framework: "tensorflow", Tf1: true,
		Command: []string{tensorflow(t), script, "--job_name={role}", "--task_index={index}", "--ps_hosts={ps_hosts}",
			"--worker_hosts={worker_hosts}", "--steps", "1000000"},
	}, false, "")
}

// TestASilentHostOfAnyKind is the same for gRPC, where other addresses or means
// are used.
func TestASilentHostOfAnyKind(t *testing.T) {
	plain.enter(t)
	for name, test := range map[string]struct {
		v6     bool
		forbid string // a system call that steering needs
	}{
		"IPv6":            {v6: true},
		"forwarded":       {forbid: "pidfd_getfd"},
		"forwarded, IPv6": {forbid: "pidfd_getfd", v6: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits for a lease to end
			silentHost(t, &proto.JobSpec{
				Command: []string{trainer, "--job_name={role}", "--task_index={index}", "--ps_hosts={ps_hosts}",
					"--worker_hosts={worker_hosts}", "--train_dir=./train_logs", "--steps=1000000", "--step_time=20ms"},
			}, test.v6, test.forbid)
		})
	}
}

func silentHost(t *testing.T, spec *proto.JobSpec, v6 bool, forbid string) {
	store := filepath.Join(t.TempDir(), "store")
	spec.Name, spec.Local, spec.Restarts = "silent", true, 3
	spec.Roles = []*proto.RoleSpec{{Name: "ps", Count: 1}, {Name: "worker", Count: 2}}
	spec.Checkpoints = []*proto.CheckpointSpec{{Path: "./train_logs", Uri: store}}
	// The parameter server first, then the workers, then the new container.
	place := func(_ string, asks int) int { return []int{0, 1, 1, 2}[min(asks, 3)] }
	lease := 5 * time.Second
	l := newLAN(t, 3, v6)
	l.forbid = forbid
	j := l.run(spec, core.Limits{Lease: lease}, place)
	s := j.until("training", func(s *proto.JobStatus) bool { return s.Step >= 40 })
	if h := task(s, "ps-0").Node; h != l.hosts[0].name {
		t.Fatalf("ps-0 is on %s", h)
	}
	if forwarded := noted(s, "forwarded by the agent"); forwarded != (forbid != "") {
		t.Errorf("that connections are forwarded is told: %v", forwarded)
	}
	workers, old := pids(s, "worker"), int(task(s, "ps-0").Pid)
	silent := time.Now()
	l.hosts[0].silence(t)
	s = j.until("ps-0 elsewhere", func(s *proto.JobStatus) bool {
		k := task(s, "ps-0")
		return k.Node == l.hosts[2].name && k.Pid != 0
	})
	began := time.Since(silent)
	if err := syscall.Kill(old, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the process on the silent host when the next one begins: %v", err)
	}
	s = j.until("new steps", func(now *proto.JobStatus) bool { return now.Step > s.Step })
	t.Logf("lease %s; ps-0 runs elsewhere after %s, and new steps are made after %s", lease, began.Round(time.Millisecond), time.Since(silent).Round(time.Millisecond))
	if after := pids(s, "worker"); fmt.Sprint(after) != fmt.Sprint(workers) {
		t.Errorf("the workers' processes were %v and are %v:\n%s", workers, after, j.logs())
	}
}
