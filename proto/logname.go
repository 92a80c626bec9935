package proto

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// LogName returns the name in LogsDir/TASK of the output of one of an attempt's processes:
// ATTEMPT.log is that of the first one, and ATTEMPT.PROCESS.log that of another.
func LogName(attempt, process int) string {
	if process == 0 {
		return fmt.Sprintf("%d.log", attempt)
	}
	return fmt.Sprintf("%d.%d.log", attempt, process)
}

// ParseLogName returns whose output a file is, by the name that LogName gave it.
func ParseLogName(name string) (attempt, process int, ok bool) {
	number, isLog := strings.CutSuffix(name, ".log")
	first, second, several := strings.Cut(number, ".")
	attempt, err := strconv.Atoi(first)
	if several && err == nil {
		process, err = strconv.Atoi(second)
	}
	return attempt, process, isLog && err == nil
}

// MasterLogName returns the name in the job's directory of the copy of what attempt N of the
// application master on a cluster logs. That is in MasterLogsDir.
func MasterLogName(attempt int) string { return path.Join(MasterLogsDir, LogName(attempt, 0)) }

// AgentLogName returns the name in the job's directory of the copy of what the agent in a
// container of a cluster logs.
func AgentLogName(container string) string { return path.Join("agents", container+".log") }

// LogTimesName returns the name of the file with the times of a log (package logtimes), by
// that of the log.
func LogTimesName(log string) string { return strings.TrimSuffix(log, ".log") + ".times" }
