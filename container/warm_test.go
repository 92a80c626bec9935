package container_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/container"
	"holdfast/proto"
	"holdfast/test/ports"
	"holdfast/test/pyenv"
)

// pythonTask is a task whose command is Python and whose attempts may be forked
// from a warm interpreter.
type pythonTask struct {
	*connected
	t       *testing.T
	agent   *running
	env     map[string]string
	number  int32
	command []string
}

// newPythonTask is a task that is prepared. Its files are those of testdata,
// and its module to be imported is slowlib.
func newPythonTask(t *testing.T, change func(*proto.Assign)) *pythonTask {
	t.Helper()
	p := newPythonContainer(t)
	p.send(assignment(change))
	p.prepared()
	return p
}

// newPythonContainer is the same before it has a task.
func newPythonContainer(t *testing.T) *pythonTask {
	t.Helper()
	// Not what is on the PATH, which may be a script that looks for Python.
	python, err := exec.Command("python3", "-c", "import sys; print(sys.executable, end='')").Output()
	if err != nil {
		t.Fatalf("python3 does not run: install it (on Debian: apt-get install python3-venv): %v", err)
	}
	site, err := filepath.Abs("testdata/site")
	if err != nil {
		t.Fatal(err)
	}
	m := newMaster(t)
	agent := m.startAgent("c1", func(c *container.Config) { c.WarmAfter = time.Millisecond })
	return &pythonTask{
		connected: m.agent(), t: t, agent: agent, command: []string{string(python)},
		env: map[string]string{
			"PYTHONPATH": site, proto.EnvWarm: "slowlib", "PYTHONDONTWRITEBYTECODE": "1",
			"SLOWLIB_REMOVES": "me", "EMPTY": "", "LATIN": "ä=b",
		},
	}
}

func (p *pythonTask) work() string { return filepath.Join(p.agent.config.WorkDir, "work") }

// write puts a script into the working directory, and returns its name.
func (p *pythonTask) write(name, text string) string {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.work(), name), []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
	return name
}

// start starts the next attempt.
func (p *pythonTask) start(args ...string) *proto.Started {
	p.t.Helper()
	env := map[string]string{"HOLDFAST_ATTEMPT": fmt.Sprint(p.number)}
	for k, v := range p.env {
		env[k] = v
	}
	p.send(&proto.Start{Attempt: p.number, Command: append(append([]string{}, p.command...), args...), Env: env})
	p.number++
	return p.started()
}

// output is all that the last attempt has printed.
func (p *pythonTask) output() string {
	p.t.Helper()
	b, err := os.ReadFile(filepath.Join(p.agent.config.LogDir, fmt.Sprintf("ps-1.%d.log", p.number-1)))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b)
}

// until waits for a beat that says something of the warm interpreter. That imports
// for a third of the time only, so on a busy machine it takes several times as long as
// an attempt does.
func (p *pythonTask) until(says string) *proto.Heartbeat {
	p.t.Helper()
	timeout := time.After(5 * patience)
	last := ""
	for {
		select {
		case b := <-p.beats:
			if strings.Contains(b.WarmStatus, says) {
				return b
			}
			if last = b.WarmStatus; strings.HasPrefix(last, "no warm") {
				p.t.Fatalf("the agent says %q and not %q; the attempt\n%s", last, says, p.output())
			}
		case <-timeout:
			p.t.Fatalf("the agent does not say %q of the warm interpreter; it says %q, and the attempt\n%s", says, last, p.output())
		}
	}
}

// warm runs an attempt that waits after its import, until a warm interpreter of
// its command is ready, and ends it.
func (p *pythonTask) warm(args ...string) *proto.Heartbeat {
	p.t.Helper()
	hold := filepath.Join(p.work(), "hold")
	if err := os.WriteFile(hold, nil, 0o644); err != nil {
		p.t.Fatal(err)
	}
	p.start(args...)
	b := p.until("is ready")
	if err := os.Remove(hold); err != nil {
		p.t.Fatal(err)
	}
	p.exited()
	return b
}

// holds makes a script wait before its end while warm is waiting.
const holds = `
import os, time
while os.path.exists("hold"):
    time.sleep(0.01)
`

var changing = regexp.MustCompile(`0x[0-9a-f]+|HOLDFAST_(ATTEMPT|PORT)(', '|=)\d+|ps-1:\d+|progress-\d+-\d+`)

// A script finds nothing by which it could tell whether it was forked from a
// warm interpreter, and ends alike.
func TestAWarmStartCannotBeToldFromAnother(t *testing.T) {
	text, err := os.ReadFile("testdata/self.py")
	if err != nil {
		t.Fatal(err)
	}
	type way struct {
		name, how string
		before    []string // of the script, which is among them
		env       map[string]string
	}
	var ways []way
	for _, how := range []string{"return", "exit", "words", "raise", "kill", "interrupt", "abort", "leave"} {
		ways = append(ways, way{name: how, how: how, before: []string{"-W", "error::UserWarning", "self.py"}})
	}
	ways = append(ways,
		way{name: "-u", how: "raise", before: []string{"-u", "self.py"}},
		way{name: "-O", how: "exit", before: []string{"-OBsX", "faulthandler", "self.py"}},
		way{name: "a module", how: "raise", before: []string{"-m", "self"}},
		way{name: "a file in a directory", how: "exit", before: []string{"below/it.py"}},
		way{name: "no locale", how: "exit", before: []string{"self.py"}, env: map[string]string{"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}},
		way{name: "a seed", how: "exit", before: []string{"self.py"}, env: map[string]string{"PYTHONHASHSEED": "7", "PYTHONUNBUFFERED": "1"}},
	)
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			p := newPythonTask(t, nil)
			maps.Copy(p.env, way.env)
			if err := os.Mkdir(filepath.Join(p.work(), "below"), 0o755); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"self.py", "below/it.py"} {
				p.write(name, string(text))
			}
			args := append(slices.Clone(way.before), way.how, "ä b", "")
			p.start(args...)
			want := p.exited()
			ordinary := p.output()
			p.warm(args...)
			p.start(args...)
			got := p.exited()
			p.until("came from")
			if got.Code != want.Code || got.Signal != want.Signal || got.Detail != want.Detail {
				t.Errorf("it ended by %v, not by %v", got, want)
			}
			alike(t, ordinary, p.output())
		})
	}
}

// alike compares what two attempts have printed, but for what must change.
func alike(t *testing.T, ordinary, warm string) {
	t.Helper()
	a := strings.Split(changing.ReplaceAllString(ordinary, "-"), "\n")
	b := strings.Split(changing.ReplaceAllString(warm, "-"), "\n")
	if len(a) < 50 {
		t.Errorf("the script prints too little:\n%s", ordinary)
	}
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			t.Fatalf("line %d differs; ordinary:\n%s\nwarm:\n%s", i+1, strings.Join(a[min(i, len(a)):min(i+4, len(a))], "\n"), strings.Join(b[min(i, len(b)):min(i+4, len(b))], "\n"))
		}
	}
}

// What an import or a script does that a fork would not bear is found out, and
// attempts start the ordinary way.
func TestWhatAForkWouldNotBearIsFoundOut(t *testing.T) {
	for name, test := range map[string]struct {
		does, before string // in the import, in the script before it
		says         string
	}{
		"a thread":              {does: "import threading, time; threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()", says: "threads"},
		"a process":             {does: "import subprocess; subprocess.Popen(['sleep', '1000'])", says: "processes"},
		"a connection":          {does: "import socket; kept = socket.socket()", says: "open"},
		"a device":              {does: "kept = open('/dev/zero')", says: "open"},
		"signals":               {does: "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)", says: "signals"},
		"a failure":             {does: "import inspect\nif any('_holdfast/warm' in f.filename for f in inspect.stack()): raise OSError('not twice')", says: "not twice"},
		"an exit":               {does: "import inspect, sys\nif any('_holdfast/warm' in f.filename for f in inspect.stack()): sys.exit(3)", says: "SystemExit"},
		"a crash":               {does: "import inspect, os\nif any('_holdfast/warm' in f.filename for f in inspect.stack()): os.abort()", says: "does not answer"},
		"the task's own module": {does: "import mine", says: "the task's own"},
		"another import":        {before: "import builtins; real = __import__; builtins.__import__ = lambda *a, **k: real(*a, **k)", says: "__import__"},
		"Cython's own module":   {before: "import sys, types; sys.modules['cython_runtime'] = types.ModuleType('cython_runtime')", does: "import socket; kept = socket.socket()", says: "open"},
		"a module of its own":   {before: "import sys, types; sys.modules['fractions'] = types.ModuleType('fractions')", says: "of its own making"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPythonTask(t, nil)
			p.env["SLOWLIB_DOES"] = test.does
			p.write("mine.py", "")
			p.write("train.py", test.before+"\nimport slowlib\nprint('begun')\n"+holds)
			p.write("hold", "")
			p.start("train.py")
			if b := p.until("no warm interpreter"); !strings.Contains(b.WarmStatus, test.says) || b.WarmRssBytes != 0 {
				t.Errorf("it says %q, not %q", b.WarmStatus, test.says)
			}
			if err := os.Remove(filepath.Join(p.work(), "hold")); err != nil {
				t.Fatal(err)
			}
			if e := p.exited(); e.Code != 0 {
				t.Fatalf("the attempt ended by %v", e)
			}
			p.start("train.py")
			if e := p.exited(); e.Code != 0 || !strings.Contains(p.output(), "begun") {
				t.Errorf("the next attempt ended by %v:\n%s", e, p.output())
			}
		})
	}
}

func TestAWarmInterpreterImportsAsTheScriptDoes(t *testing.T) {
	p := newPythonTask(t, nil)
	// It sets a variable, as scripts do to make TensorFlow quiet, and takes one away.
	p.write("train.py", "import os, sys\nprint('at first', os.environ.get('SLOWLIB_WITH'), os.environ.get('EMPTY'))\n"+
		"os.environ['SLOWLIB_WITH'] = 'zeal'\ndel os.environ['EMPTY']\nimport slowlib\nsys.stdout.flush()\n"+holds)
	p.warm("train.py")
	p.start("train.py")
	p.exited()
	p.until("came from")
	if got := p.output(); !strings.Contains(got, "at first None \n") || !strings.Contains(got, "slowlib greets zeal\n") {
		t.Errorf("it printed\n%s", got)
	}
}

// Random numbers are drawn anew. An attempt with other arguments is a fork too,
// and one of another script or environment is none.
func TestForksOfOneInterpreter(t *testing.T) {
	p := newPythonTask(t, nil)
	p.write("train.py", "import slowlib, random, uuid, os, sys\nprint('drawn', random.random(), uuid.uuid4(), os.urandom(8))\nprint(sys.argv)\nsys.stdout.flush()\n"+holds)
	b := p.warm("train.py")
	if b.WarmRssBytes <= 0 || b.AgentRssBytes <= b.WarmRssBytes {
		t.Errorf("the interpreter's memory is not told: %v", b)
	}
	drawn := map[string]bool{}
	for range 3 {
		p.start("train.py")
		p.exited()
		p.until("came from")
		drawn[regexp.MustCompile("drawn .*").FindString(p.output())] = true
	}
	if len(drawn) != 3 {
		t.Errorf("three forks drew %v", drawn)
	}
	p.start("train.py", "more")
	if e := p.exited(); e.Code != 0 || !strings.Contains(p.output(), "['train.py', 'more']") {
		t.Fatalf("with another argument: %v\n%s", e, p.output())
	}
	p.until("came from")
	p.write("other.py", "import slowlib\n"+holds)
	p.warm("other.py")
	p.start("other.py", "more")
	p.exited()
	p.until("came from")
	p.env["OTHER"] = "1"
	p.write("hold", "")
	p.start("train.py", "more")
	if b := p.until("is ready"); strings.Contains(b.WarmStatus, "came from") {
		t.Errorf("an attempt with another environment says %q", b.WarmStatus)
	}
	p.send(&proto.Stop{GraceMs: 60000})
	if e := p.exited(); !e.Stopped || e.Signal != int32(syscall.SIGTERM) {
		t.Errorf("stopped: %v", e)
	}
}

// A fork that is stopped or killed, with all that it has started, leaves the
// interpreter to the next.
func TestAForkIsStoppedAsAnyAttempt(t *testing.T) {
	p := newPythonTask(t, nil)
	p.write("train.py", "import slowlib, subprocess, sys\np = subprocess.Popen(['sleep', '1000'], start_new_session=True)\nprint('below', p.pid, flush=True)\n"+holds+"time.sleep(0 if os.environ['HOLDFAST_ATTEMPT'] == '0' else 1000)\n")
	p.warm("train.py")
	for _, by := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		s := p.start("train.py")
		below := regexp.MustCompile(`below (\d+)`)
		eventually(t, "what the attempt starts", func() bool { return below.MatchString(p.output()) })
		if by == syscall.SIGTERM {
			p.send(&proto.Stop{GraceMs: 60000})
		} else if err := syscall.Kill(int(s.Pid), by); err != nil {
			t.Fatal(err)
		}
		if e := p.exited(); e.Signal != int32(by) || e.Stopped != (by == syscall.SIGTERM) {
			t.Fatalf("after %v: %v", by, e)
		}
		var pid int
		fmt.Sscan(below.FindStringSubmatch(p.output())[1], &pid)
		if alive(pid) {
			t.Error("what the attempt had started lives on")
		}
		if b := p.until("came from"); b.WarmRssBytes == 0 {
			t.Error("the interpreter is gone")
		}
	}
	p.send(&proto.Release{})
	if err := p.agent.end(); err != nil {
		t.Fatal(err)
	}
}

func TestAnAttemptThatFailsSoonIsTheLastFork(t *testing.T) {
	p := newPythonTask(t, nil)
	p.write("train.py", "import slowlib, os, sys\n"+holds+"sys.exit(1 if os.environ['HOLDFAST_ATTEMPT'] == '1' else 0)\n")
	p.warm("train.py")
	p.start("train.py")
	if e := p.exited(); e.Code != 1 {
		t.Fatalf("exited: %v", e)
	}
	if b := p.until("no warm interpreter"); !strings.Contains(b.WarmStatus, "attempt 1, which came from it, exited with 1") || b.WarmRssBytes != 0 {
		t.Errorf("it says %q", b.WarmStatus)
	}
	p.start("train.py")
	if e := p.exited(); e.Code != 0 {
		t.Fatalf("the ordinary way: %v", e)
	}
}

func TestAContainerWithoutRoomKeepsNoInterpreter(t *testing.T) {
	p := newPythonTask(t, func(a *proto.Assign) { a.MemoryMb = 200 })
	p.write("train.py", "import slowlib\n"+holds)
	p.write("hold", "")
	p.start("train.py")
	if b := p.until("no warm interpreter"); !strings.Contains(b.WarmStatus, "200 MB") {
		t.Errorf("it says %q", b.WarmStatus)
	}
}

// A task with enough memory at first, which then needs it.
func TestAnInterpreterGivesWayToItsTask(t *testing.T) {
	p := newPythonTask(t, func(a *proto.Assign) { a.MemoryMb = 450 })
	p.write("train.py", "import slowlib, os, time\nwhile not os.path.exists('grow'):\n    time.sleep(0.01)\ngrown = b'x' * (380 << 20)\ntime.sleep(1000)\n")
	p.start("train.py")
	p.until("is ready")
	p.write("grow", "")
	if b := p.until("no warm interpreter"); !strings.Contains(b.WarmStatus, "450 MB") || b.WarmRssBytes != 0 {
		t.Errorf("it says %q", b.WarmStatus)
	}
}

// The command must be Python's own: what a shell does before must not be done
// twice.
func TestAShellIsNotWarmed(t *testing.T) {
	p := newPythonTask(t, nil)
	p.write("train.py", "import slowlib\n"+holds)
	p.write("hold", "")
	p.command = append(shell(`echo once >>did; exec "$@"`), append([]string{"sh"}, p.command...)...)
	p.start("train.py")
	p.until("does more than run Python")
	if b, err := os.ReadFile(filepath.Join(p.work(), "did")); err != nil || string(b) != "once\n" {
		t.Errorf("%q, %v", b, err)
	}
}

// warmed is a framework that attempts inherit, and a script that works with it. It prints
// random numbers, and the product of two matrices.
type warmed struct {
	module, script string
	env            map[string]string
	python         func(context.Context) (string, error)
	random         int    // numbers that are drawn anew in each process
	says           string // with settings of the job
}

var warmedFrameworks = []warmed{
	{"tensorflow", `
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import numpy as np
import tensorflow as tf
print("calls:", os.environ.get("GRPC_FAIL_FAST"))
print("drawn", np.random.rand(), np.random.default_rng().random(), tf.random.uniform([1]).numpy()[0], tf.random.Generator.from_non_deterministic_state().uniform([]).numpy())
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
x = np.ones((64, 4), np.float32)
model.fit(tf.data.Dataset.from_tensor_slices((x, x.sum(1))).batch(8).prefetch(2), epochs=2, verbose=0)
print("product", int(np.dot(np.ones((600, 600)), np.ones((600, 600))).sum()), flush=True)
`, map[string]string{"HOLDFAST_FAIL_FAST": "1"}, pyenv.TensorFlow, 4, "calls: use_caller\n"},
	// A generator of PyTorch's that is not seeded draws the same in every process.
	{"torch", `
import numpy as np
import torch
import torch.distributed as dist
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
print("drawn", np.random.rand(), np.random.default_rng().random(), torch.Generator().seed())
print("first", torch.rand(1).item())
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(64, 4), torch.ones(64, 1)), batch_size=8, num_workers=1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x, y in data:
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
print("product", int(torch.ones(600, 600).mm(torch.ones(600, 600)).sum()), flush=True)
`, map[string]string{"RANK": "0"}, pyenv.Torch, 3, "first 0."},
	{"jax", `
import os
import numpy as np
import jax
import jax.numpy as jnp
jax.distributed.initialize()
print("processes", jax.process_count(), jax.process_index())
print("drawn", np.random.rand(), np.random.default_rng().random())
step = jax.jit(jax.value_and_grad(lambda w: ((jnp.ones((64, 4)) @ w - 1.0) ** 2).mean()))
loss, slope = step(jnp.zeros((4, 1)))
print("product", int((jnp.ones((600, 600)) @ jnp.ones((600, 600))).sum()), flush=True)
`, map[string]string{"HOLDFAST_JAX_CLUSTER": "1", "JAX_PLATFORMS": "cpu", "JAX_NUM_PROCESSES": "1", "JAX_PROCESS_ID": "0"}, pyenv.JAX, 2, "processes 1 0\n"},
}

// Frameworks themselves can be inherited: forks train, and none draws another's random
// numbers.
func TestFrameworksFromAWarmInterpreter(t *testing.T) {
	for _, f := range warmedFrameworks {
		t.Run(f.module, f.inherits)
	}
}

func (f warmed) inherits(t *testing.T) {
	python, err := f.python(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := newPythonTask(t, nil)
	p.command = []string{python}
	maps.Copy(p.env, f.env)
	p.env[proto.EnvWarm], p.env["CUDA_VISIBLE_DEVICES"] = f.module, ""
	p.write("train.py", f.script+holds)
	start := func() {
		if f.module == "jax" {
			p.env["JAX_COORDINATOR_ADDRESS"] = fmt.Sprintf("127.0.0.1:%d", ports.ForTest(t, 1)[0])
		}
		p.start("train.py")
	}
	begun := time.Now()
	p.write("hold", "")
	start()
	eventually(t, "the first attempt's work", func() bool { return strings.Contains(p.output(), "product") })
	ordinary := time.Since(begun)
	b := p.until("is ready")
	if err := os.Remove(filepath.Join(p.work(), "hold")); err != nil {
		t.Fatal(err)
	}
	p.exited()
	drawn := map[string]bool{}
	for range 2 {
		begun = time.Now()
		start()
		if e := p.exited(); e.Code != 0 || !strings.Contains(p.output(), "product 216000000") {
			t.Fatalf("a fork ended by %v:\n%s", e, p.output())
		}
		if !strings.Contains(p.output(), f.says) {
			t.Errorf("a fork has not the settings of the first attempt:\n%s", p.output())
		}
		t.Logf("at work and done after %s, the ordinary way %s; the interpreter takes %d MB", time.Since(begun), ordinary, b.WarmRssBytes>>20)
		p.until("came from")
		for _, number := range strings.Fields(regexp.MustCompile("drawn (.*)").FindStringSubmatch(p.output())[1]) {
			drawn[number] = true
		}
	}
	if len(drawn) != 2*f.random {
		t.Errorf("two forks drew %v", drawn)
	}
}
