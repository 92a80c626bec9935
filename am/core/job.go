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
// before all of them are ready (job.go, gather). What a loss means is in
// loss.go, how a job ends in ending.go.
package core

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
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
	Port      int    // that peers know; for life
	RealPort  int    // on which it listens now
	PID       int
	AgentPID  int
	Why       string
	Cause     Cause // of its last loss
	Tail      []string

	request  string // outstanding Ask
	memoryMB int64  // asked for next time
	prepared bool   // its agent can start it
	stopping bool   // a Stop was sent and not answered
	hung     bool   // the same, because it makes no steps
	// unreachable: its agent has no connection; it may be back until deadline.
	unreachable bool
	deadline    time.Time // of attach, prepare, or the return of an agent
	notUntil    time.Time // back-off
	// draining are containers that may still run an attempt, until when at the
	// latest; nothing is started before they are gone.
	draining map[string]time.Time
	lostAt   time.Time // of the loss that it has not come back from
	blamed   bool      // its last exit blames a peer; judged at notUntil
	// leaveBy is when it is to leave its container, with grace to stop, and
	// moving why it does so now (moving.go).
	leaveBy  time.Time
	grace    time.Duration
	moving   Cause
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
	hosted       map[string]*Task // by container
	asked        map[string]*Task // by outstanding request
	generation   int
	gathering    bool      // nothing starts until all are ready
	since        time.Time // of gathering
	enough       time.Time // since when there are as many as every role needs
	spares       []*spare
	spareCount   int // wanted
	spareLosses  []time.Time
	thriftyUntil time.Time          // no spares are asked for before
	closing      map[string]closing // nodes that are taken out of service
	requests     int
	nodeTrouble  map[string][]time.Time
	securing     time.Time // when Secure was decided that is not answered
	survey       *survey   // while agents are listened to, for want of a journal

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
		hosted:      map[string]*Task{},
		asked:       map[string]*Task{},
		nodeTrouble: map[string][]time.Time{},
		closing:     map[string]closing{},
	}
	for _, t := range tasks {
		t.State = proto.TaskState_TASK_STATE_WAITING
		t.Attempt = -1
		t.memoryMB = t.Role.MemoryMb
		t.draining = map[string]time.Time{}
		t.unsafe = true
		j.tasks = append(j.tasks, &t)
	}
	return j
}

// Tasks gives the tasks' present state, for reading only.
func (j *Job) Tasks() []*Task { return j.tasks }

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
		j.expire()
		j.vacate()
		j.startReady()
		j.keepSpares()
		j.checkCompletion()
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

// host puts a task into a container; "" takes it out of the one it has.
func (j *Job) host(t *Task, container string) {
	delete(j.hosted, t.Container)
	t.Container = container
	if container != "" {
		j.hosted[container] = t
	}
}

// await notes a task's outstanding request; "" takes it back.
func (j *Job) await(t *Task, request string) {
	delete(j.asked, t.request)
	t.request = request
	if request != "" {
		j.asked[request] = t
	}
}

// ask wants a container for a task: a spare one, or its stand-in, or else a new
// one.
func (j *Job) ask(t *Task) {
	if s := j.spareFor(t); s != nil {
		j.useSpare(t, s)
		return
	}
	if s := j.standIn(t); s != nil {
		j.awaitStandIn(t, s)
		return
	}
	a := j.request(t)
	j.await(t, a.Request)
	t.State = proto.TaskState_TASK_STATE_WAITING
	j.do(a)
}

// request is an ask for a container for a task.
func (j *Job) request(t *Task) Ask {
	j.requests++
	return Ask{
		Request: fmt.Sprintf("%s/%d", t.Name, j.requests), Task: t.Name, Role: t.Role.Name,
		MemoryMB: t.memoryMB, VCores: t.Role.Vcores, GPUs: t.Role.Gpus,
		Avoid: j.avoid(),
	}
}

// avoid names the nodes that have given trouble twice lately, and those that
// are taken out of service.
func (j *Job) avoid() []string {
	var nodes []string
	for n, at := range j.nodeTrouble {
		if j.within(at) >= 2 {
			nodes = append(nodes, n)
		}
	}
	nodes = slices.AppendSeq(nodes, maps.Keys(j.closing))
	slices.Sort(nodes)
	return slices.Compact(nodes)
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
	case Allocated:
		j.allocated(e)
	case AgentAttached:
		j.attached(e)
	case AgentPrepared:
		j.ready(e)
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
	case Secured:
		j.secured(e)
	case Stalled:
		j.stalled(e)
	case AgentTrouble:
		j.trouble(e)
	case AgentLost:
		j.agentLost(e)
	case PreemptionWarned:
		j.preemptionWarned(e)
	case NodeLeaving:
		j.nodeLeaving(e)
	case NodeStays:
		j.nodeStays(e)
	case Sealed:
		j.sealed()
	case Waiting:
		if e.Why != "" && e.Why != j.waiting && !j.ending() {
			j.record(nil, KindWaiting, "%s", e.Why)
		}
		j.waiting = e.Why
	case Kill:
		j.end(proto.JobState_JOB_STATE_KILLED, e.Why)
	case Broken:
		j.end(proto.JobState_JOB_STATE_FAILED, e.Why)
	case Tick:
	}
}

func (j *Job) allocated(e Allocated) {
	if s := j.spareByRequest(e.Request); s != nil {
		s.request, s.container, s.node = "", e.Container, e.Node
		s.deadline = j.now.Add(j.limits.Attach)
		j.do(Launch{e.Container})
		return
	}
	t := j.asked[e.Request]
	if t == nil {
		j.do(Release{e.Container})
		return
	}
	j.await(t, "")
	j.host(t, e.Container)
	t.Node = e.Node
	t.State = proto.TaskState_TASK_STATE_PREPARING
	t.prepared, t.unreachable = false, false
	t.deadline = j.now.Add(j.limits.Attach)
	j.do(Launch{e.Container})
}

func (j *Job) attached(e AgentAttached) {
	if s := j.spareByContainer(e.Container); s != nil && !j.ending() {
		s.host, s.agentPID, s.deadline = e.Host, e.PID, time.Time{}
		return
	}
	t := j.Hosted(e.Container)
	if t == nil || j.ending() {
		j.overlooked(e)
		j.drainOn(e.Container, j.now)
		j.do(Bye{e.Container, "its container is not needed any longer"})
		return
	}
	t.Host, t.AgentPID = e.Host, e.PID
	if e.Task == t.Name && e.Port != 0 {
		j.rejoined(t, e)
		return
	}
	t.unreachable = false
	t.deadline = j.now.Add(j.limits.Prepare)
	j.do(Assign{Container: e.Container, Task: t.Name, Port: t.Port})
}

// overlooked takes in what an agent ran whose container nobody has told this
// master of, and who comes too late for its survey: the next attempt has a higher
// number, and waits for the end of that one.
func (j *Job) overlooked(e AgentAttached) {
	for _, t := range j.tasks {
		if t.Name == e.Task && t.Attempt < e.Attempt && t.State != proto.TaskState_TASK_STATE_RUNNING {
			t.Attempt, t.Port = e.Attempt, cmp.Or(t.Port, e.PeerPort)
			t.draining[e.Container] = j.now.Add(j.limits.Drain)
			if t.Role.Loss == proto.LossRule_LOSS_RULE_ALL {
				j.generation = max(j.generation, e.Generation+1)
			}
		}
	}
}

// rejoined takes an agent in that was here before, and puts right what one of
// the two sides has missed.
func (j *Job) rejoined(t *Task, e AgentAttached) {
	if t.unreachable {
		j.record(t, KindNote, "its agent on %s is connected again", t.Node)
	}
	t.unreachable, t.deadline = false, time.Time{}
	t.prepared = true
	t.RealPort = e.Port
	if t.Port == 0 {
		t.Port = e.Port
	}
	switch t.State {
	case proto.TaskState_TASK_STATE_PREPARING:
		t.State = proto.TaskState_TASK_STATE_READY
	case proto.TaskState_TASK_STATE_RUNNING:
		switch {
		case e.Attempt < t.Attempt && t.stopping: // it never heard of this attempt, and need not
			t.stopping = false
			t.State = proto.TaskState_TASK_STATE_READY
		case e.Attempt < t.Attempt: // it never heard of this attempt
			j.do(Start{Container: t.Container, Task: t.Name, Attempt: t.Attempt, Generation: j.generation})
		case e.Exited != nil:
			x := *e.Exited
			x.Container = e.Container
			j.exited(x)
		case t.PID == 0 && e.TaskPID != 0:
			j.started(TaskStarted{Container: e.Container, Attempt: e.Attempt, PID: e.TaskPID})
		}
		if t.stopping || t.hung {
			j.do(Stop{t.Container})
		}
	}
	j.do(Route{})
}

func (j *Job) ready(e AgentPrepared) {
	t := j.Hosted(e.Container)
	if t == nil || j.ending() || t.State != proto.TaskState_TASK_STATE_PREPARING { // it may say so twice
		return
	}
	for _, n := range e.Notes {
		j.record(t, KindNote, "%s", n)
	}
	t.prepared = true
	t.deadline = time.Time{}
	if t.Port == 0 {
		t.Port = e.Port
	} else if t.Port != e.Port {
		j.record(t, KindNote, "port %d is taken on %s; it listens on %d there, and the others' connections are steered to it", t.Port, t.Node, e.Port)
	}
	t.RealPort = e.Port
	t.State = proto.TaskState_TASK_STATE_READY
	j.do(Route{})
}

// startReady starts what may start: everything at once if the tasks are
// gathering, else each task that is ready.
func (j *Job) startReady() {
	if j.gathering && !j.gathered() {
		return
	}
	j.gathering = false
	wantsSafety := false
	for _, t := range j.tasks {
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
		j.do(Secure{AllDown: !j.any(func(t *Task) bool { return t.State == proto.TaskState_TASK_STATE_RUNNING })})
	}
}

// comes tells whether a container is got or prepared for the task, and nothing
// of it can be running elsewhere.
func (t *Task) comes() bool {
	got := t.State == proto.TaskState_TASK_STATE_WAITING || t.State == proto.TaskState_TASK_STATE_PREPARING
	return got && len(t.draining) == 0
}

// gathered tells whether the tasks may start together: when all are ready, or,
// after a while, as many of each role as it needs. Too long a wait ends the job.
func (j *Job) gathered() bool {
	if j.since.IsZero() {
		j.since = j.now
	}
	if limit := j.limits.Start; limit > 0 && j.now.Sub(j.since) >= limit {
		j.giveUpGathering()
		return false
	}
	missing := false
	for _, t := range j.tasks {
		missing = missing || t.gathers() && !j.mayStart(t)
	}
	if !missing {
		return true
	}
	if !j.enoughReady() {
		j.enough = time.Time{}
		return false
	}
	if j.enough.IsZero() {
		j.enough = j.now
	}
	if j.now.Sub(j.enough) < j.limits.Fewer {
		return false
	}
	for _, t := range j.tasks {
		if t.gathers() && !j.mayStart(t) {
			j.record(t, KindNote, "the job starts without it; it joins when it has a container")
		}
	}
	return true
}

// gathers tells whether the task is one of those that start together.
func (t *Task) gathers() bool {
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
		if ready[t.Role] < least(t.Role) {
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
func (j *Job) secured(e Secured) {
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
	if !waits || !t.prepared || t.unreachable || t.stopping || t.hung || len(t.draining) > 0 || t.notUntil.After(j.now) {
		return false
	}
	return !t.blamed || !j.serviceDown(t)
}

func (j *Job) start(t *Task) {
	t.Attempt++
	t.State = proto.TaskState_TASK_STATE_RUNNING
	t.PID = 0
	t.blamed = false
	if j.state == proto.JobState_JOB_STATE_WAITING {
		j.state, j.why, j.waiting = proto.JobState_JOB_STATE_RUNNING, "", ""
	}
	j.do(Start{Container: t.Container, Task: t.Name, Attempt: t.Attempt, Generation: j.generation})
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
	if !j.ending() {
		if j.gathering && j.limits.Start > 0 && !j.since.IsZero() {
			consider(j.since.Add(j.limits.Start))
		}
		if j.gathering && !j.enough.IsZero() {
			consider(j.enough.Add(j.limits.Fewer))
		}
		for _, s := range j.spares {
			consider(s.deadline)
		}
		if j.thriftyUntil.After(j.now) {
			consider(j.thriftyUntil)
		}
		for _, t := range j.tasks {
			consider(t.deadline)
			if len(t.draining) > 0 {
				for _, until := range t.draining {
					consider(until)
				}
			}
			ahead(t.notUntil)
			ahead(t.leaveBy)
			if by, closes := j.closes(t.Node); closes {
				ahead(by)
			}
		}
	}
	return next, !next.IsZero() && !j.finished
}

// expire acts on the deadlines that have come.
func (j *Job) expire() {
	for _, s := range slices.Clone(j.spares) {
		if !s.deadline.IsZero() && !s.deadline.After(j.now) {
			j.dropSpare(s, true)
		}
	}
	for _, t := range j.tasks {
		for _, c := range t.drained() {
			if !t.draining[c].After(j.now) {
				j.do(Release{c})
				delete(t.draining, c)
			}
		}
		if !t.deadline.IsZero() && !t.deadline.After(j.now) {
			c, cause, why := t.Container, CauseLaunch, fmt.Sprintf("its agent on %s was not ready in time", t.Node)
			if t.unreachable {
				cause, why = CauseAgentLost, fmt.Sprintf("its agent on %s has been without a connection for longer than its lease", t.Node)
			}
			j.loseContainer(t, cause, why)
			j.do(Release{c})
		}
	}
}

// drained are the containers of draining, in order.
func (t *Task) drained() []string {
	if len(t.draining) == 0 {
		return nil // of nearly all tasks, at each step
	}
	return slices.Sorted(maps.Keys(t.draining))
}

// Failures counts the failures that were the task's own, ever.
func (t *Task) Failures() int { return len(t.failures) }

// Limits are the times and counts that are in force.
func (j *Job) Limits() Limits { return j.limits }
