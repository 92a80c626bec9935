package proto

import (
	"fmt"
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

// LogTimesName returns the name of the file with the times of a log (package logtimes), by
// that of the log.
func LogTimesName(log string) string { return strings.TrimSuffix(log, ".log") + ".times" }
