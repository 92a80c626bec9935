package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"holdfast/client"
	"holdfast/proto"
	"holdfast/test/pty"
)

// narrow runs a command to its end in a terminal of 80 columns, and returns the lines that it
// wrote, however long they are.
func narrow(t *testing.T, p place, args ...string) []string {
	t.Helper()
	x := pty.Start(t, p.command(args...), 80, 24)
	if code := x.Code(); code != 0 {
		t.Errorf("%q ended with %d: %q", args, code, x.Shown())
	}
	return x.Lines()
}

// fits says which of lines are wider than a terminal of 80 columns.
func fits(t *testing.T, what string, lines []string) {
	t.Helper()
	for _, l := range lines {
		if n := len([]rune(l)); n > 80 {
			t.Errorf("%s has a line of %d columns: %s", what, n, l)
		}
	}
}

// table returns the lines of a table, which begins with a title and ends before an empty line.
func table(t *testing.T, lines []string, title string) []string {
	t.Helper()
	from := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, title) })
	if from < 0 {
		t.Fatalf("there is no table of %s:\n%s", title, strings.Join(lines, "\n"))
	}
	rest := lines[from:]
	if to := slices.Index(rest, ""); to >= 0 {
		rest = rest[:to]
	}
	return rest
}

// TestTablesFitATerminal: of 80 columns, also with long names, and --wide cuts nothing.
func TestTablesFitATerminal(t *testing.T) {
	p := newPlace(t)
	const name = "a-job-that-somebody-has-given-a-name-that-does-not-fit-beside-the-rest"
	out, errs, code := p.call("run", "--local", "--worker", "2", "--name", name, "--restarts", "1", "--", "sh", "-c",
		`echo step 123456; [ {index} = 0 ] && touch "`+p.dir+`/told" && exec sleep 1000; until [ -e "`+p.dir+`/told" ]; do sleep 0.05; done; echo "ValueError: the batch has a shape that the model does not take, and which nobody has expected" >&2; exit 3`)
	if code != client.ExitFailed {
		t.Fatalf("run ended with %d: %s%s", code, out, errs)
	}
	list := narrow(t, p, "list", "--all")
	fits(t, "list --all", list)
	if len(list) != 4 || !strings.HasPrefix(list[0], "JOB") || !strings.HasPrefix(list[2], "  worker-1 ") || !strings.Contains(list[1], "failed") {
		t.Errorf("list does not say why the job failed:\n%s", strings.Join(list, "\n"))
	}
	if list := narrow(t, p, "list", "--all", "--wide"); !strings.Contains(list[1], name) || !strings.Contains(list[1], "ValueError: the batch has a shape") {
		t.Errorf("list --wide cuts something:\n%s", strings.Join(list, "\n"))
	}
	if out, _, _ := p.call("list"); strings.Count(out, "\n") != 2 || !strings.Contains(out, "  worker-1 ") || !strings.Contains(out, "ValueError: the batch") {
		t.Errorf("without a terminal, list says\n%s", out)
	}
	status := narrow(t, p, "status", name)
	for _, title := range []string{"TASK", "LOST AT"} {
		fits(t, "status", table(t, status, title))
	}
	if row := table(t, status, "TASK")[1]; !strings.Contains(row, "123456") {
		t.Errorf("status has no step in %s", row)
	}

	const long = "a-model-with-a-name-that-does-not-fit-beside-the-rest-of-what-is-told-of-it"
	for _, step := range []string{"7", "8", "9"} {
		copyFixtures(t, filepath.Join(p.dir, "ck"), map[string]string{
			"tfbundle/testdata/sharded.ckpt-1200.index": long + "-" + step + ".index",
		})
		for _, shard := range []string{"0", "1", "2", "3"} {
			data := ".data-0000" + shard + "-of-00004"
			copyFixtures(t, filepath.Join(p.dir, "ck"), map[string]string{"tfbundle/testdata/sharded.ckpt-1200" + data: long + "-" + step + data})
		}
	}
	ls := narrow(t, p, "ckpt", "ls", "./ck")
	fits(t, "ckpt ls", table(t, ls, "STEP"))
	if len(ls) != 5 || !strings.Contains(ls[4], "newest") {
		t.Errorf("ckpt ls says\n%s", strings.Join(ls, "\n"))
	}
	if ls := narrow(t, p, "ckpt", "ls", "./ck", "--wide"); !strings.Contains(ls[1], "WRITTEN BY") || !strings.Contains(ls[2], long) {
		t.Errorf("ckpt ls --wide says\n%s", strings.Join(ls, "\n"))
	}
	show := narrow(t, p, "ckpt", "show", "./ck", "8")
	fits(t, "ckpt show", table(t, show, "FILE"))
	fits(t, "ckpt show", table(t, show, "TENSOR"))
	if show := narrow(t, p, "ckpt", "show", "./ck", "8", "--wide"); !strings.Contains(strings.Join(show, "\n"), long+"-8.data-00003-of-00004") {
		t.Errorf("ckpt show --wide cuts something:\n%s", strings.Join(show, "\n"))
	}
	x := pty.Start(t, p.command("ckpt", "prune", "./ck", "--keep", "1"), 80, 24)
	x.See("[y/N]", 1)
	x.Press("n\n")
	x.Code()
	fits(t, "ckpt prune", x.Lines()[1:5]) // after the line with the directory
	if rows := x.Lines(); !strings.HasPrefix(rows[2], "remove ") || !strings.HasPrefix(rows[4], "keep ") {
		t.Errorf("ckpt prune says\n%s", strings.Join(rows, "\n"))
	}
}

// TestAJobThatWritesIsFollowed: in a terminal, what tasks write comes while they write it; a
// task's next attempt is told; Ctrl-C leaves the job alone, and its end ends the command.
func TestAJobThatWritesIsFollowed(t *testing.T) {
	p := newPlace(t)
	at := func(name string) string { return filepath.Join(p.dir, name) }
	id := p.detached("--worker", "2", "--name", "writer", "--restarts", "1", "--", "sh", "-c", `echo begins {attempt}
		until [ -e `+p.dir+`/go ]; do sleep 0.05; done; echo goes on {attempt}
		[ {task}{attempt} = worker-10 ] && exit 3
		until [ -e `+p.dir+`/end ]; do sleep 0.05; done; echo ends {attempt}`)
	x := inTerminal(t, p.command("logs", "writer", "--follow"))
	x.See("begins 0", 2)
	if strings.Contains(x.Shown(), "goes on") || strings.Contains(x.Shown(), "==>") {
		t.Errorf("before it is written, the terminal shows %q", x.Shown())
	}
	write(t, at("go"), "")
	x.See("goes on 0", 2)
	x.See("goes on 1", 1)
	x.Press("\x03")
	if code := x.Code(); code != client.ExitInterrupted {
		t.Errorf("logs that Ctrl-C ends ends with %d", code)
	}
	lines := x.Lines()
	heading := slices.Index(lines, "==> worker-1, attempt 1 <==")
	if heading < 0 || heading+1 >= len(lines) || lines[heading+1] != "[worker-1] begins 1" || strings.Count(x.Shown(), "==>") != 1 {
		t.Errorf("the attempts are not told apart:\n%s", strings.Join(lines, "\n"))
	}
	if s := p.status(id); s.State != proto.JobState_JOB_STATE_RUNNING {
		t.Errorf("after Ctrl-C the job is %s", s.State)
	}
	x = inTerminal(t, p.command("logs", "writer", "worker-0", "--follow"))
	x.See("goes on 0", 1)
	write(t, at("end"), "")
	x.See("ends 0", 1)
	if code := x.Code(); code != 0 {
		t.Errorf("logs of a job that has ended ends with %d", code)
	}
	if lines := x.Lines(); slices.Contains(lines, "[worker-0] ends 0") || !slices.Contains(lines, "ends 0") {
		t.Errorf("one task alone is followed as\n%s", strings.Join(lines, "\n"))
	}
	p.until(id, "its end", func(s *proto.JobStatus) bool { return s.State.Done() })
	if out, errs, code := p.call("logs", id, "worker-1", "--previous"); code != 0 || out != "begins 0\ngoes on 0\n" {
		t.Errorf("logs --previous ended with %d: %q, %s", code, out, errs)
	}
	if _, errs, code := p.call("logs", id, "worker-1", "--previous", "--attempt", "0"); code != client.ExitUsage {
		t.Errorf("logs of the previous and of a given attempt ended with %d: %s", code, errs)
	}
}

// TestRunShowsAttempts: run --logs in a terminal has what tasks write above its live lines, and
// says where a task's next attempt begins.
func TestRunShowsAttempts(t *testing.T) {
	p := newPlace(t)
	x := inTerminal(t, p.command("run", "--local", "--logs", "--worker", "1", "--restarts", "1", "--", "sh", "-c", "echo at work {attempt}; [ {attempt} = 1 ]"))
	if code := x.Code(); code != 0 {
		t.Errorf("run ended with %d", code)
	}
	lines := x.Lines()
	first, heading, second := slices.Index(lines, "[worker-0] at work 0"), slices.Index(lines, "==> worker-0, attempt 1 <=="), slices.Index(lines, "[worker-0] at work 1")
	if first < 0 || heading < first || second != heading+1 {
		t.Errorf("run --logs has shown\n%s", strings.Join(lines, "\n"))
	}
}

// TestBashCompletes: a bash that has loaded the script completes commands, jobs, their tasks, and
// the steps of checkpoints, with Tab, and without any package.
func TestBashCompletes(t *testing.T) {
	p := newPlace(t)
	program, err := filepath.Abs(p.program[0])
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(program, filepath.Join(bin, "yarn-submit")); err != nil {
		t.Fatal(err)
	}
	p.detached("--worker", "12", "--worker-memory", "64m", "--name", "talker", "--", "sleep", "1000")
	for _, step := range []string{"700", "800"} {
		copyFixtures(t, filepath.Join(p.dir, "ck"), map[string]string{
			"tfbundle/testdata/objects-24.index": "m-" + step + ".index", "tfbundle/testdata/objects-24.data-00000-of-00001": "m-" + step + ".data-00000-of-00001",
		})
	}
	shell := exec.Command("bash", "--norc", "--noprofile", "-i")
	shell.Dir = p.dir
	inputrc := filepath.Join(bin, "inputrc")
	write(t, inputrc, "set enable-bracketed-paste off\n")
	shell.Env = append(p.command().Env, "PATH="+bin+":"+os.Getenv("PATH"), "PS1=$ ", "HISTFILE=", "INPUTRC="+inputrc)
	x := pty.Start(t, shell, 100, 24)
	// lastLine waits until the line with the cursor is so.
	lastLine := func(want string) {
		t.Helper()
		want = strings.TrimRight("$ "+want, " ")
		x.Until(want, func() bool { lines := x.Screen(); return len(lines) > 0 && lines[len(lines)-1] == want })
	}
	lastLine("")
	x.Press("source <(yarn-submit completion bash) && echo loa''ded\n")
	x.See("loaded\r\n$ ", 1)
	for _, c := range []struct{ typed, want string }{
		{"yarn-submit descr\t", "yarn-submit describe "},
		{"yarn-submit logs talk\t", "yarn-submit logs talker "},
		{"yarn-submit describe talker worker-11\t", "yarn-submit describe talker worker-11 "},
		{"yarn-submit describe talker w\t", "yarn-submit describe talker worker-"},
		{"yarn-submit scale talker w\t", "yarn-submit scale talker worker="},
		{"yarn-submit ckpt show ./ck 7\t", "yarn-submit ckpt show ./ck 700 "},
		{"yarn-submit list --state run\t", "yarn-submit list --state running "},
		{"yarn-submit list --state=run\t", "yarn-submit list --state=running "},
		{"yarn-submit ckpt ls ./c\t", "yarn-submit ckpt ls ./ck/"},
	} {
		x.Press(c.typed)
		lastLine(c.want)
		x.Press("\x15") // erases it
		lastLine("")
	}
	x.Press("yarn-submit ckpt show ./ck \t\t")
	x.See("(complete)", 2)
	for _, want := range []string{"800", "700"} {
		if !slices.ContainsFunc(x.Screen(), func(l string) bool { return strings.Contains(l, want) && strings.Contains(l, "(complete)") }) {
			t.Errorf("the steps are completed as\n%s", strings.Join(x.Screen(), "\n"))
		}
	}
	_ = shell.Process.Signal(syscall.SIGKILL)
}

// TestTensorsArePlotted: show and diff say how the values of the only tensor that they select are
// spread, in 80 columns.
func TestTensorsArePlotted(t *testing.T) {
	p := newPlace(t)
	dir := filepath.Join(p.dir, "ck")
	copyFixtures(t, dir, map[string]string{
		"torchfile/testdata/train-40.pt": "step-40.pt",
	})
	copyFixtures(t, dir, map[string]string{"torchfile/testdata/train-40.pt": "step-41.pt"})
	show := narrow(t, p, "ckpt", "show", "./ck", "40", "--filter", "model.0.weight")
	fits(t, "ckpt show", table(t, show, "TENSOR"))
	text := strings.Join(show, "\n")
	cat := strings.Join(narrow(t, p, "ckpt", "cat", "./ck", "40", "model.0.weight"), "\n")
	if !strings.Contains(cat, "#") || !strings.HasSuffix(text, cat) {
		t.Errorf("show of one tensor says\n%s\nand cat\n%s", text, cat)
	}
	if text := strings.Join(narrow(t, p, "ckpt", "show", "./ck", "40", "--filter", "weight"), "\n"); strings.Contains(text, "#") {
		t.Errorf("show of several tensors says\n%s", text)
	}
	diff := narrow(t, p, "ckpt", "diff", "./ck", "40", "41", "--filter", "model.0.weight")
	fits(t, "ckpt diff", diff)
	text = strings.Join(diff, "\n")
	contains(t, text, "the tensor is the same", "step-40.pt", "step-41.pt")
	rows := 0
	for _, l := range diff {
		if fields := strings.Fields(l); len(fields) == 5 && strings.HasPrefix(fields[1], "#") && fields[1] == fields[3] && fields[2] == fields[4] {
			rows++
		}
	}
	if rows < 5 {
		t.Errorf("the histograms of the same tensor are\n%s", text)
	}
	for _, args := range [][]string{
		{"ckpt", "diff", "./ck", "40", "41", "--filter", "none"},
		{"ckpt", "show", "./ck", "40", "--filter", "none"},
		{"ckpt", "show", "./ck", "40", "--filter", "none", "-o", "json"},
	} {
		if _, errs, code := p.call(args...); code != client.ExitUsage || !strings.Contains(errs, "no tensor is like") {
			t.Errorf("%v ended with %d: %s", args, code, errs)
		}
	}
}
