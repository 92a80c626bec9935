package mount

import (
	"syscall"

	"holdfast/internal/proc"
)

// Flags of a task, from include/linux/sched.h.
const (
	pfExiting  = 0x4
	pfSignaled = 0x400
)

// caller describes the thread that sent a request.
type caller struct {
	group   int  // its process (thread group); 0 if not known
	exiting bool // its descriptors are being closed by exit, not by close(2)
	killed  bool // it is ending, or about to, by a signal
	status  int  // its exit status, if it exits by itself
}

// callerOf looks up a thread. A caller in a pid namespace that is not visible from here
// has number 0, and one that has ended is not found: both are unknown, and count as alive.
func callerOf(pid uint32) caller {
	if pid == 0 {
		return caller{}
	}
	stat, err := proc.ReadStat(int(pid))
	if err != nil {
		return caller{}
	}
	status, err := proc.ReadStatus(int(pid))
	if err != nil {
		return caller{}
	}
	c := newCaller(stat, status)
	// The exit code reads as 0 without permission to trace the process. Then only a
	// pending SIGKILL indicates a kill. exit_group(2) ends the other threads in the
	// same way, so an exit may be mistaken for a kill, which loses less than the
	// opposite.
	if !c.killed && c.status == 0 && sigkillPending(stat, status) {
		c.killed = !proc.Traceable(int(pid))
	}
	return c
}

// groupOf returns the process that a thread belongs to; 0 if unknown.
func groupOf(pid uint32) int {
	if pid == 0 {
		return 0
	}
	status, _ := proc.ReadStatus(int(pid))
	return status.ThreadGroup()
}

// newCaller reads a thread's state; a process that ends by a signal or by
// exit_group(2) has its exit code from then on.
func newCaller(stat proc.Stat, status proc.Fields) caller {
	signal := syscall.Signal(stat.ExitCode & 0x7f)
	return caller{
		group:   status.ThreadGroup(),
		exiting: stat.Flags&pfExiting != 0,
		killed:  signal != 0 && !stops(signal),
		status:  stat.ExitCode >> 8 & 0xff,
	}
}

// stops reports whether a signal stops a process: the exit code holds such a signal
// while the process is stopped.
func stops(signal syscall.Signal) bool {
	switch signal {
	case syscall.SIGSTOP, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU:
		return true
	}
	return false
}

func sigkillPending(stat proc.Stat, status proc.Fields) bool {
	return stat.Flags&pfSignaled != 0 || status.HasSignal("SigPnd", syscall.SIGKILL) || status.HasSignal("ShdPnd", syscall.SIGKILL)
}
