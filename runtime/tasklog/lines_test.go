package tasklog_test

import (
	"testing"

	"holdfast/runtime/tasklog"
)

// TestLines: what a program says last, and where it stands.
func TestLines(t *testing.T) {
	dump := []string{
		"step 1", "\x1b]0;title\x07terminate called", "", "Fatal Python error: Aborted", "",
		"Thread 0x00007f0000000001 (most recent call first):", `  File "t.py", line 1 in beside`,
		"", "Current thread 0x00007f0000000002 (most recent call first):", `  File "t.py", line 9 in wait`, `  File "t.py", line 12 in <module>`, "bye",
	}
	if line := tasklog.LastLine(dump); line != "terminate called" {
		t.Errorf("the last line is %q", line)
	}
	for _, notice := range []string{"Aborted", "Aborted (core dumped)", "train.sh: line 3: 18677 Aborted                 (core dumped) python train.py", "bash: 7 Aborted                 python3 -c x"} {
		if line := tasklog.LastLine([]string{"terminate called", notice}); line != "terminate called" {
			t.Errorf("before what a shell writes, the last line is %q", line)
		}
	}
	if stack := tasklog.Stack(dump); len(stack) != 3 || stack[1] != `  File "t.py", line 9 in wait` {
		t.Errorf("the stack is %q", stack)
	}
	if stack := tasklog.Stack(dump[:3]); stack != nil {
		t.Errorf("the stack is %q", stack)
	}
}
