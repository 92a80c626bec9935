package yarn

import (
	"regexp"
	"strings"

	"holdfast/am/core/event"
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

// Exit codes that a NodeManager gives (ContainerExecutor.ExitCode): the first two are of processes
// that it has ended.
const (
	exitForceKilled = 137
	exitTerminated  = 143
	// exitNotRecovered is that of a container whose process a NodeManager has not found again
	// after its own restart: it has ended, as when the node was restarted too, or it goes on
	// (RecoveredContainerLaunch).
	exitNotRecovered = 154
)

// overLimit matches a NodeManager's message about a container that it kills for its memory
// use (ContainersMonitorImpl.formatErrorMessage; the second form is Hadoop 2's). If the
// process ends first, on SIGTERM or SIGKILL, its exit code replaces the NodeManager's
// status, and only this message gives the reason.
var overLimit = regexp.MustCompile(`(?i)is running (?:\d+B )?beyond (?:the '(physical|virtual)' memory limit|(physical|virtual) memory limits)`)

// cause returns the cause of a container's end. stopped says that the driver has ended it.
func cause(c hadoop.Completed, stopped bool) event.Cause {
	switch c.Exit {
	case exitAborted:
		// SchedulerUtils has the texts that the RM gives with this status.
		switch {
		case stopped || strings.Contains(c.Diagnostics, "released by application"):
			return event.CauseReleased
		case strings.Contains(c.Diagnostics, "*lost* node"):
			return event.CauseNodeLost
		}
		return event.CauseUnknown
	case exitDisksFailed:
		return event.CauseDisksFailed
	case exitPreempted:
		return event.CausePreempted
	case exitPhysicalMemory:
		return event.CauseOutOfMemory
	case exitVirtualMemory:
		return event.CauseVirtualLimit
	case 0, exitForceKilled, exitTerminated:
		if limit := overLimit.FindStringSubmatch(c.Diagnostics); limit != nil {
			if strings.EqualFold(limit[1]+limit[2], "virtual") {
				return event.CauseVirtualLimit
			}
			return event.CauseOutOfMemory
		}
	case exitKilledByMaster:
		return event.CauseReleased
	case exitKilledByRM, exitAppCompleted, exitKilledByContainers, exitTooManyLogs:
		if stopped {
			return event.CauseReleased
		}
		return event.CauseKilled
	case exitInvalid:
		return event.CauseUnknown
	}
	switch {
	case stopped:
		return event.CauseReleased
	case c.Exit == exitNotRecovered: // what runs there may go on, as with a node that is lost
		return event.CauseNodeLost
	case c.Exit < 0:
		return event.CauseUnknown
	}
	return event.CauseOwnFault
}

// containerEnded is the event of a container's end. stopped is as of cause.
func containerEnded(c hadoop.Completed, stopped bool) event.ContainerEnded {
	e := event.ContainerEnded{Container: c.ID.String(), Cause: cause(c, stopped), Exit: c.Exit, Diagnostics: hadoop.Reason(c.Diagnostics)}
	if c.Exit == exitNotRecovered && e.Diagnostics == "" {
		e.Diagnostics = "its NodeManager was restarted and does not know what has become of it"
	}
	return e
}
