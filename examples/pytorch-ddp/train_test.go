package ddp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/hdfsckpt/inspect"
	"holdfast/proto"
	"holdfast/test/pyenv"
)

// limit is how long anything may take on a busy machine.
const limit = 5 * time.Minute

// submit runs yarn-submit to its end.
func submit(t *testing.T, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("yarn-submit %s: %v\n%s%s", args[0], err, out, errs.String())
	}
	return string(out)
}

// job is a local one that trains train.py, and has its checkpoints in store.
type job struct {
	t                    *testing.T
	program, name, store string
	python, script       string
}

// start starts a job of PyTorch, whose command begins with a Python that has it.
func start(t *testing.T, name string, workers int, command ...string) *job {
	t.Helper()
	python, err := pyenv.Torch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	scratch := t.TempDir()
	j := &job{t: t, program: filepath.Join(scratch, "yarn-submit"), store: filepath.Join(scratch, "store"), python: python}
	if out, err := exec.Command("go", "build", "-o", j.program, "holdfast/cmd/yarn-submit").CombinedOutput(); err != nil {
		t.Fatalf("building yarn-submit: %v\n%s", err, out)
	}
	t.Setenv("HOLDFAST_HOME", filepath.Join(scratch, "home"))
	if j.script, err = filepath.Abs("train.py"); err != nil {
		t.Fatal(err)
	}
	return j.again(name, workers, command...)
}

// again starts another job with the same checkpoints.
func (j *job) again(name string, workers int, command ...string) *job {
	j.t.Helper()
	next := *j
	next.name = name
	submit(j.t, j.program, append([]string{
		"run", "--local", "--detach", "--name", name, "--framework", "pytorch", "--worker", strconv.Itoa(workers),
		"--checkpoint", "./train_logs=" + j.store, "--files", j.script, "--", j.python,
	}, command...)...)
	j.t.Cleanup(func() {
		if !next.status().State.Done() {
			submit(j.t, j.program, "kill", name)
		}
	})
	return &next
}

func (j *job) status() *proto.JobStatus {
	j.t.Helper()
	s := &proto.JobStatus{}
	if err := proto.FromJSON([]byte(submit(j.t, j.program, "status", j.name, "--output", "json")), s); err != nil {
		j.t.Fatal(err)
	}
	return s
}

// until waits for something that the job does.
func (j *job) until(what string, ok func(*proto.JobStatus) bool) *proto.JobStatus {
	j.t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(200 * time.Millisecond) {
		s := j.status()
		if ok(s) {
			return s
		}
		if time.Now().After(end) || s.State.Done() {
			j.t.Fatalf("waited for %s; the job is %s (%s)\n%s", what, s.State, s.Why, submit(j.t, j.program, "logs", j.name))
		}
	}
}

// loseOne kills worker-1 once a checkpoint of a step is there, and returns that of the
// newest.
func (j *job) loseOne(step int) int {
	j.t.Helper()
	s := j.until("a checkpoint", func(*proto.JobStatus) bool { return newest(j.t, j.store) >= step })
	before := newest(j.t, j.store)
	for _, task := range s.Tasks {
		if task.Task == "worker-1" {
			if err := syscall.Kill(int(task.Pid), syscall.SIGKILL); err != nil {
				j.t.Fatalf("killing worker-1: %v", err)
			}
		}
	}
	return before
}

// goesOn waits for the job's end in generation 1: every rank has gone on from one
// checkpoint, of a step that is not before one, and trained to the last.
func (j *job) goesOn(ranks, before, last int) *proto.JobStatus {
	t := j.t
	t.Helper()
	s := j.until("the job's end", func(s *proto.JobStatus) bool { return s.State.Done() })
	if s.State != proto.JobState_JOB_STATE_SUCCEEDED || s.Generation != 1 {
		t.Errorf("the job ended as %s (%s) in generation %d, want success in generation 1", s.State, s.Why, s.Generation)
	}
	if n := newest(t, j.store); n != last {
		t.Errorf("the newest checkpoint is of step %d, want %d", n, last)
	}
	begins := map[int]bool{}
	for i := range ranks {
		task := fmt.Sprintf("worker-%d", i)
		text := submit(t, j.program, "logs", j.name, task, "--attempt", "1")
		m := regexp.MustCompile(`of ` + strconv.Itoa(ranks) + ` begins at step (\d+)`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("the second attempt of %s did not begin:\n%s", task, text)
		}
		step, _ := strconv.Atoi(m[1])
		begins[step] = true
		if step < before {
			t.Errorf("%s went on from step %d, and step %d was saved", task, step, before)
		}
	}
	if len(begins) != 1 {
		t.Errorf("the ranks went on from different steps: %v", begins)
	}
	return s
}

func TestAllRanksGoOnTogether(t *testing.T) {
	j := start(t, "ddp", 3, "train.py", "--steps", "300")
	s := j.goesOn(3, j.loseOne(40), 300)
	sealed(t, j.program, s.Id)
}

// TestRollback: the program takes the highest step that is there, so after a rollback a job begins
// at the one that was gone back to; and forward again at the one that was the newest before.
func TestRollback(t *testing.T) {
	j := start(t, "first", 1, "train.py", "--steps", "60", "--save_steps", "20", "--step_secs", "0")
	ends := func(j *job, begins int) {
		t.Helper()
		s := j.until("the job's end", func(s *proto.JobStatus) bool { return s.State.Done() })
		text := submit(t, j.program, "logs", j.name, "worker-0")
		if s.State != proto.JobState_JOB_STATE_SUCCEEDED || !strings.Contains(text, fmt.Sprintf("rank 0 of 1 begins at step %d\n", begins)) {
			t.Errorf("%s ended as %s (%s), and is to begin at step %d:\n%s", j.name, s.State, s.Why, begins, text)
		}
	}
	ends(j, 0)
	var plan inspect.Rollback
	if err := json.Unmarshal([]byte(submit(t, j.program, "ckpt", "rollback", "first", "20", "--yes", "--output", "json")), &plan); err != nil || !plan.Done || len(plan.Moved) != 2 || plan.Bytes == 0 {
		t.Errorf("the rollback: %+v, %v", plan, err)
	}
	if n := newest(t, j.store); n != 20 {
		t.Errorf("after the rollback the newest is of step %d", n)
	}
	ends(j.again("second", 1, "train.py", "--steps", "30", "--save_steps", "20", "--step_secs", "0"), 20)
	text := submit(t, j.program, "ckpt", "rollback", "second", "60", "--yes")
	if !strings.Contains(text, "restores  60  sealed  step-60.pt") {
		t.Errorf("forward again it says\n%s", text)
	}
	ends(j.again("third", 1, "train.py", "--steps", "65", "--save_steps", "20", "--step_secs", "0"), 60)
	if text := submit(t, j.program, "ckpt", "ls", "third"); !strings.Contains(text, "step-40.pt") || !strings.Contains(text, "step-30.pt") || !strings.Contains(text, "sealed") {
		t.Errorf("at the end there are\n%s", text)
	}
}

// TestTorchrun: torchrun finds what it needs by itself, with either rendezvous, and
// again after a loss. What --tee and --redirects avoid is a fault of PyTorch before
// 2.0 under Python 3.11.
func TestTorchrun(t *testing.T) {
	torchrun := []string{"-m", "torch.distributed.run", "--tee", "1", "--redirects", "1"}
	for name, rendezvous := range map[string][]string{
		"static": nil,
		"c10d":   {"--rdzv_backend=c10d", "--rdzv_endpoint={master_addr}:{master_port}"},
	} {
		t.Run(name, func(t *testing.T) {
			j := start(t, name, 2, slices.Concat(torchrun, rendezvous, []string{"train.py", "--steps", "80"})...)
			j.goesOn(2, j.loseOne(20), 80)
		})
	}
}

// sealed sees that what PyTorch saved was found complete, and by whom and when
// it was written.
func sealed(t *testing.T, program, id string) {
	t.Helper()
	var listed inspect.Listing
	if err := json.Unmarshal([]byte(submit(t, program, "ckpt", "ls", "ddp", "--output", "json")), &listed); err != nil || len(listed.Checkpoints) < 10 {
		t.Fatalf("there are %d checkpoints, %v", len(listed.Checkpoints), err)
	}
	list := listed.Checkpoints
	for _, c := range list {
		if c.Kind != "torch" || c.State != "sealed" || c.Job != id {
			t.Errorf("a checkpoint is %+v", c)
		}
	}
	if last := list[len(list)-1]; *last.Step != 300 || !last.Newest || last.Generation == nil || *last.Generation != 1 || last.After == "" {
		t.Errorf("the newest checkpoint is %+v", last)
	}
	submit(t, program, "ckpt", "verify", "ddp")
	if text := submit(t, program, "ckpt", "show", "ddp"); !strings.Contains(text, "optimizer.state.0.momentum_buffer") {
		t.Errorf("the tensors are\n%s", text)
	}
}

// newest is the step of the newest checkpoint.
func newest(t *testing.T, store string) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(store, "step-*.pt"))
	if err != nil {
		t.Fatal(err)
	}
	last := 0
	for _, f := range found {
		if m := regexp.MustCompile(`step-(\d+)\.pt$`).FindStringSubmatch(f); m != nil {
			n, _ := strconv.Atoi(m[1])
			last = max(last, n)
		}
	}
	return last
}
