package runtime_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/runtime"
	"holdfast/test/pyenv"
)

// shimDir writes the shim and gives its directory.
func shimDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for range 2 { // a second attempt writes it again
		if err := runtime.WriteShim(dir); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Fatalf("%v in the shim's directory, %v", entries, err)
	}
	return dir
}

// runPython runs a script as a task would, and gives what it printed.
func runPython(t *testing.T, python, path, script string, env ...string) (stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	file := filepath.Join(t.TempDir(), "train.py")
	if err := os.WriteFile(file, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, python, file)
	cmd.Dir = filepath.Dir(file)
	cmd.Env = append(append(os.Environ(), "PYTHONPATH="+path, "TF_CPP_MIN_LOG_LEVEL=3", "CUDA_VISIBLE_DEVICES="), env...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out.String(), errs.String())
	}
	return out.String(), errs.String()
}

// tensorflow is a Python that can import it.
func tensorflow(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	python, err := pyenv.TensorFlow(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return python
}

func python3(t *testing.T) string {
	t.Helper()
	p, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal("python3 is not on the PATH: install it (on Debian: apt-get install python3-venv)")
	}
	return p
}

func TestTheShimRunsTheSitecustomizeItHides(t *testing.T) {
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "sitecustomize.py"), []byte("import builtins\nbuiltins.seen = 'yes'\nvalue = 7\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, _ := runPython(t, python3(t), shimDir(t)+":"+other,
		"import builtins, sitecustomize\nprint(builtins.seen, sitecustomize.value)\n", "HOLDFAST_TF1=1")
	if strings.TrimSpace(out) != "yes 7" {
		t.Errorf("it printed %q", out)
	}
}

func TestTheShimIsQuietWithoutTensorFlow(t *testing.T) {
	out, errs := runPython(t, python3(t), shimDir(t), "import sys, json\nprint('tensorflow' in sys.modules)\n"+
		"try:\n    import tensorflow_of_nobody\nexcept ImportError as e:\n    print(e)\n", "HOLDFAST_TF1=1", "HOLDFAST_RECOVERY_WAIT_SECS=1")
	if out != "False\nNo module named 'tensorflow_of_nobody'\n" || errs != "" {
		t.Errorf("it printed %q and %q", out, errs)
	}
	// Bad settings do not keep a program from running.
	out, errs = runPython(t, python3(t), shimDir(t), "try:\n    import tensorflow\nexcept ImportError:\n    pass\nprint('runs')\n", "HOLDFAST_RECOVERY_WAIT_SECS=soon")
	if out != "runs\n" || !strings.Contains(errs, "soon") {
		t.Errorf("it printed %q and %q", out, errs)
	}
}

// A TensorFlow 1 that is really there is left as it is.
func TestTheShimLeavesTensorFlow1Alone(t *testing.T) {
	site := t.TempDir()
	if err := os.Mkdir(filepath.Join(site, "tensorflow"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(site, "tensorflow", "__init__.py"), []byte("__version__ = '1.15.5'\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, _ := runPython(t, python3(t), shimDir(t)+":"+site, "import tensorflow as tf\nprint(tf.__version__, tf.__file__)\n", "HOLDFAST_TF1=1")
	if !strings.HasPrefix(out, "1.15.5 "+site) {
		t.Errorf("it printed %q", out)
	}
}

// What scripts of TensorFlow 1 do, and what libraries for TensorFlow 2 need
// beside them.
const tf1Script = `
import tensorflow as tf
from tensorflow.contrib.framework import get_or_create_global_step
import inspect, json
import tensorflow.compat.v1 as v1
import tensorflow.python.training.session_manager as sm
import tensorflow as again

x = tf.placeholder(tf.float32)
w = tf.get_variable("w", [1])
step = get_or_create_global_step()
train = tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(w * x), global_step=step)
with tf.Session() as s:
    s.run(tf.global_variables_initializer())
    s.run(train, {x: 1})
    n = int(s.run(step))
def missing(f):
    try:
        f()
    except AttributeError as e:
        return str(e)
print(json.dumps(dict(
    step=n, eager=tf.executing_eagerly(), same=again is tf, v1=tf.compat.v1 is v1,
    supervisor=hasattr(tf.train, "Supervisor"), app=hasattr(tf.app, "run"), name=tf.__name__,
    wait=sm.SessionManager()._recovery_wait_secs, chosen=sm.SessionManager(recovery_wait_secs=7)._recovery_wait_secs,
    source=len(inspect.getsource(sm)) > 1000,
    slim=missing(lambda: tf.contrib.slim), nope=missing(lambda: tf.nope),
    keras=tf.keras.layers.Dense(3).units,
)))
`

func TestTheShimWithTensorFlow(t *testing.T) {
	python := tensorflow(t)
	dir := shimDir(t)
	out, errs := runPython(t, python, dir, tf1Script, "HOLDFAST_TF1=1", "HOLDFAST_RECOVERY_WAIT_SECS=1")
	var got struct {
		Step, Keras      int
		Eager, Same, V1  bool
		Supervisor, App  bool
		Source           bool
		Wait, Chosen     float64
		Name, Slim, Nope string
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, errs)
	}
	if got.Step != 1 || got.Eager || !got.Same || !got.V1 || !got.Supervisor || !got.App || got.Name != "tensorflow" {
		t.Errorf("as TensorFlow 1: %+v", got)
	}
	if got.Wait != 1 || got.Chosen != 7 || !got.Source {
		t.Errorf("SessionManager: %+v", got)
	}
	if !strings.Contains(got.Slim, "tf.contrib.slim is not in TensorFlow 2") || got.Nope != "module 'tensorflow' has no attribute 'nope'" {
		t.Errorf("what is missing: %+v", got)
	}
	if got.Keras != 3 {
		t.Errorf("keras: %+v", got)
	}

	out, _ = runPython(t, python, dir, `
import tensorflow as tf
import tensorflow.python.training.session_manager as sm
print(tf.executing_eagerly(), hasattr(tf, "placeholder"), sm.SessionManager(ready_op=None)._recovery_wait_secs)
`, "HOLDFAST_TF1=", "HOLDFAST_RECOVERY_WAIT_SECS=")
	if out != "True False 30\n" {
		t.Errorf("without settings it printed %q", out)
	}
}

// stepErrors runs the shim over a session that fails with CANCELLED and a
// message, and prints what becomes of it.
const stepErrors = `
import json, os
from tensorflow.python.client import session
for message in json.loads(os.environ["MESSAGES"]):
    try:
        session.BaseSession()._do_call(message)
    except session.errors.OpError as e:
        print(type(e).__name__, e.message == "Graph execution error:\n" + message, e.node_def, e.op)
`

// TestTheShimNamesLostPeers: the first message is one of TensorFlow 2.21, shortened.
func TestTheShimNamesLostPeers(t *testing.T) {
	const (
		begin     = "\n=====================\n"
		end       = "\n=====================\n"
		cancelled = "CANCELLED: From /job:worker/replica:0/task:1:\nRecvFromRemoteAsync is cancelled.\n\t [[{{node Adagrad/update}}]]\n" +
			"Recent warning and error logs:\n  W0000 local_rendezvous.cc:412] Local rendezvous is aborting with status: INTERNAL: earlier"
		aborted = "ABORTED: From /job:ps/replica:0/task:0:\nSession handle is not found: ce26fef808944604. " +
			"Possibly this worker (\"/job:ps/replica:0/task:0\") just restarted."
		unavailable = "UNAVAILABLE: From /job:ps/replica:0/task:0:\nSocket closed"
		invalid     = "INVALID_ARGUMENT: From /job:worker/replica:0/task:1:\nIncompatible shapes"
	)
	cases := []struct{ name, message, want string }{
		{"a parameter server was restarted", begin + cancelled + "\n" + aborted + end, "AbortedError"},
		{"a parameter server is away", begin + cancelled + "\n" + unavailable + end, "UnavailableError"},
		{"the step has a fault of its own", begin + cancelled + "\n" + invalid + "\n" + aborted + end, "CancelledError"},
		{"the script cancels the step", begin + "CANCELLED: RunManyGraphs\n" + cancelled + "\n" + aborted + end, "CancelledError"},
		{"nothing but cancelled", begin + cancelled + end, "CancelledError"},
		{"another message", "Dequeue operation was cancelled\n" + "  (0) " + aborted, "CancelledError"},
	}
	var messages, want []string
	for _, c := range cases {
		messages, want = append(messages, c.message), append(want, c.want+" True node op")
	}
	site := t.TempDir()
	client := filepath.Join(site, "tensorflow", "python", "client")
	text, err := json.Marshal(messages)
	if err == nil {
		err = os.MkdirAll(client, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(client, "session.py"), []byte(`
class errors:
    class OpError(Exception):
        def __init__(self, node_def, op, message):
            self.node_def, self.op, self.message = node_def, op, message
    class AbortedError(OpError): pass
    class CancelledError(OpError): pass
    class UnavailableError(OpError): pass
class BaseSession:
    def _do_call(self, message):
        raise errors.CancelledError("node", "op", "Graph execution error:\n" + message)
`), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	out, _ := runPython(t, python3(t), shimDir(t)+":"+site, stepErrors, "HOLDFAST_NAME_LOST_PEERS=1", "MESSAGES="+string(text))
	got := strings.Split(strings.TrimSpace(out), "\n")
	if len(got) != len(cases) {
		t.Fatalf("it printed %q", out)
	}
	for i, c := range cases {
		if got[i] != want[i] {
			t.Errorf("%s: got %s, want %s", c.name, got[i], want[i])
		}
	}
}

// chiefs has one chief after another train with a parameter server, each killed in the
// middle, and prints at which step each began, and what checkpoints it knew of then.
const chiefs = `
import ctypes, json, os, signal, socket, sys
import tensorflow as tf

def port():
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]

how, logs = os.environ["HOW"], os.environ["LOGS"]
cluster = {"ps": ["localhost:%d" % port()], "worker": ["localhost:%d" % port()]}

def fork(run, *args):
    pid = os.fork()
    if pid == 0:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: nothing outlives the test
        try:
            run(*args)
        finally:
            sys.stdout.flush()
            os._exit(0)
    return pid

def serve():
    tf.train.Server(cluster, job_name="ps", task_index=0).join()

def monitored(target, step):
    return tf.train.MonitoredTrainingSession(master=target, checkpoint_dir=logs, save_checkpoint_steps=1000,
                                             log_step_count_steps=None, save_summaries_steps=None)

def supervised(target, step):
    sv = tf.train.Supervisor(logdir=logs, global_step=step, summary_op=None, save_model_secs=0)
    s = sv.prepare_or_wait_for_session(target)
    sv.saver.save(s, os.path.join(logs, "model.ckpt"), global_step=step)
    return s

def train(kept, steps):
    os.environ["HOLDFAST_MODEL_KEPT"] = kept
    server = tf.train.Server(cluster, job_name="worker", task_index=0)
    with tf.device(tf.train.replica_device_setter(cluster=cluster)):
        step = tf.train.get_or_create_global_step()
        more = tf.assign_add(step, 1)
    s = {"monitored": monitored, "supervised": supervised}[how](server.target, step)
    state = tf.train.get_checkpoint_state(logs)
    print(json.dumps([int(s.run(step)), [p.split("-")[-1] for p in state.all_model_checkpoint_paths]]))
    for _ in range(steps):
        s.run(more)
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)

ps = fork(serve)
for kept, steps in ("0", 7), ("1", 4), ("0", 5), ("1", 2):
    os.waitpid(fork(train, kept, steps), 0)
os.kill(ps, signal.SIGKILL)
os.waitpid(ps, 0)
ps = fork(serve)
os.waitpid(fork(train, "1", 0), 0)
os.kill(ps, signal.SIGKILL)
`

// TestTheShimKeepsTheModel: each chief saves as it begins, and never again.
func TestTheShimKeepsTheModel(t *testing.T) {
	python := tensorflow(t)
	want := `[0, ["0"]]
[7, ["0", "7"]]
[7, ["0", "7"]]
[12, ["0", "7", "12"]]
[12, ["0", "7", "12"]]
`
	for _, how := range []string{"monitored", "supervised"} {
		out, errs := runPython(t, python, shimDir(t), chiefs, "HOW="+how, "LOGS="+t.TempDir(),
			"HOLDFAST_TF1=1", "HOLDFAST_RECOVERY_WAIT_SECS=1", "HOLDFAST_FRAMEWORK=tensorflow")
		if out != want { // the second and the fourth keep what is there, the last finds nothing there
			t.Errorf("the %s chiefs began at:\n%s\nwant:\n%s\n%s", how, out, want, errs)
		}
	}
}

// keeping has a chief come back whose first try to make a session fails, and which makes
// several, before and after a parameter server has lost what it held.
const keeping = `
import sys, types
from _holdfast import tensorflow

class SessionManager:
    tries, ready = 0, True
    _ready_op = True
    def _restore_checkpoint(self, master, saver=None, checkpoint_dir=None, config=None):
        SessionManager.tries += 1
        if SessionManager.tries == 1:
            raise RuntimeError("a parameter server does not answer yet")
        print("restored" if saver else "joined")
        return types.SimpleNamespace(close=lambda: None), False
    def _model_ready(self, session):
        return self.ready, None

module = types.SimpleNamespace(SessionManager=SessionManager,
                               checkpoint_management=types.SimpleNamespace(get_checkpoint_state=lambda d: None))
tensorflow._keep_model(module)
manager = SessionManager()
for ready in True, True, True, False, True:
    SessionManager.ready = ready
    try:
        manager._restore_checkpoint("grpc://localhost:1", object(), "logs")
    except RuntimeError as e:
        print(e)
`

// As long as nothing was put in the place of what the parameter servers hold, each session
// goes on from that; after a restore, which may have been broken off, each one restores.
func TestTheModelIsKeptUntilItIsRestored(t *testing.T) {
	out, errs := runPython(t, python3(t), shimDir(t), keeping, "HOLDFAST_MODEL_KEPT=1")
	if want := "a parameter server does not answer yet\njoined\njoined\njoined\nrestored\nrestored\n"; out != want {
		t.Errorf("it printed %q, want %q\n%s", out, want, errs)
	}
}

// coordinated makes a step of two workers, loses one of them for good, and ends when
// its coordinator is about to take that one in again.
const coordinated = `
import ctypes, json, os, signal, socket, time
import tensorflow as tf

def port():
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]

cluster = {"chief": ["localhost:%d" % port()], "ps": ["localhost:%d" % port()], "worker": ["localhost:%d" % port() for _ in range(2)]}

def serve(job, index):
    pid = os.fork()
    if pid == 0:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: nothing outlives the test
        tf.distribute.Server(cluster, job_name=job, task_index=index, protocol="grpc").join()
    return pid

serve("ps", 0), serve("worker", 0)
lost = serve("worker", 1)
os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": {"type": "chief", "index": 0}})
strategy = tf.distribute.ParameterServerStrategy(tf.distribute.cluster_resolver.TFConfigClusterResolver())
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)

@tf.function
def step():
    return tf.constant(1)

def make(steps):
    for _ in range(steps):
        coordinator.schedule(step)
    coordinator.join()

make(10)
os.kill(lost, signal.SIGKILL)
while not coordinator._cluster.failure_handler._cluster_due_for_update_or_finish.is_set():
    make(10)
print("done", flush=True)
signal.alarm(60)  # it would never end
`

// TestAProgramEndsWithoutTheWorkerItLost: TensorFlow's coordinator would never end.
func TestAProgramEndsWithoutTheWorkerItLost(t *testing.T) {
	out, _ := runPython(t, tensorflow(t), shimDir(t), coordinated, "HOLDFAST_COORDINATOR_EXIT=1", "HOLDFAST_FAIL_FAST=1")
	if out != "done\n" {
		t.Errorf("it printed %q", out)
	}
}

// sessions prints the device filters that sessions of all kinds get, and then has a
// worker train whose peer is not there.
const sessions = `
import os, signal, socket, threading
import tensorflow as tf
from tensorflow.python.framework import function

def port():
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]

def cluster(**jobs):
    return {job: ["localhost:%d" % port() for _ in range(n)] for job, n in jobs.items()}

def graph(*devices, final=True, inner=None):
    with tf.Graph().as_default() as g:
        for d in devices:
            with tf.device(d):
                x = tf.constant(1.0)
        if inner:
            @function.Defun(tf.float32)
            def f(x):
                with tf.device(inner):
                    return x + 1
            f(x)
    if final:
        g.finalize()
    return g

def show(name, target, g, config=None):
    s = tf.Session(target, graph=g, config=config)
    print(name + ":", *(s._config.device_filters if s._config else []))

whole = cluster(ps=1, worker=2)
worker = tf.train.Server(whole, job_name="worker", task_index=0).target
chief = tf.train.Server(cluster(ps=1, chief=1, worker=2), job_name="chief", task_index=0).target
alone = tf.train.Server(cluster(worker=2), job_name="worker", task_index=0).target
ps = tf.train.Server(whole, job_name="ps", task_index=0)
own = tf.ConfigProto(device_filters=["/job:ps"])
set_there = tf.train.Server(cluster(ps=1, worker=2), job_name="worker", task_index=0, config=own).target
usual = "/job:ps/task:0", "/job:worker/task:0/cpu:0", ""
threads = tf.ConfigProto(intra_op_parallelism_threads=3)
show("usual", worker, graph(*usual))
show("with a config", worker, graph(*usual), threads)
print("the script's config:", *threads.device_filters)
show("chief", chief, graph("/job:ps/task:0", "/job:chief/task:0"))
show("set by the script", worker, graph(*usual), own)
show("set for the server", set_there, graph(*usual))
show("graph that may grow", worker, graph(*usual, final=False))
show("op of a peer", worker, graph(*usual, "/job:worker/task:1"))
show("op of any worker", worker, graph(*usual, "/job:worker"))
show("function of a peer", worker, graph(*usual, inner="/job:worker/task:1"))
show("own function", worker, graph(*usual, inner="/job:worker/task:0"))
show("no parameter servers", alone, graph("/job:worker/task:0"))
show("of a parameter server", ps.target, graph("/job:ps/task:0"))
show("another's server", "grpc://localhost:1", graph(*usual))
show("no server", "", graph(""))

signal.alarm(120)  # it would wait for ever
for how in "monitored", "supervised":
    with tf.Graph().as_default(), tf.device(tf.train.replica_device_setter(worker_device="/job:worker/task:0", cluster=tf.train.ClusterSpec(whole))):
        step = tf.train.get_or_create_global_step()
        more = tf.assign_add(step, 1)
        if how == "monitored":
            with tf.train.MonitoredTrainingSession(master=worker, checkpoint_dir=None) as s:
                print(how, int(s.run(more)))
        else:
            with tf.train.Supervisor(global_step=step, summary_op=None).managed_session(worker) as s:
                print(how, int(s.run(more)))
`

// TestAWorkersSessionSeesWhatItNeeds: a worker that comes back does not wait for those that have
// ended.
func TestAWorkersSessionSeesWhatItNeeds(t *testing.T) {
	seesWhatItNeeds(t, tensorflow(t))
}

// TestLongAWorkersSessionOfOlderTensorFlows: whose sessions and servers are made in other ways.
func TestLongAWorkersSessionOfOlderTensorFlows(t *testing.T) {
	for name, e := range map[string]pyenv.Environment{"1.15": pyenv.TensorFlow115, "2.3": pyenv.TensorFlow23} {
		t.Run(name, func(t *testing.T) {
			python, err := e.Make(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			seesWhatItNeeds(t, python)
		})
	}
}

func seesWhatItNeeds(t *testing.T, python string) {
	t.Helper()
	out, errs := runPython(t, python, shimDir(t), sessions, "HOLDFAST_TF1=1", "HOLDFAST_DEVICE_FILTERS=1")
	want := `usual: /job:ps /job:worker/task:0
with a config: /job:ps /job:worker/task:0
the script's config:
chief: /job:ps /job:chief/task:0
set by the script: /job:ps
set for the server:
graph that may grow:
op of a peer:
op of any worker:
function of a peer:
own function: /job:ps /job:worker/task:0
no parameter servers:
of a parameter server:
another's server:
no server:
monitored 1
supervised 1
`
	if out != want {
		t.Errorf("sessions have the filters:\n%s\nwant:\n%s\n%s", out, want, errs)
	}
}

// TensorFlow 2.3 aborts at the word that later versions know (GRPC_FAIL_FAST).
func TestTheShimKnowsWhichTensorFlowFailsFast(t *testing.T) {
	shim := shimDir(t)
	for _, tt := range []struct{ installed, set, want string }{
		{"tensorflow-2.3.4.dist-info", "", "None"},
		{"tensorflow-1.15.5.dist-info", "", "None"},
		{"tensorflow-2.4.0.dist-info", "", "use_caller"},
		{"tensorflow_cpu-2.21.0.dist-info", "", "use_caller"},
		{"tensorflow-cpu-2.5.0.dist-info", "", "use_caller"},
		{"tensorflow_gpu-2.3.0.dist-info", "", "None"},
		{"tf_nightly-2.22.0.dev20260101.dist-info", "", "use_caller"},
		{"tensorflow-2.11.0-py3.9.egg-info", "", "use_caller"},
		{"tensorflow_hub-2.16.1.dist-info", "", "None"},
		{"tensorflow_io_gcs_filesystem-2.37.1.dist-info", "", "None"},
		{"numpy-2.4.0.dist-info", "", "None"},
		{"tensorflow-2.4.0.dist-info", "GRPC_FAIL_FAST=false", "false"},
		{"tensorflow-2.4.0.dist-info", "HOLDFAST_FAIL_FAST=0", "None"},
	} {
		site := t.TempDir()
		if err := os.Mkdir(filepath.Join(site, tt.installed), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(site, "tensorflow.py"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		env := []string{"HOLDFAST_FAIL_FAST=1"}
		if tt.set != "" {
			env = append(env, tt.set)
		}
		script := "import os\nbefore = 'GRPC_FAIL_FAST' in os.environ\nimport tensorflow\nprint(os.environ.get('GRPC_FAIL_FAST'), before)\n"
		out, _ := runPython(t, python3(t), shim+":"+site, script, env...)
		if before := map[bool]string{false: "False", true: "True"}[strings.HasPrefix(tt.set, "GRPC_")]; out != tt.want+" "+before+"\n" {
			t.Errorf("%s, %s: %s", tt.installed, tt.set, out)
		}
	}
}
