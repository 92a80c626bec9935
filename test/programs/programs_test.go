package programs

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
		if p.Step.NumSubexp() != 1 || len(p.Packages) == 0 || p.Victim == "" || p.Format == "" {
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
