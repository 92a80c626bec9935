package core

import (
	"slices"

	"holdfast/am/core/pace"
)

// Overlooked names a task that is not idle and that the next deadline does not count, or
// that may be unreachable for ever; "" if there is none.
func (j *Job) Overlooked() string {
	if j.phase == reconciling || j.ending() {
		return ""
	}
	counted := map[*task]bool{}
	for _, t := range j.busy {
		counted[t] = true
	}
	for _, t := range j.tasks {
		if !counted[t] && !j.idle(t) || t.unreachable() && t.loc.deadline.IsZero() {
			return t.name
		}
	}
	return ""
}

// Paced reports whether a journal has enough of the job's steps to do something about a
// stall.
func (r Journal) Paced() bool {
	made := slices.ContainsFunc(r.Tasks, func(k TaskRecord) bool { return k.Step != 0 })
	return r.Pace != nil && (r.Pace.Assumed && made || r.Pace.Pauses >= pace.Enough)
}

// Complete reports whether all tasks run that are to make steps.
func (j *Job) Complete() bool { return j.complete() }

// IdleSpares counts the spares for any task, come or asked for.
func (j *Job) IdleSpares() int { return j.unassigned() }
