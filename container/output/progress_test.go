package output

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/runtime/tasklog"
	"holdfast/test/bound"
)

// TestProgressFile: its last line tells of the step, whatever way it came there, and what is
// none leaves the step as it is.
func TestProgressFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "progress")
	p := NewProgressFile(path, tasklog.NewStepFinder(tasklog.DefaultSteps))
	now := time.Unix(0, 0)
	look := func(content, scalars string, step, total, reports int64) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
		p.Look(now)
		var found []string
		for _, s := range p.TakeScalars() {
			found = append(found, s.Name)
		}
		if m := p.Made(); m.Step != step || m.Reports != reports || p.TotalSteps() != total || strings.Join(found, " ") != scalars {
			t.Errorf("%.60q tells of %+v of %d and %q; want %d of %d, told %d times, and %q", content, m, p.TotalSteps(), found, step, total, reports, scalars)
		}
	}
	p.Look(now) // there is none yet
	look("", "", 0, 0, 0)
	look(`{"step": 12, "total": 500, "loss": 0.5, "tokens": 3, "name": "x"}`, "loss", 12, 500, 1)
	if at := p.Made().At; !at.Equal(now) {
		t.Errorf("the step is of %s, want %s", at, now)
	}
	look(`{"step": 12, "total": 500, "loss": 0.5, "tokens": 3, "name": "x"}`, "", 12, 500, 1) // nothing new
	looked := now
	for i, written := range []time.Duration{500 * time.Millisecond, -time.Hour} { // the latter as of a file that was copied
		content := fmt.Sprintf(`{"step": %d}`, 100+i)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, looked.Add(written)); err != nil {
			t.Fatal(err)
		}
		p.Look(looked.Add(time.Second))
		want := looked.Add(max(0, written))
		if at := p.Made().At; !at.Equal(want) {
			t.Errorf("the step of a file that was written %s after it was looked at is of %s, want %s", written, at, want)
		}
		looked = looked.Add(time.Second)
	}
	now = looked
	look(`{"step":13,"loss":NaN}`, "loss", 13, 0, 4)
	look("step 14/500\nstep 20/500 loss: 0.25\n", "loss", 20, 500, 5)
	look("{\"step\": 1}\n{\"step\": 21}\n\n", "", 21, 0, 6)
	for _, none := range []string{`{"step": -1}`, `{"step": 1.5}`, `{"step": "22"}`, `{"loss": 0.5}`, `{"step": 2`, "begins", `[22]`, `{"step": 1e300}`, `{"step": 9999999999999}`} {
		look(none, "", 21, 0, 6)
	}
	look(strings.Repeat("step 1\n", 10_000)+"step 22\n", "", 22, 0, 7)
	other := filepath.Join(filepath.Dir(path), "other")
	if err := os.WriteFile(other, []byte(`{"step": 23}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	if p.Look(now); p.Made().Step != 23 {
		t.Errorf("a file in its place tells of step %d, want 23", p.Made().Step)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	p.Look(now) // does not wait
	service := NewProgressFile(other, tasklog.NewStepFinder(""))
	if err := os.WriteFile(other, []byte(`{"step": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if service.Look(now); service.Made().Reports != 0 {
		t.Error("a task that serves has made a step")
	}
}

func FuzzProgressFile(f *testing.F) {
	f.Add([]byte(`{"step": 12, "total": 500, "loss": 0.5}`))
	f.Add([]byte("step 12/500 loss 0.5"))
	f.Fuzz(func(t *testing.T, line []byte) {
		p := NewProgressFile("", tasklog.NewStepFinder(tasklog.DefaultSteps))
		end := bound.Memory(t, len(line), 200)
		p.take(line, time.Now())
		end()
		if m := p.Made(); m.Step < 0 || p.TotalSteps() < 0 || len(p.TakeScalars()) > tasklog.MaxScalars {
			t.Errorf("%q tells of step %d of %d", line, m.Step, p.TotalSteps())
		}
	})
}
