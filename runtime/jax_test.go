package runtime_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/proto"
	"holdfast/runtime"
	"holdfast/runtime/framework"
	"holdfast/test/ports"
	"holdfast/test/pyenv"
)

// TestJAXInitializesByItself: a script of JAX needs no arguments to find its job, also where
// a task is several processes.
func TestJAXInitializesByItself(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	python, err := pyenv.JAX(ctx)
	if err != nil {
		t.Fatal(err)
	}
	shim := shimDir(t)
	script := filepath.Join(t.TempDir(), "train.py")
	err = os.WriteFile(script, []byte(`
import jax
jax.distributed.initialize()
print("process", jax.process_index(), "of", jax.process_count(), "with", len(jax.devices()), "devices")
jax.distributed.shutdown()
`), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	job := spec("jax", "boss", 1, "worker", 1)
	job.Roles[1].Processes = 2
	if err := runtime.Complete(job); err != nil {
		t.Fatal(err)
	}
	port := ports.ForTest(t, 1)[0]
	run := func(process int, settings ...string) (string, error) {
		a := framework.Attempt{Task: runtime.Tasks(job)[min(process, 1)], Local: max(0, process-1), Ports: map[string]int{"boss-0": port, "worker-0": 1}}
		_, env, err := runtime.Command(job, a)
		if err != nil {
			return "", err
		}
		// Nothing makes a name of the task here.
		env["JAX_COORDINATOR_ADDRESS"] = strings.Replace(env["JAX_COORDINATOR_ADDRESS"], "boss-0", "127.0.0.1", 1)
		cmd := exec.CommandContext(ctx, python, script)
		cmd.Env = append(os.Environ(), "PYTHONPATH="+shim, "JAX_PLATFORMS=cpu")
		for k, v := range env {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
		cmd.Env = append(cmd.Env, settings...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	type result struct {
		process int
		out     string
		err     error
	}
	results := make(chan result)
	for process := range 3 {
		go func() {
			out, err := run(process)
			results <- result{process, out, err}
		}()
	}
	for range 3 {
		r := <-results
		if want := fmt.Sprintf("process %d of 3 with 3 devices", r.process); r.err != nil || !strings.Contains(r.out, want) {
			t.Errorf("process %d: %v\n%s", r.process, r.err, r.out)
		}
	}
	if out, err := run(1, "HOLDFAST_JAX_CLUSTER=0"); err == nil || !strings.Contains(out, "Number of processes must be defined") {
		t.Errorf("without it: %v\n%s", err, out)
	}
}

// TestRanksOfJAXSaveTogether: SIGTERM is taken by the preemption service, unless the job
// does without it.
func TestRanksOfJAXSaveTogether(t *testing.T) {
	for value, want := range map[string]bool{"": true, "True": true, "False": false, "0": false} {
		job := spec("jax", "worker", 2, "evaluator", 1)
		if value != "" {
			job.Env = map[string]string{"JAX_ENABLE_PREEMPTION_SERVICE": value}
		}
		if err := runtime.Complete(job); err != nil || job.Roles[0].SavesTogether != want || job.Roles[1].SavesTogether {
			t.Errorf("%q: %v, %v", value, job.Roles, err)
		}
	}
	for _, other := range []*proto.JobSpec{spec("pytorch", "worker", 2), spec("tensorflow", "ps", 1, "worker", 2)} {
		if err := runtime.Complete(other); err != nil || other.Roles[len(other.Roles)-1].SavesTogether {
			t.Errorf("%s: %v, %v", other.Framework, other.Roles, err)
		}
	}
	mirrored := spec("tensorflow", "worker", 2)
	if err := runtime.Complete(mirrored); err != nil || !mirrored.Roles[0].SavesTogether {
		t.Errorf("%v, %v", mirrored.Roles, err)
	}
}
