package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"holdfast/proto"
	"holdfast/test/pyenv"
)

const stragglerTime = 20 * time.Second

// slowDown stops a process for seven eighths of the time until release is called, or it has ended.
func slowDown(t *testing.T, pid int) (release func()) {
	t.Helper()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer syscall.Kill(pid, syscall.SIGCONT)
		for {
			for _, part := range []struct {
				signal syscall.Signal
				take   time.Duration
			}{{syscall.SIGSTOP, 1400 * time.Millisecond}, {syscall.SIGCONT, 200 * time.Millisecond}} {
				if syscall.Kill(pid, part.signal) != nil {
					return
				}
				select {
				case <-stop:
					return
				case <-time.After(part.take):
				}
			}
		}
	}()
	released := false
	release = func() {
		if !released {
			released = true
			close(stop)
			<-done
		}
	}
	t.Cleanup(release)
	return release
}

// namedSince waits until a task is named as a straggler, checks that this comes in time and that
// no other is, and returns the status then.
func (j *job) namedSince(from time.Time, name string) *proto.JobStatus {
	j.t.Helper()
	s := j.until(long, name+" to be named", func(s *proto.JobStatus) bool { return named(s, name) != nil })
	after := time.UnixMilli(named(s, name).AtUnixMs).Sub(from)
	j.t.Logf("named after %s: %s", after.Round(time.Millisecond), named(s, name).Text)
	if after < stragglerTime || after > 3*stragglerTime {
		j.t.Errorf("it was slow for %s when it was named, and is to be for %s", after, stragglerTime)
	}
	for _, k := range s.Tasks {
		if k.Task != name && named(s, k.Task) != nil {
			j.t.Errorf("so is %s: %s", k.Task, named(s, k.Task).Text)
		}
	}
	return s
}

// named is the event that names a task as a straggler; nil if there is none.
func named(s *proto.JobStatus, name string) *proto.JobEvent {
	for _, e := range s.Events {
		if e.Task == name && e.Kind == "straggler" && strings.Contains(e.Text, "it is slower") {
			return e
		}
	}
	return nil
}

// TestAStragglerIsNamedAndMoved: a worker that is slowed down where it is. The others do not
// notice the move.
func TestAStragglerIsNamedAndMoved(t *testing.T) {
	plain.enter(t)
	w := where{hadoop(t)}
	const steps = `i=0; while :; do i=$((i+1)); echo "step $i"; sleep 0.2; done`
	j := w.start(t, "", "--worker", "3", "--worker-memory", "256m", "--straggler-time", stragglerTime.String(), "--straggler-moves", "1", "--", "sh", "-c", steps)
	before := j.until(long, "steps of all", func(s *proto.JobStatus) bool {
		return running(s) && min(task(s, "worker-0").Step, task(s, "worker-1").Step, task(s, "worker-2").Step) > 5
	})
	from := time.Now()
	release := slowDown(t, int(task(before, "worker-1").Pid))
	s := j.namedSince(from, "worker-1")
	if k := task(s, "worker-1"); k.Straggler != nil && (k.Straggler.By != "step" || k.Straggler.Value < 2*k.Straggler.Median) {
		t.Errorf("it is shown as %s", protojson.Format(k))
	}
	if !strings.Contains(named(s, "worker-1").Text, "it moves to another node") {
		t.Errorf("it is named without a move: %s", named(s, "worker-1").Text)
	}
	s = j.until(long, "the move", func(s *proto.JobStatus) bool { return running(s) && task(s, "worker-1").Attempt == 1 })
	release()
	if a, b := task(before, "worker-1").Node, task(s, "worker-1").Node; a == b {
		t.Errorf("it moved from %s to %s", a, b)
	}
	if len(s.Incidents) != 1 || s.Incidents[0].Cause != "slower than the others" {
		t.Errorf("the incidents are %v", s.Incidents)
	}
	at := task(s, "worker-1").Step
	s = j.until(long, "steps of the next attempt, as fast as those of the others", func(s *proto.JobStatus) bool {
		k := task(s, "worker-1")
		return k.Step != at && k.Straggler == nil && k.StepSeconds > 0 && k.StepSeconds < 0.8
	})
	for _, name := range []string{"worker-0", "worker-2"} {
		if k := task(s, name); k.Attempt != 0 {
			t.Errorf("%s runs attempt %d", name, k.Attempt)
		}
	}
	j.kill()
}

// TestARankThatOthersWaitFor: the ranks of PyTorch make their steps together, and the one that
// is slowed down is the one that does not wait.
func TestARankThatOthersWaitFor(t *testing.T) {
	training.enter(t)
	python, err := pyenv.Torch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("../../examples/pytorch-ddp/train.py")
	if err != nil {
		t.Fatal(err)
	}
	j := where{}.start(t, t.TempDir(), "--framework", "pytorch", "--worker", "3", "--straggler-time", stragglerTime.String(),
		"--", python, script, "--steps", "100000", "--save_steps", "100000")
	before := j.until(long, "steps", func(s *proto.JobStatus) bool { return running(s) && s.Step > 5 })
	from := time.Now()
	release := slowDown(t, int(task(before, "worker-1").Pid))
	s := j.namedSince(from, "worker-1")
	if k := task(s, "worker-1"); k.Straggler != nil && k.Straggler.By != "work" {
		t.Errorf("it is shown as %s", protojson.Format(k))
	}
	release()
	s = j.until(long, "it to be as fast as the others again", func(s *proto.JobStatus) bool { return task(s, "worker-1").Straggler == nil })
	for _, k := range s.Tasks {
		if k.Attempt != 0 {
			t.Errorf("%s runs attempt %d", k.Task, k.Attempt)
		}
	}
	j.kill()
}

// TestLongASlowRankIsMoved: of ranks that make their steps together, the one that computes for
// longer where it is is moved, once: all go on from the last complete checkpoint, none waits for
// it any longer, and a rank that is slow where it has come to stays there.
func TestLongASlowRankIsMoved(t *testing.T) {
	plain.enter(t)
	python, err := pyenv.Torch(t.Context())
	must(t, err)
	var files []string
	for _, name := range []string{"../../examples/pytorch-ddp/train.py", "testdata/straggler/train_slowly.py"} {
		file, err := filepath.Abs(name)
		must(t, err)
		files = append(files, file)
	}
	c := hadoop(t)
	slow := filepath.Join(t.TempDir(), "slow")
	must(t, os.WriteFile(slow, nil, 0o644))
	store := c.HDFS() + "/tests/" + t.Name()
	j := where{c}.start(t, "", "--framework", "pytorch", "--worker", "3", "--worker-memory", "512m", "--straggler-time", stragglerTime.String(), "--straggler-moves", "1",
		"--checkpoint", "./train_logs="+store, "--files", strings.Join(files, ","), "--",
		python, "train_slowly.py", slow, "train.py", "--steps", "1000000", "--save_steps", "10", "--step_secs", "0.05")
	j.store = store
	defer j.explain()
	j.untilCheckpoint(long, 10)
	quick := j.until(long, "the speed", func(s *proto.JobStatus) bool { return running(s) && s.StepsPerSecond > 0 })
	makeSlow := func(container string) time.Time {
		must(t, os.WriteFile(slow, []byte(container), 0o644))
		return time.Now()
	}
	from := makeSlow(task(quick, "worker-1").Container)
	s := j.namedSince(from, "worker-1")
	if k := task(s, "worker-1"); k.Straggler != nil && k.Straggler.By != "work" {
		t.Errorf("it is shown as %s", protojson.Format(k))
	}
	if !strings.Contains(named(s, "worker-1").Text, "it moves to another node") {
		t.Errorf("it is named without a move: %s", named(s, "worker-1").Text)
	}
	s = j.until(long, "steps of all after the move", func(s *proto.JobStatus) bool {
		return running(s) && len(s.Incidents) == 1 && s.Incidents[0].ResumedStep > 0
	})
	i := s.Incidents[0]
	t.Logf("moved from %s to %s %s after it became slow: at step %d, the checkpoint of step %d complete, on with step %d after %d ms",
		i.Node, task(s, "worker-1").Node, time.Since(from).Round(time.Second), i.Step, i.CompleteStep, i.ResumedStep, i.ProgressAfterMs)
	if i.Task != "worker-1" || i.Cause != "slower than the others" || i.Node == task(s, "worker-1").Node || i.CompleteStep == 0 || i.LostSteps > 10 {
		t.Errorf("the incident is %s", protojson.Format(i))
	}
	for _, k := range s.Tasks {
		if world, step := j.began(s, k.Task); k.Attempt != 1 || k.Failures != 0 || world != 3 || step < i.CompleteStep {
			t.Errorf("%s runs attempt %d with %d failures as one of %d from step %d", k.Task, k.Attempt, k.Failures, world, step)
		}
	}
	s = j.until(long, "it to wait for the others again", func(s *proto.JobStatus) bool {
		k := task(s, "worker-1")
		return k.WorkShare != nil && *k.WorkShare < 0.6
	})
	t.Logf("before, %.2f steps a second were made, and %.2f after; it is at work for %.0f%% of the time", quick.StepsPerSecond, s.StepsPerSecond, 100**task(s, "worker-1").WorkShare)

	makeSlow(task(s, "worker-1").Container)
	j.until(long, "a word that it stays", func(s *proto.JobStatus) bool {
		return strings.Contains(eventLog(s), "for that, and stays where it is")
	})
	if s := j.status(); s.Generation != 1 || len(s.Incidents) != 1 {
		t.Errorf("it has moved again:\n%s", eventLog(s))
	}
	j.kill()
}
