package container_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"holdfast/container"
	"holdfast/container/proctree"
	"holdfast/proto"
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
	c := m.agent()
	c.send(assignment(change))
	c.prepared()
	return &pythonTask{
		connected: c, t: t, agent: agent, command: []string{string(python)},
		env: map[string]string{
			"PYTHONPATH": site, proto.EnvWarm: "slowlib", "PYTHONDONTWRITEBYTECODE": "1",
			"SLOWLIB_REMOVES": "me", "EMPTY": "", "LATIN": "ä=b",
		},
	}
}

// write puts a script into the working directory, and returns its name.
func (p *pythonTask) write(name, text string) string {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.agent.config.WorkDir, "work", name), []byte(text), 0o644); err != nil {
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

// until waits for a beat that says something of the warm interpreter.
func (p *pythonTask) until(says string) *proto.Beat {
	p.t.Helper()
	timeout := time.After(patience)
	last := ""
	for {
		select {
		case b := <-p.beats:
			if strings.Contains(b.Warm, says) {
				return b
			}
			if last = b.Warm; strings.HasPrefix(last, "no warm") {
				p.t.Fatalf("the agent says %q and not %q; the attempt\n%s", last, says, p.output())
			}
		case <-timeout:
			p.t.Fatalf("the agent does not say %q of the warm interpreter; it says %q, and the attempt\n%s", says, last, p.output())
		}
	}
}

// warm runs an attempt that waits after its import, until a warm interpreter of
// its command is ready, and ends it.
func (p *pythonTask) warm(args ...string) *proto.Beat {
	p.t.Helper()
	hold := filepath.Join(p.agent.config.WorkDir, "work", "hold")
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

var changing = regexp.MustCompile(`0x[0-9a-f]+|'HOLDFAST_ATTEMPT(', '|=)\d+'`)

// A script finds nothing by which it could tell whether it was forked from a
// warm interpreter, and ends alike.
func TestAWarmStartCannotBeToldFromAnother(t *testing.T) {
	text, err := os.ReadFile("testdata/self.py")
	if err != nil {
		t.Fatal(err)
	}
	script := strings.Replace(string(text), "    end(sys.argv[1])\n", "    if os.path.exists('hold'):\n        import time\n    while os.path.exists('hold'):\n        time.sleep(0.01)\n    end(sys.argv[1])\n", 1)
	for _, how := range []string{"return", "exit", "words", "raise", "kill", "interrupt", "abort", "leave"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			p := newPythonTask(t, nil)
			p.write("self.py", script)
			args := []string{"-W", "error::UserWarning", "self.py", how, "ä b", ""}
			p.start(args...)
			want := p.exited()
			ordinary := p.output()
			p.warm(args...)
			p.start(args...)
			got := p.exited()
			if b := p.until("warm interpreter"); !strings.Contains(b.Warm, "came from") && !strings.Contains(b.Warm, "which came from it") {
				t.Fatalf("it was not forked: %q", b.Warm)
			}
			if got.Code != want.Code || got.Signal != want.Signal || got.Detail != want.Detail {
				t.Errorf("it ended by %v, not by %v", got, want)
			}
			a := strings.Split(changing.ReplaceAllString(ordinary, "-"), "\n")
			b := strings.Split(changing.ReplaceAllString(p.output(), "-"), "\n")
			if len(a) < 50 {
				t.Errorf("the script prints too little:\n%s", ordinary)
			}
			for i := range max(len(a), len(b)) {
				if i >= len(a) || i >= len(b) || a[i] != b[i] {
					t.Fatalf("line %d differs; ordinary:\n%s\nwarm:\n%s", i+1, strings.Join(a[min(i, len(a)):min(i+4, len(a))], "\n"), strings.Join(b[min(i, len(b)):min(i+4, len(b))], "\n"))
				}
			}
		})
	}
}

var _ = proctree.RSS
