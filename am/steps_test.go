package am

import (
	"strings"
	"testing"
	"time"
)

func TestWatch(t *testing.T) {
	w := newWatch()
	now := time.Unix(1000, 0)
	run := func(seconds, each int, tasks ...string) {
		for i := range seconds {
			now = now.Add(time.Second)
			for _, task := range tasks {
				if i%each == 0 {
					w.heard(now, task, w.steps[task]+5)
				}
			}
			if text := w.look(now); text != "" && i > 0 {
				t.Fatalf("after %d s: %s", i, text)
			}
		}
	}
	silence := func(d time.Duration) string {
		now = now.Add(d)
		return w.look(now)
	}
	if text := silence(time.Hour); text != "" {
		t.Errorf("before the first step: %s", text)
	}
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
	if text := w.look(now); !strings.Contains(text, "again") {
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
