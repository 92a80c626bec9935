package core

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

// Complete reports whether all tasks run that are to make steps.
func (j *Job) Complete() bool { return j.complete() }

// IdleSpares counts the spares for any task, come or asked for.
func (j *Job) IdleSpares() int { return j.unassigned() }
