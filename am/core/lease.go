package core

import "time"

// LivenessConfirmed reports that the master has updated the job's AddressFile without a
// gap since Since, and that nobody can have seen it stale for too long before Until
// (package proto, lease.go): leases that agents have renewed for want of a master have
// expired, or expire, by LeaseExpiry after Since. It comes only where Limits.LivenessFile is
// set, and then again and again.
type LivenessConfirmed struct{ Since, Until time.Time }

func (LivenessConfirmed) event() {}

// livenessWindow is that of the last LivenessConfirmed. The zero value: none came.
type livenessWindow struct{ since, until time.Time }

// confirmedExpiry is when leases that end by a time have expired, if no gap comes
// before; zero: that is not known yet.
func (j *Job) confirmedExpiry(end time.Time) time.Time {
	if !j.limits.LivenessFile {
		return end
	}
	w := j.liveness
	if at := w.since.Add(j.limits.LeaseExpiry); at.After(end) {
		end = at
	}
	if end.After(w.until) || !end.After(j.now) && j.now.After(w.until) {
		return time.Time{}
	}
	return end
}

// confirmedDeadline is when a task's deadline counts; zero: it has none, or that is not
// known yet.
func (j *Job) confirmedDeadline(t *task) time.Time {
	if t.loc.deadline.IsZero() || !t.unreachable() {
		return t.loc.deadline
	}
	return j.confirmedExpiry(t.loc.deadline)
}

// awaitExpiry notes that a task's attempt may still run in a container, until then.
func (j *Job) awaitExpiry(t *task, container string, until time.Time) {
	if t.expiring == nil {
		t.expiring = map[string]time.Time{}
	}
	t.expiring[container] = until
	j.touch(t)
	j.anyExpiring = true
}

// renewedLease waits longer for a container that was given up and whose agent was heard
// after that: its lease has begun again.
func (j *Job) renewedLease(container string, heard time.Time) {
	if !j.anyExpiring {
		return
	}
	for _, t := range j.tasks {
		if until, ok := t.expiring[container]; ok && until.Before(heard.Add(j.limits.LeaseExpiry)) {
			j.awaitExpiry(t, container, heard.Add(j.limits.LeaseExpiry))
		}
	}
}

// endExpiry notes that nothing runs in a container any longer.
func (j *Job) endExpiry(container string) {
	if !j.anyExpiring {
		return
	}
	for _, t := range j.tasks {
		delete(t.expiring, container)
	}
}
