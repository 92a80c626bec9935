package yarn

import (
	"strings"

	"holdfast/am"
	hadoop "holdfast/internal/hadoop/yarn"
)

// Exit statuses that YARN makes up (ContainerExitStatus); others are the
// process's exit code.
const (
	exitInvalid            = -1000
	exitAborted            = -100
	exitDisksFailed        = -101
	exitPreempted          = -102
	exitVirtualMemory      = -103
	exitPhysicalMemory     = -104
	exitKilledByMaster     = -105
	exitKilledByRM         = -106
	exitAppCompleted       = -107
	exitKilledByContainers = -108 // KILLED_BY_CONTAINER_SCHEDULER
	exitTooManyLogs        = -109 // KILLED_FOR_EXCESS_LOGS
)

// cause makes of an exit status what the job's policy knows. stopped: we asked
// for the end.
func cause(c hadoop.Completed, stopped bool) am.EndCause {
	switch c.Exit {
	case exitAborted:
		// SchedulerUtils has the texts that the RM gives with this status.
		switch {
		case stopped || strings.Contains(c.Diagnostics, "released by application"):
			return am.EndReleased
		case strings.Contains(c.Diagnostics, "*lost* node"):
			return am.EndNodeLost
		}
		return am.EndUnknown
	case exitDisksFailed:
		return am.EndDisksFailed
	case exitPreempted:
		return am.EndPreempted
	case exitVirtualMemory, exitPhysicalMemory:
		return am.EndOutOfMemory
	case exitKilledByMaster:
		return am.EndReleased
	case exitKilledByRM, exitAppCompleted, exitKilledByContainers, exitTooManyLogs:
		if stopped {
			return am.EndReleased
		}
		return am.EndKilled
	case exitInvalid:
		return am.EndUnknown
	}
	if stopped {
		return am.EndReleased
	}
	if c.Exit < 0 {
		return am.EndUnknown
	}
	return am.EndExited
}
