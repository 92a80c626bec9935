package proto

import (
	"strconv"
	"strings"
)

// ParseLogName returns whose output a file in LogsDir/TASK is, by its name: ATTEMPT.log is
// that of the first process of an attempt, and ATTEMPT.PROCESS.log that of another one.
func ParseLogName(name string) (attempt, process int, ok bool) {
	number, isLog := strings.CutSuffix(name, ".log")
	first, second, several := strings.Cut(number, ".")
	attempt, err := strconv.Atoi(first)
	if several && err == nil {
		process, err = strconv.Atoi(second)
	}
	return attempt, process, isLog && err == nil
}
