package core

// Overlooked names a task that is not at rest and that the next deadline does not
// count, or that is unreachable for as long as it may be; "" if there is none.
func (j *Job) Overlooked() string {
	if j.survey != nil || j.ending() || j.finished {
		return ""
	}
	counted := map[*Task]bool{}
	for _, t := range j.busy {
		counted[t] = true
	}
	for _, t := range j.tasks {
		if !counted[t] && !j.atRest(t) || t.unreachable() && t.deadline.IsZero() {
			return t.Name
		}
	}
	return ""
}

// Paced reports whether a journal has enough of the job's steps to do something about a
// stall.
func (r Journal) Paced() bool { return r.Pace != nil && r.Pace.Pauses >= pausesKnown }

// IdleSpares counts the spares for any task, come or asked for.
func (j *Job) IdleSpares() int { return j.idle() }
