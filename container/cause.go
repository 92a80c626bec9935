package container

import (
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"holdfast/internal/proc"
	"holdfast/proto"
	"holdfast/runtime"
	"holdfast/runtime/tasklog"
)

// stackTime is how long processes may take to print their stacks before they are stopped.
const stackTime = 500 * time.Millisecond

// askForStacks sends SIGQUIT to those processes that print their stacks on it (Python with
// the shim, Java). It reports whether there are any.
func askForStacks(processes []int) bool {
	asked := false
	for _, pid := range processes {
		if catches(pid, syscall.SIGQUIT) {
			asked = syscall.Kill(pid, syscall.SIGQUIT) == nil || asked
		}
	}
	return asked
}

// catches reports whether a process has a handler for a signal.
func catches(pid int, signal syscall.Signal) bool {
	status, err := proc.ReadStatus(pid)
	return err == nil && status.HasSignal("SigCgt", signal)
}

const errorFileMost = 1 << 20 // bytes of it that are read

// crashes are the signals by which a program ends for what it did itself, of which its output
// may tell. Others come from outside.
var crashes = []syscall.Signal{
	syscall.SIGILL, syscall.SIGTRAP, syscall.SIGABRT, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGSEGV, syscall.SIGSYS,
}

// endedBy returns the signal that ended a process, or the program of a shell; 0: none.
func endedBy(e *proto.Exited) syscall.Signal {
	if e.Signal != 0 {
		return syscall.Signal(e.Signal)
	}
	return syscall.Signal(proto.ShellSignal(int(e.Code)))
}

// explain adds to an exit the error that caused it, from what the process has written.
func (p *process) explain(e *proto.Exited, framework string, heard []string) {
	if framework == "" || e.Code == 0 && e.Signal == 0 {
		return
	}
	v := runtime.Explain(heard)
	if at, text := p.frameworkError(); text != "" {
		v = runtime.Explain(strings.Split(text, "\n"))
		e.AtUnixMs = at
	}
	switch signal := endedBy(e); {
	case signal == 0 || slices.Contains(crashes, signal):
		e.PeerLost, e.Advice, e.Error = v.PeerLost, v.Advice, v.Error
		if signal == syscall.SIGABRT && e.Error == "" {
			e.Error = tasklog.LastLine(heard)
		}
	case e.Stopped && !v.PeerLost: // it may have failed before that
		e.Error = v.Error
	}
}

// frameworkError returns what the framework wrote about the process's end, and when, in
// milliseconds since 1970; "" if it wrote nothing.
func (p *process) frameworkError() (atMS int64, text string) {
	if p.errorFormat == nil {
		return 0, ""
	}
	f, err := os.Open(p.errorFile)
	if err != nil {
		return 0, ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, errorFileMost))
	if err != nil {
		return 0, ""
	}
	return p.errorFormat.Read(b)
}
