package proctree

import (
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestWork: a process is at work that computes or is stopped, and not one that waits.
func TestWork(t *testing.T) {
	for name, c := range map[string]struct {
		command string
		stopped bool
		works   bool
	}{
		"it computes":   {"while :; do :; done", false, true},
		"it is stopped": {"sleep 100", true, true},
		"it waits":      {"sleep 100", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("sh", "-c", "exec 2>/dev/null; "+c.command)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Wait()
			defer cmd.Process.Kill()
			if c.stopped {
				if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
			}
			var w Work
			w.Of([]int{cmd.Process.Pid})
			done := make(chan struct{})
			defer close(done)
			go w.Watch(done)
			for deadline := time.Now().Add(time.Minute); ; {
				looks, works := w.Counts()
				if share := float64(works) / float64(max(looks, 1)); looks > 20 {
					if c.works != (share > 0.8) || c.works == (share < 0.2) {
						t.Errorf("at work %d of %d times", works, looks)
					}
					return
				}
				if time.Now().After(deadline) {
					t.Fatal("it was not looked at")
				}
				<-time.After(10 * time.Millisecond)
			}
		})
	}
}
