package am

import (
	"strings"
	"testing"
	"time"
)

func TestWatch(t *testing.T) {
	w := newWatch(0)
	may := func(task string) bool { return task != "worker-2" } // which is done
	now := time.Unix(1000, 0)
	run := func(seconds, each int, tasks ...string) {
		for i := range seconds {
			now = now.Add(time.Second)
			for _, task := range tasks {
				if i%each == 0 {
					w.heard(now, task, w.steps[task]+5)
				}
			}
			if text := w.look(now, may); text != "" && i > 0 {
				t.Fatalf("after %d s: %s", i, text)
			}
		}
	}
	silence := func(d time.Duration) string {
		now = now.Add(d)
		return w.look(now, may)
	}
	if text := silence(time.Hour); text != "" {
		t.Errorf("before the first step: %s", text)
	}
	w.heard(now, "worker-2", 5)
	run(100, 2, "worker-0", "worker-1")
	if w.rate < 2 || w.rate > 3 {
		t.Errorf("%.2f steps a second", w.rate)
	}
	run(10, 2, "worker-1")
	if text := silence(stallLeast - time.Second); text != "" {
		t.Errorf("while it may be evaluating: %s", text)
	}
	if text := silence(2 * time.Second); !strings.Contains(text, "worker-0") || !strings.Contains(text, "2m") {
		t.Errorf("a stall: %q", text)
	}
	if text := silence(time.Minute); text != "" {
		t.Errorf("it is told twice: %s", text)
	}
	w.heard(now, "worker-1", 10000)
	if text := w.look(now, may); !strings.Contains(text, "again") {
		t.Errorf("its end: %q", text)
	}
	// A pause of two minutes is known now.
	if text := silence(10 * time.Minute); text != "" {
		t.Errorf("a pause that is usual: %s", text)
	}
	w.interrupted()
	if text := silence(24 * time.Hour); text != "" {
		t.Errorf("while a task is down: %s", text)
	}
}

// TestCulprit: whom to restart, and when to leave all as it is.
func TestCulprit(t *testing.T) {
	all := func(string) bool { return true }
	now := time.Unix(1000, 0)
	w := newWatch(5 * time.Minute)
	w.uninterrupted(now)
	passes := func(d time.Duration, want string, wantAll bool) {
		t.Helper()
		now = now.Add(d)
		if task, all := w.culprit(now, all); task != want || all != wantAll {
			t.Errorf("%v later: %q, all %v; want %q, %v", d, task, all, want, wantAll)
		}
	}
	step := func(d time.Duration, tasks ...string) {
		t.Helper()
		passes(d, "", false)
		for _, task := range tasks {
			w.heard(now, task, w.steps[task]+1)
		}
	}
	passes(time.Hour, "", false) // before the first step
	for range 5 {
		step(4*time.Minute, "worker-0", "worker-1") // while it compiles
	}
	for range 2 * pauseMemory {
		step(time.Second, "worker-0", "worker-1")
	}
	step(4*time.Minute, "worker-0", "worker-1") // an evaluation
	passes(39*time.Minute, "", false)           // the next may take longer
	step(0, "worker-1")
	for range 2 * pauseMemory {
		step(time.Second, "worker-1")
	}
	passes(4*time.Minute, "", false)
	w.saved(now)
	passes(4*time.Minute, "", false) // saving is no stall
	passes(2*time.Minute, "worker-0", false)
	w.interrupted() // it is stopped, and starts again
	passes(time.Hour, "", false)
	w.uninterrupted(now)
	passes(time.Minute, "", false)
	passes(24*time.Hour, "worker-0", true) // that has not helped
	w.interrupted()
	w.uninterrupted(now)
	passes(24*time.Hour, "", false) // nor has that; nothing more is tried
	step(0, "worker-0", "worker-1")
	step(time.Second, "worker-0", "worker-1")
	passes(24*time.Hour, "worker-0", false) // a new stall, after steps
}
