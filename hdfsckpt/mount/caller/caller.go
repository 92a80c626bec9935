// Package caller looks at the processes that send requests to a FUSE file system, in /proc:
// whether a close(2) is one of theirs or that of the kernel as they end, and whether they
// have a file open.
package caller

import (
	"syscall"

	"holdfast/internal/proc"
)

// Flags of a task, from include/linux/sched.h.
const (
	pfExiting  = 0x4
	pfSignaled = 0x400
)

// Caller describes the thread that sent a request.
type Caller struct {
	Group   int  // its process (thread group); 0 if not known
	Exiting bool // its descriptors are being closed by exit, not by close(2)
	Killed  bool // it is ending, or about to, by a signal
	Status  int  // its exit status, if it exits by itself
}

// Of looks up a thread. A caller in a pid namespace that is not visible from here
// has number 0, and one that has ended is not found: both are unknown, and count as alive.
func Of(pid uint32) Caller {
	if pid == 0 {
		return Caller{}
	}
	stat, err := proc.ReadStat(int(pid))
	if err != nil {
		return Caller{}
	}
	status, err := proc.ReadStatus(int(pid))
	if err != nil {
		return Caller{}
	}
	c := newCaller(stat, status)
	// The exit code reads as 0 without permission to trace the process. Then only a
	// pending SIGKILL indicates a kill. exit_group(2) ends the other threads in the
	// same way, so an exit may be mistaken for a kill, which loses less than the
	// opposite.
	if !c.Killed && c.Status == 0 && sigkillPending(stat, status) {
		c.Killed = !proc.Traceable(int(pid))
	}
	return c
}

// GroupOf returns the process that a thread belongs to; 0 if unknown.
func GroupOf(pid uint32) int {
	if pid == 0 {
		return 0
	}
	status, _ := proc.ReadStatus(int(pid))
	return status.ThreadGroup()
}

// newCaller reads a thread's state; a process that ends by a signal or by
// exit_group(2) has its exit code from then on.
func newCaller(stat proc.Stat, status proc.Fields) Caller {
	signal := syscall.Signal(stat.ExitCode & 0x7f)
	return Caller{
		Group:   status.ThreadGroup(),
		Exiting: stat.Flags&pfExiting != 0,
		Killed:  signal != 0 && !stops(signal),
		Status:  stat.ExitCode >> 8 & 0xff,
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
