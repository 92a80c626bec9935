package core

import (
	"fmt"
	"iter"
	"regexp"
	"slices"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/core/journal"
	"holdfast/am/core/nodes"
	"holdfast/am/core/pace"
	"holdfast/am/core/reconcile"
	"holdfast/proto"
)

// Job is the state of one job.
type Job struct {
	limits   Limits
	restarts int

	phase   phase
	started bool   // it is shown as running: the gang start was over when it was taken over, or a task was started since
	why     string // the job stops
	waiting string // why containers do not come

	tasks        []*task
	services     []*task // of tasks
	named        map[string]*task
	hosted       map[string]*task // by container
	asked        map[string]*task // by outstanding request
	busy         []*task          // that may not be idle (findBusy)
	busyIn       busyIn           // in which these were found
	anyExpiring  bool             // a task may have expiring containers
	orphans      int              // tasks whose container is an orphan
	openFaults   int              // tasks with a fault that is not attributed yet
	unexplained  *task            // whose loss began the generation, by what was heard first; nil: the event log has the reason
	early        journal.Early    // failures of tasks that restart together
	generation   int
	begun        bool        // a task has been started, ever
	elastic      bool        // there are tasks without which their group may do
	absent       []int32     // ordinals of the tasks that are parked
	fixedWorld   bool        // the newest checkpoint can be read by as many ranks only as have saved it
	justSealed   bool        // in this step
	worldChanged bool        // this generation has other members than the one before
	resized      time.Time   // when the members of the group changed last
	grown        []time.Time // when the group was stopped so that others could join, the last few times
	moreWanted   time.Time   // when a person last wanted more tasks, as long as none have joined since; zero: never
	gang         gangStart
	filesSeen    time.Time // when a node was last known to be fetching the files of a container
	requests     int
	sent         time.Time // what was decided until then, agents have been told
	needsJournal bool      // what the last Step did is to be written

	peersNeeded bool // a task has said that it needs the processes of others

	// consistentSaves counts checkpoints since what the services hold may not be
	// consistent (start.go).
	consistentSaves int
	storeRequested  time.Time // when PrepareStore was decided that is not answered; zero: none is

	spares        []*spare
	spareCount    int // wanted
	spareLosses   []time.Time
	noSparesUntil time.Time // none is asked for before

	nodes      *nodes.Nodes
	roles      []*proto.RoleSpec
	dirRemoved time.Time // when a container's directory was removed last
	pace       pace.Pace
	reports    *reconcile.Reports // while reconciling
	liveness   livenessWindow

	outcome   proto.JobState // that the job ends with, once that is decided
	phaseEnds time.Time      // while stopping and releasing

	now     time.Time // of the present step
	actions []action.Action
}

// gangStart is the common start of tasks that is awaited.
type gangStart struct {
	since  time.Time // it is awaited
	quorum time.Time // since when there are as many as every role needs
	told   bool      // that there would be enough, if the checkpoint could be read by fewer
}

// New makes a job of tasks that are named and numbered as given. restarts is how often
// one task may fail by its own fault within Limits.Window, and spares how many idle
// containers are held ready for tasks that lose theirs.
func New(tasks []Task, restarts, spares int, limits Limits) *Job {
	j := &Job{
		limits:     limits.withDefaults(),
		restarts:   restarts,
		spareCount: spares,
		phase:      assembling,
		named:      make(map[string]*task, len(tasks)),
		hosted:     map[string]*task{},
		asked:      map[string]*task{},
	}
	j.nodes = nodes.New(j.limits.Window)
	for i, t := range tasks {
		if !slices.Contains(j.roles, t.Role) {
			j.roles = append(j.roles, t.Role)
		}
		own := &task{name: t.Name, role: t.Role, index: t.Index, ordinal: i, port: t.Port, first: t.Port,
			run: attempt{number: -1}, memoryMB: t.Role.MemoryMb, dirty: true}
		j.tasks = append(j.tasks, own)
		j.named[own.name] = own
		j.elastic = j.elastic || own.elastic()
		if own.service() {
			j.services = append(j.services, own)
		}
	}
	return j
}

// Size is the number of tasks.
func (j *Job) Size() int { return len(j.tasks) }

// Tasks are the tasks' present states, each with its place in the order given to New.
// It takes time in proportion to their number.
func (j *Job) Tasks() iter.Seq2[int, Task] {
	return func(yield func(int, Task) bool) {
		for i, t := range j.tasks {
			if !yield(i, j.view(t)) {
				return
			}
		}
	}
}

// Task is the task of that name; false if there is none.
func (j *Job) Task(name string) (Task, bool) { return j.viewOf(j.named[name]) }

// Hosted is the task that a container hosts; false for a container that no task has,
// or has any longer.
func (j *Job) Hosted(container string) (Task, bool) { return j.viewOf(j.hosted[container]) }

// Stopping is why the attempt in a container was told to end, and with StopToLeave for what cause
// its task leaves; empty: it was not.
func (j *Job) Stopping(container string) (event.StopReason, event.Cause) {
	t := j.hosted[container]
	if t == nil {
		return "", event.CauseUnknown
	}
	return t.run.stop.reason, t.run.stop.cause
}

func (j *Job) viewOf(t *task) (Task, bool) {
	if t == nil {
		return Task{}, false
	}
	return j.view(t), true
}

// Containers are those in which tasks are, may come to be, or may still be.
func (j *Job) Containers() []string {
	var list []string
	for _, t := range j.tasks {
		if t.loc.container != "" {
			list = append(list, t.loc.container)
		}
		list = append(list, t.expiringContainers()...) // its last attempt may still write there
	}
	for _, s := range j.spares {
		if s.container != "" {
			list = append(list, s.container)
		}
	}
	if j.reports != nil {
		list = append(list, j.reports.Containers()...)
	}
	return list
}

// State is the job's state as users see it, and its reason.
func (j *Job) State() (proto.JobState, string) {
	switch {
	case j.phase == finished:
		return j.outcome, j.why
	case j.ending():
		return proto.JobState_JOB_STATE_STOPPING, j.why
	case j.started && j.pace.Quiet:
		return proto.JobState_JOB_STATE_RUNNING, "no task has told of a step for long; the event log says where steps are looked for"
	case j.started:
		return proto.JobState_JOB_STATE_RUNNING, j.why
	case j.waiting != "":
		return proto.JobState_JOB_STATE_WAITING, j.waiting
	}
	return proto.JobState_JOB_STATE_WAITING, j.why
}

// Generation numbers the gang starts, from 0.
func (j *Job) Generation() int { return j.generation }

// Group describes the tasks that restart together.
type Group struct {
	All    int      // how many they are; 0: tasks restart each by itself
	Least  int      // how many of them can work
	Parked []string // those that it does without
	Formed bool     // it has started as its present generation, and was not stopped since
}

// Group is the present generation's; the zero value as long as that is not known after a takeover.
func (j *Job) Group() Group {
	if j.reports != nil {
		return Group{}
	}
	g := Group{Formed: j.phase == jobRunning}
	for _, r := range j.roles {
		if r.Loss == proto.LossRule_LOSS_RULE_ALL {
			g.Least += int(least(r))
		}
	}
	for _, t := range j.tasks {
		if !t.together() {
			continue
		}
		g.All++
		if t.parked {
			g.Parked = append(g.Parked, t.name)
		}
	}
	return g
}

// Limits are the times and counts that are in force.
func (j *Job) Limits() Limits { return j.limits }

// Step takes in an event and returns what to do.
func (j *Job) Step(now time.Time, e event.Event) []action.Action {
	if j.Finished() {
		return nil
	}
	j.now, j.actions, j.justSealed = now, nil, false
	routine := isRoutine(e)
	paced := j.pace.Known()
	defer func() { j.needsJournal = !routine || len(j.actions) > 0 || paced != j.pace.Known() }()
	if j.phase == reconciling {
		j.takeReport(e)
	} else {
		j.handle(e)
	}
	if j.phase == reconciling {
		return j.actions
	}
	if !j.ending() {
		j.decide()
	}
	if j.ending() { // by what has come, or by what was decided
		j.proceedEnding()
	}
	return j.actions
}

// isRoutine reports whether an event comes for as long as the job runs, and holds nothing
// that another application master would have to know.
func isRoutine(e event.Event) bool {
	switch e.(type) {
	case event.StepsReported, event.LivenessConfirmed, event.Sent:
		return true
	}
	return false
}

// decide does what has become due by the event, or by time. Each part may end the job.
func (j *Job) decide() {
	j.findBusy()
	for _, part := range []func(){j.expire, j.vacate, j.growGroup, j.leaveBehind, j.attributeFailure, j.startReady, j.keepSpares, j.checkCompletion, j.watchSteps} {
		if !j.ending() {
			part()
		}
	}
}

// amounts matches what may change each second of a reason for waiting.
var amounts = regexp.MustCompile(`\d[\d.]*( [KMGT]?B)?|nothing`)

// wording is a reason without its amounts: one that differs in these alone is not told again.
func wording(why string) string { return amounts.ReplaceAllString(why, "N") }

func (j *Job) emit(a ...action.Action) { j.actions = append(j.actions, a...) }

// record adds a line to the event log; t is nil for what concerns the job.
func (j *Job) record(t *task, kind, format string, args ...any) {
	name := ""
	if t != nil {
		name = t.name
	}
	j.emit(action.Record{Task: name, Kind: kind, Text: proto.Text(fmt.Sprintf(format, args...))}) // names of files may have any bytes
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

func (j *Job) any(is func(*task) bool) bool { return slices.ContainsFunc(j.tasks, is) }

func (j *Job) handle(e event.Event) {
	switch e := e.(type) {
	case event.Begin:
		for _, t := range j.tasks {
			j.ask(t)
		}
	case event.Recovered:
		j.recovered(e)
	case event.Localizing:
		j.fetching(e)
	case event.ContainerFound:
		j.found(e)
	case event.Allocated:
		j.allocated(e)
	case event.AgentConnected:
		j.attached(e)
	case event.AgentPrepared:
		j.prepared(e)
	case event.Prewarmed:
		if s := j.spareByContainer(e.Container); s != nil {
			s.ready = j.now
		}
	case event.TaskStarted:
		j.taskStarted(e)
	case event.TaskExited:
		j.exited(e)
	case event.PeersNeeded:
		j.peersNeeded = true
	case event.TaskLingers:
		j.lingers(e)
	case event.LetEnd:
		j.letEnd(e)
	case event.ContainerEnded:
		j.containerEnded(e)
	case event.LaunchFailed:
		j.launchFailed(e)
	case event.StorePrepared:
		j.storePrepared(e)
	case event.Sent:
		j.messagesSent(e)
	case event.StepsReported:
		j.stepped(e)
	case event.LivenessConfirmed:
		j.liveness = livenessWindow{e.Since, e.Until}
	case event.AgentFailed:
		j.trouble(e)
	case event.AgentDisconnected:
		j.agentLost(e)
	case event.PreemptionWarned:
		j.preemptionWarned(e)
	case event.PreemptionCanceled:
		j.preemptionCanceled(e)
	case event.NodeDecommissioning:
		j.nodeDecommissioning(e)
	case event.NodeRecommissioned:
		j.nodeRecommissioned(e.Node, "")
	case event.CheckpointFound:
		j.newestIs(e.FixedWorld)
	case event.CheckpointSealed:
		j.justSealed = true
		j.newestIs(e.FixedWorld)
		j.serviceSaved()
		j.sealed()
	case event.Waiting:
		if e.Why != "" && wording(e.Why) != wording(j.waiting) && !j.ending() {
			j.record(nil, action.KindWaiting, "%s", e.Why)
		}
		j.waiting = e.Why
	case event.Noted:
		j.record(nil, action.KindNote, "%s", e.Text)
	case event.Kill:
		j.hurry()
		j.end(proto.JobState_JOB_STATE_KILLED, e.Why)
	case event.RestartRequested:
		j.restartRequested(e)
	case event.ScaleRequested:
		j.scaleRequested(e)
	case event.Broken:
		j.hurry()
		j.end(proto.JobState_JOB_STATE_FAILED, e.Why)
	case event.Tick:
	}
}
