package yarn

import (
	"testing"
	"time"

	"holdfast/am/core/action"
)

// TestAsksAreToldAfterTheirPause: and not at all if they were taken back.
func TestAsksAreToldAfterTheirPause(t *testing.T) {
	s, begin := newState(), time.Now()
	at := func(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }
	s.ask(action.Ask{Request: "a/1", MemoryMB: 1024, Pause: 5 * time.Second}, begin)
	s.ask(action.Ask{Request: "b/1", MemoryMB: 1024, Pause: 3 * time.Second}, begin)
	s.ask(action.Ask{Request: "c/1", MemoryMB: 1024, Pause: 4 * time.Second}, begin)
	s.withdraw("c/1")
	for _, step := range []struct {
		now, next float64 // seconds; next: 0: there is none
		told      int
	}{{2.9, 3, 0}, {3, 5, 1}, {4, 5, 1}, {5, 0, 2}} {
		next := s.wake(at(step.now))
		if told := len(s.table.pending()); told != step.told {
			t.Errorf("after %v s, %d asks are told; want %d", step.now, told, step.told)
		}
		if want := at(step.next); step.next == 0 && !next.IsZero() || step.next != 0 && !next.Equal(want) {
			t.Errorf("after %v s, the next is due at %v; want %v", step.now, next, want)
		}
	}
}
