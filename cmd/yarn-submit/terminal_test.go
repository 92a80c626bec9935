package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/client"
	"holdfast/proto"
	"holdfast/test/pty"
)

// inTerminal runs a command in a terminal of 100 columns.
func inTerminal(t *testing.T, cmd *exec.Cmd) *pty.Terminal {
	t.Helper()
	return pty.Start(t, cmd, 100, 24)
}

func jobIn(t *testing.T, x *pty.Terminal) string {
	t.Helper()
	x.See("started local-", 1)
	_, rest, _ := strings.Cut(x.Shown(), "started ")
	x.See("worker 1/1", 1) // the live line
	return strings.Fields(rest)[0]
}

const question = "leave it running"

// Ctrl-C in a terminal asks; the job goes on meanwhile and when it is left.
func TestCtrlCAsks(t *testing.T) {
	p := newPlace(t)
	x := inTerminal(t, p.command("run", "--local", "--worker", "1", "--", "sleep", "1000"))
	id := jobIn(t, x)
	x.Press("\x03")
	x.See(question, 1)
	x.See("k, or Ctrl-C again", 1)
	x.Press("what\n")
	x.See(`"what" is none of k, l and g`, 1)
	x.See(question, 2)
	x.Press("g\n")
	x.See("worker 1/1", strings.Count(x.Shown(), "worker 1/1")+1) // it goes on
	x.Press("\x03")
	x.See(question, 3)
	x.Press("l\n")
	if code := x.Code(); code != client.ExitInterrupted {
		t.Errorf("run ended with %d", code)
	}
	x.See("yarn-submit kill "+id, 1)
	if s := p.status(id); s.State != proto.JobState_JOB_STATE_RUNNING {
		t.Errorf("the job that was left is %s", s.State)
	}
	if _, errs, code := p.call("kill", id); code != 0 {
		t.Errorf("kill ended with %d: %s", code, errs)
	}
	alone(t, id)
}

func TestSecondCtrlCKills(t *testing.T) {
	p := newPlace(t)
	x := inTerminal(t, p.command("run", "--local", "--worker", "1", "--", "sleep", "1000"))
	id := jobIn(t, x)
	x.Press("\x03")
	x.See(question, 1)
	x.Press("\x03")
	if code := x.Code(); code != client.ExitInterrupted {
		t.Errorf("run ended with %d", code)
	}
	if s := p.status(id); s.State != proto.JobState_JOB_STATE_KILLED {
		t.Errorf("the job is %s", s.State)
	}
	alone(t, id)
}

// TestCheckpointCommandsOnATerminal: what takes long shows how far it is, and
// what changes something asks first.
func TestCheckpointCommandsOnATerminal(t *testing.T) {
	p := newPlace(t)
	names := map[string]string{}
	for _, step := range []string{"7", "8", "9"} {
		copyFixtures(t, filepath.Join(p.dir, "ck"), map[string]string{
			"tfbundle/testdata/objects-24.index": "m-" + step + ".index", "tfbundle/testdata/objects-24.data-00000-of-00001": "m-" + step + ".data-00000-of-00001",
		})
		names[step] = filepath.Join(p.dir, "ck", "m-"+step+".index")
	}
	write(t, filepath.Join(p.dir, "ck", "checkpoint"), "model_checkpoint_path: \"m-9\"\n")
	x := inTerminal(t, p.command("ckpt", "verify", "./ck", "7"))
	if code := x.Code(); code != 0 {
		t.Errorf("verify ended with %d", code)
	}
	x.See("m-7 [####", 1)
	x.See("read all ", 1)

	x = inTerminal(t, p.command("ckpt", "rollback", "./ck", "8"))
	x.See("stays  9", 1)
	x.See("[y/N]", 1)
	x.Press("y\n")
	if code := x.Code(); code != 0 {
		t.Errorf("rollback ended with %d", code)
	}
	if text, err := os.ReadFile(filepath.Join(p.dir, "ck", "checkpoint")); err != nil || !strings.Contains(string(text), "m-8") {
		t.Errorf("after the rollback: %s, %v", text, err)
	}

	there := func() string {
		got := ""
		for _, step := range []string{"7", "8", "9"} {
			if _, err := os.Stat(names[step]); err == nil {
				got += step
			}
		}
		return got
	}
	for _, answer := range []struct{ keys, want string }{{"\n", "789"}, {"y\n", "89"}} {
		x = inTerminal(t, p.command("ckpt", "prune", "./ck", "--keep", "1"))
		x.See("Remove 1 checkpoint? [y/N]", 1)
		x.Press(answer.keys)
		if code := x.Code(); code != 0 || there() != answer.want {
			t.Errorf("prune, answered %q, ended with %d; left are %s, want %s", answer.keys, code, there(), answer.want)
		}
	}
	_, errs, code := p.call("ckpt", "rollback", "./ck", "9")
	if code != client.ExitUsage || !strings.Contains(errs, "--yes") {
		t.Errorf("rollback without a terminal ended with %d: %s", code, errs)
	}
}

// Whatever tasks write and files are called, a terminal shows it and does nothing else.
func TestNamesAndOutputDoNotSteerTheTerminal(t *testing.T) {
	p := newPlace(t)
	const evil = "\x1b]0;owned\x07\u009b2J"
	out, errs, code := p.call("run", "--local", "--worker", "1", "--name", "n"+evil, "--checkpoint", "./logs=ck", "--restarts", "0", "--", "sh", "-c",
		`mkdir logs/step-5; echo {} > "logs/step-5/`+evil+`.json"; touch logs/step-5/COMMITTED; mkdir "logs/step-6"; echo {} > "logs/step-6/`+evil+`"; echo "`+evil+`" >&2; exit 1`)
	if code != client.ExitFailed {
		t.Fatalf("run ended with %d:\n%s%s", code, out, errs)
	}
	clean := func(what, text string) {
		t.Helper()
		if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && (r < 0x20 || r >= 0x7f && r < 0xa0) }); i >= 0 {
			t.Errorf("%s steers the terminal: %q", what, text[i:min(len(text), i+80)])
		}
	}
	clean("run", out+errs)
	jobs, err := filepath.Glob(filepath.Join(p.home, "jobs", "*", "logs"))
	if err != nil || len(jobs) != 1 {
		t.Fatal(jobs, err)
	}
	dir := filepath.Join(jobs[0], "x"+evil+"-0")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "0.log"), []byte("text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	id := filepath.Base(filepath.Dir(jobs[0]))
	for _, args := range [][]string{
		{"status", id}, {"status", id, "--output", "json"}, {"list"}, {"ckpt", "ls", "./ck"}, {"ckpt", "show", "./ck"},
		{"ckpt", "ls", "./ck", "--output", "json"}, {"ckpt", "show", "./ck", "--output", "json"},
		{"ckpt", "ls", "./" + evil}, {"status", evil}, {evil}, {"logs", id, "y" + evil},
	} {
		out, errs, _ := p.call(args...)
		clean(fmt.Sprint(args), out+errs)
	}
	out, _, _ = p.call("logs", id)
	for _, l := range strings.Split(out, "\n") {
		if strings.HasPrefix(l, "==>") {
			clean("a heading of logs", l)
		}
	}
	if !strings.Contains(out, evil) {
		t.Errorf("what the task wrote is not as it wrote it: %q", out)
	}
}
