package ddp

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"holdfast/client/checkpoints"
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

func TestAllRanksGoOnTogether(t *testing.T) {
	python, err := pyenv.Torch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	scratch := t.TempDir()
	program := filepath.Join(scratch, "yarn-submit")
	if out, err := exec.Command("go", "build", "-o", program, "holdfast/cmd/yarn-submit").CombinedOutput(); err != nil {
		t.Fatalf("building yarn-submit: %v\n%s", err, out)
	}
	t.Setenv("HOLDFAST_HOME", filepath.Join(scratch, "home"))
	script, err := filepath.Abs("train.py")
	if err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(scratch, "store")
	submit(t, program, "run", "--local", "--detach", "--name", "ddp", "--framework", "pytorch", "--worker", "3",
		"--checkpoint", "./train_logs="+store, "--files", script, "--", python, "train.py", "--steps", "300")
	status := func() *proto.JobStatus {
		t.Helper()
		s := &proto.JobStatus{}
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal([]byte(submit(t, program, "status", "ddp", "--output", "json")), s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	t.Cleanup(func() {
		if !status().State.Done() {
			submit(t, program, "kill", "ddp")
		}
	})
	// until waits for something that the job does.
	until := func(what string, ok func(*proto.JobStatus) bool) *proto.JobStatus {
		t.Helper()
		for end := time.Now().Add(limit); ; time.Sleep(200 * time.Millisecond) {
			s := status()
			if ok(s) {
				return s
			}
			if time.Now().After(end) || s.State.Done() {
				t.Fatalf("waited for %s; the job is %s (%s)\n%s", what, s.State, s.Why, submit(t, program, "logs", "ddp"))
			}
		}
	}

	s := until("a checkpoint", func(*proto.JobStatus) bool { return newest(t, store) >= 40 })
	before := newest(t, store)
	for _, task := range s.Tasks {
		if task.Task == "worker-1" {
			if err := syscall.Kill(int(task.Pid), syscall.SIGKILL); err != nil {
				t.Fatalf("killing worker-1: %v", err)
			}
		}
	}
	s = until("the job's end", func(s *proto.JobStatus) bool { return s.State.Done() })
	if s.State != proto.JobState_JOB_STATE_SUCCEEDED || s.Generation != 1 {
		t.Errorf("the job ended as %s (%s) in generation %d, want success in generation 1", s.State, s.Why, s.Generation)
	}
	if n := newest(t, store); n != 300 {
		t.Errorf("the newest checkpoint is of step %d, want 300", n)
	}
	sealed(t, program, s.Id)
	begins := map[int]bool{}
	for _, task := range []string{"worker-0", "worker-1", "worker-2"} {
		text := submit(t, program, "logs", "ddp", task, "--attempt", "1")
		m := regexp.MustCompile(`of 3 begins at step (\d+)`).FindStringSubmatch(text)
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
}

// sealed sees that what PyTorch saved was found complete, and by whom and when
// it was written.
func sealed(t *testing.T, program, id string) {
	t.Helper()
	var list []checkpoints.Checkpoint
	if err := json.Unmarshal([]byte(submit(t, program, "ckpt", "ls", "ddp", "--output", "json")), &list); err != nil || len(list) < 10 {
		t.Fatalf("there are %d checkpoints, %v", len(list), err)
	}
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
