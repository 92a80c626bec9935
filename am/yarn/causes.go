package yarn

import (
	"regexp"
	"strings"

	"holdfast/am/core"
	hadoop "holdfast/internal/hadoop/yarn"
)

// Exit statuses that YARN defines (ContainerExitStatus). Others are the process's exit code.
const (
	exitInvalid            = hadoop.ExitInvalid
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

// Exit codes of processes that a NodeManager has ended (ContainerExecutor.ExitCode).
const (
	exitForceKilled = 137
	exitTerminated  = 143
)

// overLimit matches a NodeManager's message about a container that it kills for its memory
// use (ContainersMonitorImpl.formatErrorMessage; the second form is Hadoop 2's). If the
// process ends first, on SIGTERM or SIGKILL, its exit code replaces the NodeManager's
// status, and only this message gives the reason.
var overLimit = regexp.MustCompile(`(?i)is running (?:\d+B )?beyond (?:the '(physical|virtual)' memory limit|(physical|virtual) memory limits)`)

// cause returns the cause of a container's end. stopped says that the driver has ended it.
func cause(c hadoop.Completed, stopped bool) core.Cause {
	switch c.Exit {
	case exitAborted:
		// SchedulerUtils has the texts that the RM gives with this status.
		switch {
		case stopped || strings.Contains(c.Diagnostics, "released by application"):
			return core.CauseReleased
		case strings.Contains(c.Diagnostics, "*lost* node"):
			return core.CauseNodeLost
		}
		return core.CauseUnknown
	case exitDisksFailed:
		return core.CauseDisksFailed
	case exitPreempted:
		return core.CausePreempted
	case exitPhysicalMemory:
		return core.CauseOutOfMemory
	case exitVirtualMemory:
		return core.CauseVirtualLimit
	case 0, exitForceKilled, exitTerminated:
		if limit := overLimit.FindStringSubmatch(c.Diagnostics); limit != nil {
			if strings.EqualFold(limit[1]+limit[2], "virtual") {
				return core.CauseVirtualLimit
			}
			return core.CauseOutOfMemory
		}
	case exitKilledByMaster:
		return core.CauseReleased
	case exitKilledByRM, exitAppCompleted, exitKilledByContainers, exitTooManyLogs:
		if stopped {
			return core.CauseReleased
		}
		return core.CauseKilled
	case exitInvalid:
		return core.CauseUnknown
	}
	if stopped {
		return core.CauseReleased
	}
	if c.Exit < 0 {
		return core.CauseUnknown
	}
	return core.CauseOwnFault
}
