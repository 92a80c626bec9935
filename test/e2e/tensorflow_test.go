package e2e

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"holdfast/proto"
)

// program is one of the example programs that reproduce a report.
type program struct {
	name        string
	script      string // below examples
	ps, workers int
	steps       int
	path        string // of its checkpoints, as it spells it
	// control is what its logs say when every task has a directory of its own.
	control string
	// stays: its workers live through the loss of a parameter server.
	stays bool
}

var programs = []program{
	{"Supervisor", "supervisor/supervisor.py", 2, 2, 300, "./train_logs", "", false},
	{"SupervisorSharded", "supervisor-sharded/supervisor_sharded.py", 2, 5, 300, "./train_logs", `part-0000\d-of-00002|_temp`, false},
	{"MonitoredSession", "monitored-session/monitored_session.py", 2, 3, 300, "./train_logs", `part-0000\d-of-00002|_temp`, true},
}

// tfLimit is how long a TensorFlow job may go without what a test waits for:
// eight imports at once take a minute on two idle cores.
const tfLimit = 8 * time.Minute

func (p program) start(t *testing.T, w where, python, store string) *job {
	t.Helper()
	script, err := filepath.Abs(filepath.Join("../../examples", p.script))
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--name", p.name, "--framework", "tensorflow", "--tf1",
		"--ps", fmt.Sprint(p.ps), "--worker", fmt.Sprint(p.workers),
		"--ps-memory", "900m", "--worker-memory", "900m", "--files", script}
	if store != "" {
		args = append(args, "--checkpoint", p.path+"="+store)
	}
	args = append(args, "--", python, filepath.Base(script), "--job_name={role}", "--task_index={index}",
		"--ps_hosts={ps_hosts}", "--worker_hosts={worker_hosts}", "--steps", fmt.Sprint(p.steps))
	j := w.start(t, t.TempDir(), args...)
	j.store = store
	return j
}

// shards fails the test unless each checkpoint has all its shards, and the newest is complete. A
// save that the loss has hit stays as it is, as on any disk: the program's own list does not name
// it.
func (j *job) shards(want, losses int) {
	j.t.Helper()
	list := j.checkpoints()
	newest, broken := j.newestComplete(), 0
	for _, c := range list {
		switch {
		case !c.Complete && c.Step < newest:
			broken++
		case !c.Complete:
			j.t.Errorf("the checkpoint of step %d, the newest, is not complete: %s", c.Step, c.State)
		case c.Shards != want:
			j.t.Errorf("the checkpoint of step %d has %d shards, want %d", c.Step, c.Shards, want)
		}
	}
	if newest < 0 || broken > losses {
		j.t.Errorf("%s has %d checkpoints that are not complete after %d losses; the newest complete one is of step %d: %+v", j.store, broken, losses, newest, list)
	}
}

// TestTensorFlow has a program whose session goes on, and one whose workers all end
// by it, lose a parameter server's container.
func TestTensorFlow(t *testing.T) {
	training.enter(t)
	python := tensorflow(t)
	w := where{hadoop(t)}
	for _, p := range programs[1:] {
		p.workers = 2
		t.Run(p.name, func(t *testing.T) {
			p.train(t, w, python, w.cluster.HDFS()+"/tests/"+strings.ReplaceAll(t.Name(), "/", "-"), (*job).killContainer)
		})
	}
}

// TestLongTensorFlow has each program lose a parameter server's container, and then
// its process in the next one, with as many workers as in the reports.
func TestLongTensorFlow(t *testing.T) {
	training.enter(t)
	python := tensorflow(t)
	w := where{hadoop(t)}
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			p.train(t, w, python, w.cluster.HDFS()+"/tests/"+strings.ReplaceAll(t.Name(), "/", "-"), (*job).killContainer, (*job).killProcess)
		})
	}
}

// train runs the program to its end, ps-1 lost on the way in each of these ways.
func (p program) train(t *testing.T, w where, python, store string, kills ...func(*job, string)) {
	t.Helper()
	j := p.start(t, w, python, store)
	before := int64(9)
	for _, kill := range kills {
		before = j.untilCheckpoint(tfLimit, before+1)
		kill(j, "ps-1")
		took := j.back(tfLimit, "ps-1")
		t.Logf("ps-1 lost after the checkpoint of step %d: running again after %s", before, took)
	}
	s := j.end(tfLimit, proto.JobState_JOB_STATE_SUCCEEDED)
	for _, k := range s.Tasks {
		if p.stays && k.Role == "worker" && k.Attempt != 0 {
			t.Errorf("%s ended as attempt %d; its first process should have lived on:\n%s", k.Task, k.Attempt, eventLog(s))
		}
	}
	text := j.logs("worker-0")
	if again := lastNumber(t, text, `begins at step (\d+)`); again < before {
		t.Errorf("it went on from step %d, and the checkpoint of step %d was complete:\n%s\n%s", again, before, eventLog(j.status()), tail(text, 60))
	}
	if !strings.Contains(text, fmt.Sprintf("final step %d", p.steps)) {
		t.Errorf("worker-0 did not reach step %d:\n%s", p.steps, tail(text, 60))
	}
	if p.control != "" {
		j.shards(p.ps, len(kills))
	} else if len(j.checkpoints()) == 0 {
		t.Errorf("there is no checkpoint in %s", store)
	}
}

// TestParameterServerStrategy loses a parameter server and a worker of TensorFlow 2's
// coordinator, and ends when that does, though the workers do not.
func TestParameterServerStrategy(t *testing.T) {
	training.enter(t)
	const steps = 400
	w := where{hadoop(t)}
	script, err := filepath.Abs("../../examples/parameter-server-strategy/parameter_server_strategy.py")
	if err != nil {
		t.Fatal(err)
	}
	store := w.cluster.HDFS() + "/tests/" + t.Name()
	j := w.start(t, t.TempDir(), "--framework", "tensorflow", "--chief", "1", "--ps", "2", "--worker", "2",
		"--chief-memory", "900m", "--ps-memory", "900m", "--worker-memory", "900m", "--files", script,
		"--checkpoint", "./train_logs="+store, "--", tensorflow(t), filepath.Base(script), "--steps", fmt.Sprint(steps))
	j.store = store
	before := j.untilCheckpoint(tfLimit, 10)
	j.killContainer("ps-1")
	j.back(tfLimit, "chief-0") // it ends by that
	again := number(t, j.said(tfLimit, "chief-0", `(?s)begins at step.*begins at step (\d+)`))
	if again < before {
		t.Errorf("it went on from step %d, and the checkpoint of step %d was complete", again, before)
	}
	j.untilCheckpoint(tfLimit, again+1)
	j.killContainer("worker-0")
	s := j.end(tfLimit, proto.JobState_JOB_STATE_SUCCEEDED)
	if c := task(s, "chief-0"); c.Attempt != 1 || c.Failures != 0 {
		t.Errorf("the chief ended as attempt %d, charged with %d failures:\n%s", c.Attempt, c.Failures, eventLog(s))
	}
	if step := j.newestComplete(); step != steps {
		t.Errorf("the newest checkpoint is of step %d", step)
	}
	j.shards(3, 2) // of two parameter servers and the chief
}

// TestALateWorkerFindsTheOthersServers: its graph has an operation on a worker whose work
// is done, so that its session would wait for that worker for ever.
func TestALateWorkerFindsTheOthersServers(t *testing.T) {
	training.enter(t)
	w := where{hadoop(t)}
	script, err := filepath.Abs("testdata/linger/late_worker.py")
	if err != nil {
		t.Fatal(err)
	}
	j := w.start(t, t.TempDir(), "--framework", "tensorflow", "--tf1", "--ps", "1", "--worker", "2", "--restart-stalled", "0",
		"--ps-memory", "900m", "--worker-memory", "900m", "--files", script, "--checkpoint", "./train_logs="+w.cluster.HDFS()+"/tests/"+t.Name(),
		"--", tensorflow(t), filepath.Base(script), "--job_name={role}", "--task_index={index}", "--ps_hosts={ps_hosts}", "--worker_hosts={worker_hosts}")
	s := j.end(tfLimit, proto.JobState_JOB_STATE_SUCCEEDED)
	if a, b := task(s, "worker-0").Attempt, task(s, "worker-1").Attempt; a != 1 || b != 0 {
		t.Errorf("worker-0 ended as attempt %d, worker-1 as %d:\n%s", a, b, eventLog(s))
	}
	for task, says := range map[string]string{"worker-0": "worker 1 is done", "worker-1": "the end of worker 1"} {
		if text := j.logs(task); !strings.Contains(text, says) {
			t.Errorf("%s has not printed %q:\n%s", task, says, tail(text, 60))
		}
	}
}

// lastNumber gives the number in the last line that matches.
func lastNumber(t *testing.T, text, pattern string) int64 {
	t.Helper()
	all := regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		t.Fatalf("nothing matches %q in\n%s", pattern, tail(text, 60))
	}
	return number(t, all[len(all)-1][1])
}

// TestLongPrivateDirectories is the control: the same programs without a shared
// checkpoint directory fail as users reported.
func TestLongPrivateDirectories(t *testing.T) {
	training.enter(t)
	python := tensorflow(t)
	w := where{hadoop(t)}
	for _, p := range programs {
		if p.control == "" {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			j := p.start(t, w, python, "")
			re := regexp.MustCompile(p.control)
			for end := time.Now().Add(tfLimit); ; time.Sleep(time.Second) {
				if text := j.logs("worker-0"); re.MatchString(text) && regexp.MustCompile(`NotFound|NOT_FOUND|InvalidArgument|INVALID_ARGUMENT`).MatchString(text) {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("saving does not fail:\n%s", j.allLogs())
				}
			}
		})
	}
}

// TestLongPrivateDirectoriesForgetTheCheckpoint is the control of the first report:
// with a directory of its own, the relaunched chief does not find what it had
// saved, and training begins again.
func TestLongPrivateDirectoriesForgetTheCheckpoint(t *testing.T) {
	training.enter(t)
	w := where{hadoop(t)}
	p := programs[0]
	p.steps = 100000
	j := p.start(t, w, tensorflow(t), "")
	before := number(t, j.said(tfLimit, "worker-0", `step ([1-9]\d{2,}) loss`))
	j.killContainer("worker-0")
	j.back(tfLimit, "worker-0")
	begins := regexp.MustCompile(`begins at step (\d+)`)
	for end := time.Now().Add(tfLimit); ; time.Sleep(time.Second) {
		if all := begins.FindAllStringSubmatch(j.logs("worker-0"), -1); len(all) > 1 {
			if again := number(t, all[len(all)-1][1]); again >= before {
				t.Errorf("it went on from step %d, and had reached %d: then nothing is to be restored", again, before)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatalf("it does not begin again:\n%s", j.allLogs())
		}
	}
}
