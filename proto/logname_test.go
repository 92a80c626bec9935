package proto

import (
	"fmt"
	"testing"
)

// An attempt of several processes has several logs.
func TestLogsOfAttempts(t *testing.T) {
	for name, want := range map[string]string{"0.log": "0 0 true", "12.log": "12 0 true", "1.3.log": "1 3 true", "agent.log": "0 0 false", "1.x.log": "1 0 false", "1": "1 0 false"} {
		if attempt, process, ok := ParseLogName(name); fmt.Sprint(attempt, process, ok) != want {
			t.Errorf("%s is of attempt %d, process %d, %v; want %s", name, attempt, process, ok, want)
		} else if ok && LogName(attempt, process) != name {
			t.Errorf("attempt %d, process %d has the log %s; want %s", attempt, process, LogName(attempt, process), name)
		}
	}
}
