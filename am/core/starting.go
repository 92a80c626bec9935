package core

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/proto"
)

// startReady starts what may start: everything at once if the tasks are
// gathering, else each task that is ready.
func (j *Job) startReady() {
	if j.gathering {
		if !j.gathered() {
			return
		}
		j.gathering = false
		j.clearFaults()
		j.findBusy()
	}
	wantsSafety := false
	for _, t := range j.busy {
		// What a task has left is put right while it waits for another container.
		wantsSafety = wantsSafety || t.unsafe && t.comes()
		if !j.mayStart(t) || j.unjustBlame(t) {
			if j.ending() {
				return
			}
			continue
		}
		if t.unsafe {
			wantsSafety = true
			continue
		}
		j.start(t)
	}
	if wantsSafety && j.securing.IsZero() {
		j.securing = j.now
		j.do(PrepareStore{AllDown: !j.any(func(t *Task) bool { return t.State == proto.TaskState_TASK_STATE_RUNNING })})
	}
}

// comes tells whether a container is got or prepared for the task, and nothing
// of it can be running elsewhere.
func (t *Task) comes() bool {
	got := t.State == proto.TaskState_TASK_STATE_WAITING || t.State == proto.TaskState_TASK_STATE_PREPARING
	return got && len(t.draining) == 0
}

// gathered tells whether the tasks may start together: when all are ready, or,
// after a while, as many of each role as it needs. Too long a wait for the job's
// first start ends it.
func (j *Job) gathered() bool {
	if j.since.IsZero() {
		j.since = j.now
	}
	if by := j.startBy(); !by.IsZero() && !by.After(j.now) {
		j.giveUpGathering()
		return false
	}
	if i := slices.IndexFunc(j.tasks, func(t *Task) bool { return t.gathers() && !j.mayStart(t) }); i < 0 {
		return true
	} else if r := j.tasks[i].Role; least(r) >= r.Count || !j.enoughReady() {
		j.enough = time.Time{}
		return false
	}
	if j.enough.IsZero() {
		j.enough = j.now
	}
	if j.now.Sub(j.enough) < j.limits.QuorumWait {
		return false
	}
	for _, t := range j.tasks {
		if t.gathers() && !j.mayStart(t) {
			j.record(t, KindNote, "the job starts without it; it joins when it has a container")
		}
	}
	return true
}

// startBy is by when the job has to have started; zero: there is no such time, as
// where it has been started before. While nodes bring files, and until then, nothing
// was scarce.
func (j *Job) startBy() time.Time {
	if j.limits.Start == 0 || j.begun || j.since.IsZero() {
		return time.Time{}
	}
	if j.brought.After(j.since) {
		return j.brought.Add(j.limits.Start)
	}
	return j.since.Add(j.limits.Start)
}

// gathers tells whether the task is one of those that start together. Nobody waits
// for one that does not decide anything: it starts with the others, or later.
func (t *Task) gathers() bool {
	if t.optional() {
		return false
	}
	switch t.State {
	case proto.TaskState_TASK_STATE_SUCCEEDED, proto.TaskState_TASK_STATE_FAILED:
		return false
	case proto.TaskState_TASK_STATE_RUNNING:
		return t.stopping || t.hung
	}
	return true
}

// enoughReady tells whether every role has as many tasks ready as it needs.
func (j *Job) enoughReady() bool {
	ready := map[*proto.RoleSpec]int32{}
	for _, t := range j.tasks {
		if !t.gathers() || j.mayStart(t) {
			ready[t.Role]++
		}
	}
	for _, t := range j.tasks {
		if !t.optional() && ready[t.Role] < least(t.Role) {
			return false
		}
	}
	return true
}

// least is how many tasks of a role the job needs.
func least(r *proto.RoleSpec) int32 {
	if r.Min > 0 {
		return r.Min
	}
	return r.Count
}

func (j *Job) giveUpGathering() {
	var missing []string
	for _, t := range j.tasks {
		if t.gathers() && !j.mayStart(t) {
			missing = append(missing, t.Name)
		}
	}
	why := fmt.Sprintf("the tasks could not start together within %s: %d of %d not ready (%s)", j.limits.Start, len(missing), len(j.tasks), some(missing))
	if j.waiting != "" {
		why += "; " + j.waiting
	}
	j.end(proto.JobState_JOB_STATE_FAILED, why)
	j.proceedEnding()
}

// some is a list of names that is not too long to be read.
func some(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// secured lets the tasks start that were lost before the store was made safe.
func (j *Job) secured(e StorePrepared) {
	for _, t := range j.tasks {
		if !t.lastLoss.After(j.securing) {
			t.unsafe = false
		}
	}
	j.securing = time.Time{}
	for _, n := range e.Notes {
		j.record(nil, KindNote, "%s", n)
	}
}

// mayStart tells whether a task waits for nothing but its start.
func (j *Job) mayStart(t *Task) bool {
	waits := t.State == proto.TaskState_TASK_STATE_READY || t.State == proto.TaskState_TASK_STATE_RESTARTING
	if !waits || !t.prepared || t.unreachable() || t.stopping || t.hung || len(t.draining) > 0 || t.notUntil.After(j.now) {
		return false
	}
	// Where all start together, nobody waits for a service that starts with it.
	return !t.blamed || j.gathering || !j.serviceDown(t)
}

func (j *Job) start(t *Task) {
	t.Attempt++
	t.started, j.begun = j.now, true
	t.kept = j.begins(t)
	t.State = proto.TaskState_TASK_STATE_RUNNING
	t.PID = 0
	t.blamed = false
	if j.state == proto.JobState_JOB_STATE_WAITING {
		j.state, j.why, j.waiting = proto.JobState_JOB_STATE_RUNNING, "", ""
	}
	j.do(Start{Container: t.Container, Task: t.Name, Attempt: t.Attempt, Generation: j.generation, ConsistentServerState: t.kept})
}

func (j *Job) started(e TaskStarted) {
	t := j.Hosted(e.Container)
	if t == nil || e.Attempt != t.Attempt {
		return
	}
	t.PID = e.PID
	if t.lostAt.IsZero() {
		j.record(t, KindStarted, "attempt %d runs on %s, process %d", t.Attempt, t.Node, t.PID)
		return
	}
	took := j.now.Sub(t.lostAt)
	t.lostAt = time.Time{}
	j.do(Record{Task: t.Name, Kind: KindBack, TookMS: took.Milliseconds(),
		Text: fmt.Sprintf("attempt %d runs on %s, process %d", t.Attempt, t.Node, t.PID)})
}
