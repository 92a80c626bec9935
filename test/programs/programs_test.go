package programs

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/proto"
)

// TestRows: each program can be told from the others, and what it needs is there.
func TestRows(t *testing.T) {
	chosen, _ := Select(nil)
	var names []string
	for _, p := range chosen {
		if slices.Contains(names, p.Name) {
			t.Errorf("there are two %s", p.Name)
		}
		names = append(names, p.Name)
		for _, f := range p.Files {
			if _, err := os.Stat(filepath.Join("../../examples", f)); err != nil {
				t.Errorf("%s: %v", p.Name, err)
			}
		}
		if p.Step.NumSubexp() != 1 || len(p.Packages) == 0 || p.Victim == "" || p.Format == "" || p.last() == 0 {
			t.Errorf("%s is not described in full: %+v", p.Name, p)
		}
	}
	if some, unknown := Select([]string{names[0], "no-such"}); len(some) != 1 || !slices.Equal(unknown, []string{"no-such"}) {
		t.Errorf("selected %d, unknown %q", len(some), unknown)
	}
}

func TestArguments(t *testing.T) {
	p := Program{Name: "p", Files: []string{"a/x.py"}, Flags: []string{"--worker", "2"}, Command: []string{"bin/torchrun", "python", "x.py"}, Path: "./logs"}
	got := strings.Join(p.arguments("/venv/bin/python", "/ex", "hdfs:///s"), " ")
	want := "--name p --env OMP_NUM_THREADS=1 --checkpoint ./logs=hdfs:///s --worker 2 --files /ex/a/x.py -- /venv/bin/torchrun /venv/bin/python x.py"
	if got != want {
		t.Errorf("arguments %q, want %q", got, want)
	}
}

// TestTheEnd: a job that succeeds early, or of whose steps little is known, is not well.
func TestTheEnd(t *testing.T) {
	p := Program{Command: []string{"python", "x.py", "--steps", "300"}}
	for _, c := range []struct {
		told, known int64
		ended, is   string // the cells
	}{
		{300, 300, "yes", "yes"},
		{280, 300, "yes", "yes"},
		{80, 300, "NO", "yes"},
		{300, 80, "yes", "NO"},
		{0, 0, "NO", "NO"},
	} {
		j := &job{p: p, steps: []mark{{step: c.told}}}
		r := &Result{Program: p}
		j.judgeSteps(&proto.JobStatus{Step: c.known}, r)
		if ended, is := r.cells[toTheEnd].String(), r.cells[stepsKnown].String(); ended != c.ended || is != c.is {
			t.Errorf("told of step %d, status has step %d: to the end %s, steps known %s", c.told, c.known, ended, is)
		}
	}
}

// TestWhatIsNotLost: a loss that was none has no time in the table.
func TestWhatIsNotLost(t *testing.T) {
	before := &proto.TaskStatus{Task: "worker-0", Attempt: 1, Container: "c1"}
	for _, c := range []struct {
		attempt         int32
		container       string
		process, others bool // it shows that a process was lost, or what has it
	}{
		{1, "c1", false, false},
		{2, "c1", true, false},
		{2, "c2", true, true},
		{1, "c2", false, false},
	} {
		for _, l := range losses {
			err := l.struck(before, &proto.TaskStatus{Task: "worker-0", Attempt: c.attempt, Container: c.container})
			if want := l.column == processKilled && c.process || c.others; (err == nil) != want {
				t.Errorf("%s, attempt %d in %s: %v", columns[l.column], c.attempt, c.container, err)
			}
		}
	}
}

// TestPrint: a cell that failed says NO in the table, and why below it.
func TestPrint(t *testing.T) {
	r := Result{Program: Program{Name: "p"}, Versions: "torch 1"}
	r.pass(processKilled, "1.5 s")
	r.pass(continues, "yes")
	r.fail(continues, errors.New("it began anew"))
	r.pass(continues, "yes")
	var out bytes.Buffer
	if err := Print(&out, []Result{r}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || strings.Join(strings.Fields(lines[1]), " ") != "p torch 1 - 1.5 s - - - NO -" || lines[2] != "p, continues from the last: it began anew" {
		t.Errorf("the table is\n%s", out.String())
	}
}
