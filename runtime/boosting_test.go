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

func boosting(t *testing.T, job *proto.JobSpec, script string, settings ...string) []string {
	t.Helper()
	return runTasks(t, pyenv.Boosting, job, script, settings...)
}

// runTasks runs a script as each process of a job's tasks at once, on this machine, and
// returns what they printed, in the order of the tasks. Nothing steers their connections:
// tasks are at 127.0.0.1, or at their virtual addresses, which are the loopback's.
func runTasks(t *testing.T, interpreter func(context.Context) (string, error), job *proto.JobSpec, script string, settings ...string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	python, err := interpreter(ctx)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "train.py")
	if err := os.WriteFile(file, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := runtime.Complete(job); err != nil {
		t.Fatal(err)
	}
	tasks := runtime.Tasks(job)
	free := ports.ForTest(t, len(tasks))
	listen, addresses, shim := map[string]int{}, map[string]string{}, shimDir(t)
	for i, task := range tasks {
		listen[task.Name], addresses[task.Name] = free[i], "127.0.0.1"
	}
	type result struct {
		rank int
		out  string
		err  error
	}
	results, n := make(chan result), 0
	for _, task := range tasks {
		for local := range runtime.Processes(job, task.Role) {
			_, env, err := runtime.Command(job, framework.Attempt{Task: task, Local: local, Ports: listen, Host: "127.0.0.1", Addresses: addresses})
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(ctx, python, file)
			cmd.Env = append(os.Environ(), "PYTHONPATH="+shim, "OMP_NUM_THREADS=1")
			for k, v := range env {
				cmd.Env = append(cmd.Env, k+"="+v)
			}
			cmd.Env = append(append(cmd.Env, fmt.Sprintf("RANK=%d", n)), settings...)
			go func(rank int) {
				out, err := cmd.CombinedOutput()
				results <- result{rank, string(out), err}
			}(n)
			n++
		}
	}
	outs := make([]string, n)
	for range n {
		r := <-results
		if outs[r.rank] = r.out; r.err != nil {
			t.Errorf("rank %d: %v\n%s", r.rank, r.err, r.out)
		}
	}
	return outs
}

// TestLongXGBoostInitializesByItself: a script of XGBoost needs no arguments to find its job,
// or takes them from the environment; the ranks are in order, and a rank may begin before
// the first one, and end after it.
func TestLongXGBoostInitializesByItself(t *testing.T) {
	job := spec("xgboost", "boss", 1, "worker", 5)
	job.Roles[1].Processes = 2
	for i, out := range boosting(t, job, `
import os, sys, time
import numpy, xgboost
from xgboost import collective
from xgboost.collective import CommunicatorContext
rank, world = int(os.environ["RANK"]), int(os.environ["DMLC_NUM_WORKER"])
if rank == 0:
    time.sleep(8)  # longer than XGBoost tries
args = {}
if rank == 1:
    args = dict(dmlc_tracker_uri=os.environ["DMLC_TRACKER_URI"], dmlc_tracker_port=int(os.environ["DMLC_TRACKER_PORT"]))
with CommunicatorContext(**args):
    assert (collective.get_rank(), collective.get_world_size()) == (rank, world), collective.get_rank()
    total = collective.allreduce(numpy.array([rank]), collective.Op.SUM)[0]
    if rank == 1:
        time.sleep(1)
try:
    collective.init()
except RuntimeError as e:
    assert "one CommunicatorContext around all" in str(e), e
else:
    sys.exit("it is in a second group")
print("rank", rank, "of", world, "has", total)
`) {
		if want := fmt.Sprintf("rank %d of 11 has 55\n", i); !strings.HasSuffix(out, want) {
			t.Errorf("rank %d printed\n%s", i, out)
		}
	}
}

// TestLightGBMFindsTheMachines: a script of LightGBM that asks for a distributed learner need
// not say where the others are.
func TestLightGBMFindsTheMachines(t *testing.T) {
	const script = `
import os
import lightgbm, numpy
rank = int(os.environ["RANK"])
x = numpy.random.default_rng(rank).random((200, 3))
y = x[:, 0] if rank else numpy.zeros(200)  # what rank 0 has is the same everywhere
params = {"tree_learner": LEARNER, "pre_partition": True, "num_leaves": 4, "num_threads": 1, "verbose": -1}
model = lightgbm.train(params, lightgbm.Dataset(x, y, params=params), 3)
print("%.6f" % model.predict(numpy.ones((1, 3)))[0])
`
	for _, out := range [][]string{
		boosting(t, spec("lightgbm", "worker", 2), strings.ReplaceAll(script, "LEARNER", `"data"`)),
		boosting(t, spec("lightgbm", "boss", 1, "worker", 1), strings.ReplaceAll(script, "LEARNER", `"data", "machines": os.environ["LIGHTGBM_MACHINES"], "local_listen_port": int(os.environ["LIGHTGBM_LOCAL_LISTEN_PORT"])`)),
	} {
		if last(out[0]) != last(out[1]) {
			t.Errorf("each trained a model of its own:\n%s\n%s", out[0], out[1])
		}
	}
	if out := boosting(t, spec("lightgbm", "worker", 2), strings.ReplaceAll(script, "LEARNER", `"serial"`)); last(out[0]) == last(out[1]) {
		t.Errorf("a serial learner was made a distributed one:\n%s\n%s", out[0], out[1])
	}
}

func last(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return lines[len(lines)-1]
}

func TestMachinesOfLightGBM(t *testing.T) {
	job := spec("lightgbm", "tensorboard", 1, "worker", 3)
	job.Command = []string{"lightgbm", "machines={machines}"}
	if err := runtime.Complete(job); err != nil {
		t.Fatal(err)
	}
	a := framework.Attempt{Task: runtime.Tasks(job)[2], Ports: map[string]int{"tensorboard-0": 1, "worker-0": 2, "worker-1": 3, "worker-2": 4}}
	argv, env, err := runtime.Command(job, a)
	const want = "127.77.0.2:2,127.0.0.1:3,127.77.0.4:4"
	if err != nil || argv[1] != "machines="+want || env["LIGHTGBM_MACHINES"] != want || env["LIGHTGBM_NUM_MACHINES"] != "3" || env["LIGHTGBM_LOCAL_LISTEN_PORT"] != "3" {
		t.Errorf("%q, %v, %v", argv, env, err)
	}
	job = spec("lightgbm", "worker", 2)
	job.Roles[0].Processes = 2
	if err := runtime.Complete(job); err == nil || !strings.Contains(err.Error(), "--worker 4") {
		t.Errorf("several processes a task: %v", err)
	}
}

// TestLossesOfBoosting: what XGBoost and LightGBM say of a peer that is gone.
func TestLossesOfBoosting(t *testing.T) {
	for text, lost := range map[string]bool{
		"Traceback (most recent call last):\nxgboost.core.XGBoostError: [11:25:23] /workspace/src/collective/result.cc:83: [allreduce.cc:98]: Ring Allreduce failed, current iteration:0\n- [socket.h:1]: Encountered EOF. The other end is likely closed.":                  true,
		"Traceback (most recent call last):\nxgboost.core.XGBoostError: [09:40:38] /workspace/src/collective/result.cc:83: [coll_c_api.cc:46|09:40:46]:\n\n- [socket.h:79|09:40:46]: Poll error condition:Success code:0\nStack trace:\n  [bt] (0) libxgboost.so(+0x11031e)": true,
		"Traceback (most recent call last):\nxgboost.core.XGBoostError: [11:25:23] result.cc:83: [comm.cc:220|11:25:23]:\n\n- [comm.cc:41|11:25:23]: Failed to connect to the tracker.":                                                                                      true,
		"Traceback (most recent call last):\nxgboost.core.XGBoostError: [11:25:23] objective.cc:26: Unknown objective function: `nothing`":                                                                                                                                   false,
		"Traceback (most recent call last):\nlightgbm.basic.LightGBMError: Connecting to rank 1 failed":                                                                                                                                                                      true,
		"Traceback (most recent call last):\nlightgbm.basic.LightGBMError: Unknown objective type name: nothing":                                                                                                                                                             false,
	} {
		if v := runtime.Explain(strings.Split(text, "\n")); v.PeerLost != lost {
			t.Errorf("%s: %+v", text, v)
		}
	}
}
