package joblogs_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"holdfast/test/joblogs"
)

// TestFollow: lines are seen when they are finished, also those of a bar, of files that
// come later and of those that are gone from their directory.
func TestFollow(t *testing.T) {
	dir := t.TempDir()
	lines := make(chan joblogs.Line, 10)
	f := joblogs.Follow(filepath.Join(dir, "*", "*.log"), func(l joblogs.Line) { lines <- l })
	defer f.Stop()
	var got []string
	next := func(n int) {
		t.Helper()
		for range n {
			select {
			case l := <-lines:
				got = append(got, l.Task+": "+l.Text)
			case <-time.After(time.Minute):
				t.Fatalf("only %q", got)
			}
		}
	}
	container := filepath.Join(dir, "c1")
	if err := os.Mkdir(container, 0o755); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(container, "worker-0.0.log")
	open, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	write := func(text string) {
		t.Helper()
		if _, err := open.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(container, "agent.log"), []byte("not a task's\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	write("step 1\nste")
	next(1)
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	write("p 2\n1/2\r2/2\r\n")
	next(4)
	want := []string{"worker-0: step 1", "worker-0: step 2", "worker-0: 1/2", "worker-0: 2/2", "worker-0: "}
	if !slices.Equal(got, want) {
		t.Errorf("lines %q, want %q", got, want)
	}
}

// TestTheLastLines: what is there when following is stopped is seen.
func TestTheLastLines(t *testing.T) {
	name := filepath.Join(t.TempDir(), "worker-0.0.log")
	if err := os.WriteFile(name, []byte("step 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 10)
	f := joblogs.Follow(name, func(l joblogs.Line) { lines <- l.Text })
	first := <-lines
	if err := os.WriteFile(name, []byte("step 1\nfinal step 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.Stop()
	close(lines)
	if last, more := <-lines; first != "step 1" || !more || last != "final step 2" {
		t.Errorf("lines %q, %q", first, last)
	}
}
