package proto

import (
	"slices"
	"strings"
)

// ShellSignal returns the signal of which an exit code tells, 0 if of none: a shell whose program
// was ended by signal N exits with 128+N. Any program may choose such a code.
func ShellSignal(code int) int {
	const last = 31 // of the signals with names of their own
	if n := code - 128; n > 0 && n <= last {
		return n
	}
	return 0
}

// EarlierReason reports whether a task's reason concerns an attempt before the present one,
// and returns that attempt.
func EarlierReason(s *JobStatus, k *TaskStatus) (attempt int32, is bool) {
	of := ReasonOf(s, k)
	return of, of >= 0 && of < k.Attempt
}

// ReasonOf returns the attempt whose loss a task's reason concerns, as far as the job's
// incidents know; -1 if the reason is not that of a loss.
func ReasonOf(s *JobStatus, k *TaskStatus) int32 {
	if k.State == TaskState_TASK_STATE_FAILED {
		return k.Attempt
	}
	for _, i := range slices.Backward(s.Incidents) {
		if i.Task == k.Task && (strings.Contains(i.Evidence, k.Why) || i.Evidence != "" && strings.Contains(k.Why, i.Evidence)) {
			return i.Attempt
		}
	}
	return -1
}
