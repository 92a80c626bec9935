// Package core decides what an application master does. It does no I/O, reads
// no clock and starts no goroutine: Job.Step(now, event) changes the job's
// state and returns the actions to carry out, and Job.Deadline says when the
// next Tick is due. The loop around it is package am.
//
// Each task goes through
//
//	waiting -> preparing -> ready -> running -> succeeded
//
// A lost container brings it back to waiting, a lost process to restarting and
// then running again in the same container. Tasks start together: none runs
// before all of them are ready (starting.go). What a loss means is in
// loss.go, how a job ends in ending.go, and how tasks get containers in
// containers.go.
package core

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"holdfast/proto"
)

// Task is a task as core sees it.
type Task struct {
	Name  string
	Role  *proto.RoleSpec
	Index int

	State     proto.TaskState
	Attempt   int // number of the present or last attempt; -1 before the first
	Container string
	Node      string
	Host      string // under which peers reach it
	Port      int    // that peers know; for life, from the start where New is told it
	RealPort  int    // on which it listens now
	PID       int
	AgentPID  int
	Why       string
	Cause     Cause // of its last loss
	Tail      []string

	request  string    // outstanding Ask
	memoryMB int64     // asked for next time
	prepared bool      // its agent can start it
	stopping bool      // a Stop was sent and not answered
	hung     bool      // the same, because it makes no steps
	silent   time.Time // since when its agent is unreachable; it may be back until deadline
	deadline time.Time // of attach, prepare, or the return of an agent
	notUntil time.Time // back-off
	// draining are containers that may still run an attempt, until when at the
	// latest; nothing is started before they are gone. It grows by drain only.
	draining map[string]time.Time
	lostAt   time.Time  // of the loss that it has not come back from
	blamed   bool       // its last exit blames a peer; decided at notUntil
	kept     bool       // its attempt was told to go on from what the services hold
	doubts   bool       // it may have failed by what the services hold (kept.go)
	started  time.Time  // its attempt, by this master
	early    early      // how its attempts have failed (blame.go)
	fault    Fault      // what its end says of its generation's failure (blame.go)
	failing  TaskExited // how it ended last, where that was a failure
	// leaveBy is when it is to leave its container, with grace to stop, and
	// moving why it does so now (moving.go). wanted: the scheduler is why leaveBy is set.
	leaveBy  time.Time
	grace    time.Duration
	wanted   bool
	moving   Cause
	stopBy   time.Time // until when it has time to stop; zero: it gets what all get
	step     int64     // the last that it has told
	moved    time.Time // when that was; zero: never
	finishBy time.Time // while the job ends: until when it may go on; zero: it is not waited for
	orphan   *orphan   // nil: YARN has not lost its container
	files    localizing
	failures []time.Time
	losses   []time.Time
	lastLoss time.Time
	// unsafe: the store was not made safe since it was lost, or ever.
	unsafe bool
}

// Job is the state of one job.
type Job struct {
	limits   Limits
	restarts int

	state        proto.JobState
	why          string
	waiting      string // why containers do not come
	tasks        []*Task
	services     []*Task // of tasks
	named        map[string]*Task
	busy         []*Task          // that are not at rest, in the order of tasks
	drains       bool             // a task may have draining containers
	hosted       map[string]*Task // by container
	asked        map[string]*Task // by outstanding request
	generation   int
	begun        bool      // a task has been started
	gathering    bool      // nothing starts until all are ready
	since        time.Time // of gathering
	brought      time.Time // when a node was last known to be bringing the files of a container
	enough       time.Time // since when there are as many as every role needs
	saves        int       // since what the services hold may be of several pieces (kept.go)
	spares       []*spare
	spareCount   int // wanted
	spareLosses  []time.Time
	thriftyUntil time.Time          // no spares are asked for before
	closing      map[string]closing // nodes that are taken out of service
	orphans      int                // how many tasks are
	requests     int
	nodeTrouble  map[string][]time.Time
	ousted       time.Time // when a container's directory was removed last
	pace         pace
	early        early     // of tasks that restart together
	openFaults   int       // tasks with a fault that is not attributed yet
	needsJournal bool      // what the last Step did is to be written
	securing     time.Time // when PrepareStore was decided that is not answered
	survey       *survey   // while agents are listened to, for want of a journal
	vigil        *vigil    // nil: only the master prolongs leases

	outcome   proto.JobState // while stopping: what it will be
	phaseEnds time.Time      // while stopping
	leaving   bool           // agents were sent home
	finished  bool

	now     time.Time // of the present step
	actions []Action
}

// New makes a job of tasks that are named and numbered as given. restarts is
// how often one task may fail by its own fault within Limits.Window, and spares
// how many idle containers are kept for tasks that lose theirs.
func New(tasks []Task, restarts, spares int, limits Limits) *Job {
	j := &Job{
		limits:      limits.withDefaults(),
		restarts:    restarts,
		spareCount:  spares,
		state:       proto.JobState_JOB_STATE_WAITING,
		gathering:   true,
		named:       make(map[string]*Task, len(tasks)),
		hosted:      map[string]*Task{},
		asked:       map[string]*Task{},
		nodeTrouble: map[string][]time.Time{},
		closing:     map[string]closing{},
	}
	for _, t := range tasks {
		t.State = proto.TaskState_TASK_STATE_WAITING
		t.Attempt = -1
		t.memoryMB = t.Role.MemoryMb
		t.unsafe = true
		j.tasks = append(j.tasks, &t)
		j.named[t.Name] = &t
		if t.service() {
			j.services = append(j.services, &t)
		}
	}
	return j
}

// Tasks gives the tasks' present state, for reading only.
func (j *Job) Tasks() []*Task { return j.tasks }

// Task gives the task of that name, to others for reading only; nil if there is none.
func (j *Job) Task(name string) *Task { return j.named[name] }

// Hosted gives the task that a container hosts, to others for reading only; nil
// for a container that no task has, or has any longer.
func (j *Job) Hosted(container string) *Task { return j.hosted[container] }

// Containers are those in which tasks are, may come to be, or may still be.
func (j *Job) Containers() []string {
	var list []string
	for _, t := range j.tasks {
		if t.Container != "" {
			list = append(list, t.Container)
		}
		list = append(list, slices.Sorted(maps.Keys(t.draining))...) // its last attempt may still write there
	}
	for _, s := range j.spares {
		if s.container != "" {
			list = append(list, s.container)
		}
	}
	if j.survey != nil {
		list = slices.AppendSeq(list, maps.Keys(j.survey.first.Containers))
	}
	return list
}

// State gives the job's state and the reason of it.
func (j *Job) State() (proto.JobState, string) {
	if j.state == proto.JobState_JOB_STATE_WAITING && j.waiting != "" {
		return j.state, j.waiting
	}
	return j.state, j.why
}

// Generation numbers the starts of all tasks together, from 0.
func (j *Job) Generation() int { return j.generation }

// Finished tells whether Finish was decided; later events change nothing.
func (j *Job) Finished() bool { return j.finished }

// Step takes in an event and returns what to do.
func (j *Job) Step(now time.Time, e Event) []Action {
	if j.finished {
		return nil
	}
	j.now, j.actions = now, nil
	_, steps := e.(StepsReported)
	paced := j.paced()
	defer func() { j.needsJournal = !steps || len(j.actions) > 0 || paced != j.paced() }()
	if j.survey != nil {
		j.listen(e)
	} else {
		j.handle(e)
	}
	if j.survey != nil {
		return j.actions
	}
	if j.ending() {
		j.proceedEnding()
	} else {
		j.findBusy()
		if j.expire() {
			j.findBusy() // what is lost may concern others
		}
		before := j.generation
		j.vacate()
		if attributed := j.attributeFailure(); attributed || j.generation != before {
			j.findBusy()
		}
		j.startReady()
		j.keepSpares()
		j.checkCompletion()
		j.watchSteps()
	}
	return j.actions
}

func (j *Job) do(a ...Action) { j.actions = append(j.actions, a...) }

func (j *Job) record(t *Task, kind, format string, args ...any) {
	name := ""
	if t != nil {
		name = t.Name
	}
	j.do(Record{Task: name, Kind: kind, Text: fmt.Sprintf(format, args...)})
}

// within counts the times that are not older than the window.
func (j *Job) within(at []time.Time) int {
	n := 0
	for _, a := range at {
		if j.now.Sub(a) < j.limits.Window {
			n++
		}
	}
	return n
}

func (j *Job) handle(e Event) {
	switch e := e.(type) {
	case Begin:
		for _, t := range j.tasks {
			j.ask(t)
		}
	case Recovered:
		j.recovered(e)
	case Localizing:
		j.bringing(e)
	case ContainerFound:
		j.found(e)
	case Allocated:
		j.allocated(e)
	case AgentConnected:
		j.attached(e)
	case AgentPrepared:
		j.ready(e)
	case Prewarmed:
		if s := j.spareByContainer(e.Container); s != nil {
			s.ready = j.now
		}
	case TaskStarted:
		j.started(e)
	case TaskExited:
		j.exited(e)
	case ContainerEnded:
		j.containerEnded(e)
	case LaunchFailed:
		if s := j.spareByContainer(e.Container); s != nil {
			j.dropSpare(s, false)
		} else if t := j.Hosted(e.Container); t != nil {
			j.loseContainer(t, CauseLaunch, e.Why)
		}
	case StorePrepared:
		j.secured(e)
	case StepsReported:
		j.stepped(e)
	case AgentFailed:
		j.trouble(e)
	case AgentDisconnected:
		j.agentLost(e)
	case PreemptionWarned:
		j.preemptionWarned(e)
	case PreemptionCanceled:
		j.preemptionOver(e)
	case NodeDecommissioning:
		j.nodeLeaving(e)
	case NodeRecommissioned:
		j.nodeStays(e)
	case CheckpointSealed:
		j.serviceSaved()
		j.sealed()
	case Waiting:
		if e.Why != "" && e.Why != j.waiting && !j.ending() {
			j.record(nil, KindWaiting, "%s", e.Why)
		}
		j.waiting = e.Why
	case Kill:
		j.hurry()
		j.end(proto.JobState_JOB_STATE_KILLED, e.Why)
	case Broken:
		j.hurry()
		j.end(proto.JobState_JOB_STATE_FAILED, e.Why)
	case Tick:
	}
}

// Deadline says when the next Tick is due, if no event comes before.
func (j *Job) Deadline() (time.Time, bool) {
	if j.survey != nil {
		return j.survey.until, true
	}
	var next time.Time
	consider := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	ahead := func(t time.Time) {
		if !t.IsZero() && t.After(j.now) {
			consider(t)
		}
	}
	consider(j.phaseEnds)
	if j.ending() && !j.leaving {
		for _, t := range j.tasks {
			if t.finishBy.IsZero() {
				continue
			}
			if by, _ := j.finishes(t); next.IsZero() || next == j.phaseEnds || by.Before(next) {
				next = by // for that long, no phase ends
			}
		}
	}
	if !j.ending() {
		if j.gathering {
			consider(j.startBy())
		}
		if j.gathering && !j.enough.IsZero() {
			consider(j.enough.Add(j.limits.QuorumWait))
		}
		consider(j.stallDeadline())
		for _, s := range j.spares {
			consider(s.deadline)
			if s.task != nil {
				ahead(s.ready)
			}
		}
		if j.thriftyUntil.After(j.now) {
			consider(j.thriftyUntil)
		}
		for _, t := range j.busy {
			consider(j.due(t))
			if len(t.draining) > 0 {
				for _, until := range t.draining {
					consider(j.surely(until))
				}
			}
			ahead(t.notUntil)
			ahead(t.leaveBy)
			if by, leaves := j.leaves(t); leaves {
				ahead(by)
			}
		}
	}
	return next, !next.IsZero() && !j.finished
}

// atRest tells whether there is nothing to decide about a task until an event
// concerns it, or all of them start together: so it is with nearly all tasks of a
// large job at each step.
func (j *Job) atRest(t *Task) bool {
	switch t.State {
	case proto.TaskState_TASK_STATE_RUNNING, proto.TaskState_TASK_STATE_SUCCEEDED, proto.TaskState_TASK_STATE_FAILED:
	default:
		if !j.gathering {
			return false
		}
	}
	return t.deadline.IsZero() && t.leaveBy.IsZero() && len(t.draining) == 0 && t.orphan == nil && len(j.closing) == 0 && !t.notUntil.After(j.now)
}

// findBusy finds the tasks that the parts of a step are to look at. Each of the
// losses of many tasks is a step, and most parts of it are not to take time in
// proportion to the tasks that it leaves alone.
func (j *Job) findBusy() {
	j.busy, j.drains = j.busy[:0], false
	for _, t := range j.tasks {
		if !j.atRest(t) {
			j.busy = append(j.busy, t)
			j.drains = j.drains || len(t.draining) > 0
		}
	}
}

// expire acts on the deadlines that have come, and tells whether a task lost its
// container by that.
func (j *Job) expire() (lost bool) {
	for _, s := range slices.Clone(j.spares) {
		if !s.deadline.IsZero() && !s.deadline.After(j.now) {
			j.dropSpare(s, true)
		}
	}
	for _, t := range j.busy {
		for _, c := range t.drained() {
			if j.past(j.surely(t.draining[c])) {
				j.do(Release{c})
				delete(t.draining, c)
			}
		}
		if j.past(j.due(t)) {
			c, cause, why := t.Container, CauseLaunch, fmt.Sprintf("its agent on %s was not ready in time", t.Node)
			switch {
			case t.orphan != nil:
				cause, why = CauseNodeLost, fmt.Sprintf("its agent on %s has been without a connection for longer than its lease, too: %s", t.Node, t.orphan.why)
			case t.unreachable():
				cause, why = CauseAgentLost, fmt.Sprintf("its agent on %s has been without a connection for longer than its lease", t.Node)
			}
			j.loseContainer(t, cause, why)
			j.do(Release{c})
			lost = true
		}
	}
	return lost
}

// vigil is a time in which this master has touched the job's AddressFile without a
// break, as package proto says: leases that agents have let begin anew for want of
// a master have ended, or end, by LeaseExpiry after its beginning.
type vigil struct{ since, until time.Time }

// SetLivenessWindow records that the master has touched the file without a break since, and that
// nobody can have seen it untouched for too long before until. It is called before
// Step and Deadline; who never calls it has agents whose leases only it prolongs.
func (j *Job) SetLivenessWindow(since, until time.Time) { j.vigil = &vigil{since, until} }

// surely is when leases that end by a time have ended, if no break comes before; zero:
// that is not known yet.
func (j *Job) surely(end time.Time) time.Time {
	v := j.vigil
	if v == nil {
		return end
	}
	if at := v.since.Add(j.limits.LeaseExpiry); at.After(end) {
		end = at
	}
	if end.After(v.until) || !end.After(j.now) && j.now.After(v.until) {
		return time.Time{}
	}
	return end
}

// due is when a task's deadline counts; zero: it has none, or that is not known yet.
func (j *Job) due(t *Task) time.Time {
	if t.deadline.IsZero() || !t.unreachable() {
		return t.deadline
	}
	return j.surely(t.deadline)
}

// past tells whether a time has come; zero is none.
func (j *Job) past(at time.Time) bool { return !at.IsZero() && !at.After(j.now) }

// drained are the containers of draining, in order.
func (t *Task) drained() []string {
	if len(t.draining) == 0 {
		return nil // of nearly all tasks
	}
	return slices.Sorted(maps.Keys(t.draining))
}

// Failures counts the failures that were the task's own, ever; where all start
// together, those of the job that it was the cause of.
func (t *Task) Failures() int { return len(t.failures) }

// Limits are the times and counts that are in force.
func (j *Job) Limits() Limits { return j.limits }
