package container_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"holdfast/proto"
)

// imported is what the agent has found out about the task's script.
func (p *pythonTask) imported() *proto.ImportProfile {
	p.t.Helper()
	return hear(p.connected, (*proto.FromAgent).GetImportProfile)
}

// plan is of the attempt that start would start now, but for the
// arguments after the script.
func (p *pythonTask) plan(i *proto.ImportProfile, args ...string) *proto.PrewarmPlan {
	env := map[string]string{"HOLDFAST_ATTEMPT": "0"}
	for k, v := range p.env {
		env[k] = v
	}
	return &proto.PrewarmPlan{Command: append(append([]string{}, p.command...), args...), Env: env, ImportProfile: i}
}

// ordinary runs a script in a container where nothing is known of it, and gives
// its output, its end, and what is known then.
func ordinary(t *testing.T, change func(*pythonTask), script string, args ...string) (string, *proto.Exited, *proto.ImportProfile) {
	t.Helper()
	p := newPythonTask(t, nil)
	change(p)
	p.write("self.py", script)
	p.write("hold", "")
	p.start(args...)
	i := p.imported()
	if err := os.Remove(filepath.Join(p.work(), "hold")); err != nil {
		t.Fatal(err)
	}
	e := p.exited()
	return p.portable(), e, i
}

var namespaces = regexp.MustCompile(`(?m)^namespaces: .*$`)

// portable is the last attempt's output without what depends on the container.
func (p *pythonTask) portable() string {
	return namespaces.ReplaceAllString(strings.ReplaceAll(p.output(), p.agent.dir, "DIR"), "")
}

// What is known from one container serves another that has run nothing yet: its
// first attempt comes from an interpreter, ready or not, and cannot be told
// from one that does not. Where an import cannot be kept, or other arguments
// came before the script, it starts over the ordinary way.
func TestTheFirstAttemptOfAContainerThatPrewarmed(t *testing.T) {
	text, err := os.ReadFile("testdata/self.py")
	if err != nil {
		t.Fatal(err)
	}
	flags := []string{"-W", "error::UserWarning"}
	const blocks = "import time\nwhile os.path.exists(os.environ['BLOCK']): time.sleep(0.01)\n"
	for name, test := range map[string]struct {
		prewarmed []string // with what arguments
		begun     []string
		does      string // the import
		early     bool   // the attempt is started before the import is done
	}{
		"ready":               {prewarmed: []string{"self.py", "other", "arguments"}, begun: []string{"self.py", "exit", "ä b", ""}},
		"ready, fewer words":  {prewarmed: []string{"self.py", "other", "and", "more", "arguments"}, begun: []string{"self.py", "return"}},
		"importing":           {prewarmed: []string{"self.py"}, begun: []string{"self.py", "exit", "ä b", ""}, does: blocks, early: true},
		"refused later":       {prewarmed: []string{"self.py"}, begun: []string{"self.py", "exit", "ä b", ""}, does: blocks + "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)", early: true},
		"of another script":   {prewarmed: []string{"other.py"}, begun: []string{"self.py", "exit"}},
		"of another, earlier": {prewarmed: []string{"other.py"}, begun: []string{"self.py", "exit"}, does: blocks, early: true},
		"of a module":         {prewarmed: []string{"-m", "self", "other"}, begun: []string{"-m", "self", "exit", "7"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			block := filepath.Join(t.TempDir(), "block")
			change := func(p *pythonTask) { p.env["SLOWLIB_DOES"], p.env["BLOCK"] = test.does, block }
			begun := append(append([]string{}, flags...), test.begun...)
			want, end, known := ordinary(t, change, string(text), begun...)
			if known.Unsupported != "" { // what was known before the import did this
				harmless := func(p *pythonTask) { p.env["SLOWLIB_DOES"], p.env["BLOCK"] = blocks, block }
				_, _, known = ordinary(t, harmless, string(text), begun...)
			}

			p := newPythonContainer(t)
			change(p)
			script := filepath.Join(t.TempDir(), "self.py")
			for _, err := range []error{os.WriteFile(script, text, 0o644), os.WriteFile(block, nil, 0o644)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			files := []*proto.FileSpec{{Name: "self.py", Uri: script, Size: int64(len(text))}, {Name: "other.py", Uri: script, Size: int64(len(text))}}
			r := p.plan(known, append(append([]string{}, flags...), test.prewarmed...)...)
			task := assignment(func(a *proto.Assign) { a.Files, a.PrewarmPlan = files, r })
			p.send(&proto.Prewarm{Assign: task})
			if test.early {
				p.until("imports slowlib")
			} else if b := p.until("is ready"); b.WarmRssBytes == 0 {
				t.Error("its memory is not told")
			} else {
				hear(p.connected, (*proto.FromAgent).GetPrewarmed)
			}
			p.send(task)
			p.prepared()
			s := p.start(begun...)
			if test.early {
				p.until("had begun to import")
				if err := syscall.Kill(int(s.Pid), 0); err != nil {
					t.Errorf("the process of an attempt that imports: %v", err)
				}
			}
			if err := os.Remove(block); err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(name, "ready") {
				p.until("came from ") // which may be over by now
			}
			if e := p.exited(); e.Code != end.Code || e.Signal != end.Signal {
				t.Errorf("it ended by %v, not by %v:\n%s", e, end, p.output())
			}
			alike(t, want, p.portable())
		})
	}
}

// An attempt that is still importing is stopped like any other.
func TestAnAttemptThatImportsIsStopped(t *testing.T) {
	change := func(p *pythonTask) {
		p.env["SLOWLIB_DOES"] = "import time\nif os.environ['HOLDFAST_TEST'] != '0': time.sleep(1000)"
		p.env["HOLDFAST_TEST"] = "0"
	}
	script := "import slowlib\n" + holds
	_, _, known := ordinary(t, change, script, "self.py")
	p := newPythonContainer(t)
	change(p)
	p.env["HOLDFAST_TEST"] = "1"
	p.send(assignment(func(a *proto.Assign) { a.PrewarmPlan = p.plan(known, "self.py") }))
	p.prepared()
	p.until("imports slowlib")
	p.write("self.py", script)
	s := p.start("self.py")
	p.until("had begun to import")
	p.send(&proto.Stop{GraceMs: 60000})
	if e := p.exited(); !e.Stopped || e.Signal != int32(syscall.SIGTERM) {
		t.Errorf("stopped: %v", e)
	}
	if alive(int(s.Pid)) {
		t.Error("it lives on")
	}
}

// What does not bear it is told to the master, for other containers.
func TestARefusalIsTold(t *testing.T) {
	p := newPythonTask(t, nil)
	p.env["SLOWLIB_DOES"] = "import threading, time; threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()"
	p.write("train.py", "import slowlib\n"+holds)
	p.write("hold", "")
	p.start("train.py")
	for {
		if i := p.imported(); i.Unsupported != "" {
			if !strings.Contains(i.Unsupported, "threads") || len(i.SysPath) != 0 {
				t.Errorf("it tells %v", i)
			}
			return
		}
	}
}
