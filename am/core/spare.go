package core

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/core/journal"
	"holdfast/proto"
)

// spare is a container with an agent that has nothing to do until a task loses its own
// container. It is as large as the largest role. A stand-in is one for a certain task:
// one that has to leave its container (moving.go), or whose agent is unreachable.
type spare struct {
	task      *task // nil: for any
	early     bool  // a stand-in of the second kind
	memoryMB  int64
	request   string // outstanding Ask
	container string
	node      string
	host      string
	agentPID  int       // 0: its agent is not connected
	deadline  time.Time // of attach
	files     localizing
	ready     time.Time // by when it has prepared all that it can, since attach
}

// keepSpares asks for spares while the job runs and there are fewer than wanted.
// Where they are lost as often as tasks may lose their containers, no more are
// asked for.
func (j *Job) keepSpares() {
	if j.noSparesUntil.After(j.now) {
		return
	}
	for j.phase == jobRunning && j.unassigned() < j.spareCount {
		if j.unlucky() {
			j.spareCount = 0
			j.record(nil, action.KindNote, "spare containers were lost %s within %s; no more are asked for", times(j.within(j.spareLosses)), j.limits.Window)
			return
		}
		a := action.Ask{MemoryMB: j.largest()}
		for _, t := range j.tasks {
			a.VCores = max(a.VCores, t.role.Vcores)
			a.GPUs = max(a.GPUs, t.role.Gpus)
			a.Others = most(a.Others, t.role.Resources)
		}
		j.askSpare(nil, a)
	}
}

// most returns the greater amount of each resource type. All amounts of one type have the
// same unit (proto.RoleSpec).
func most(a, b map[string]*proto.Amount) map[string]*proto.Amount {
	all := maps.Clone(a)
	for name, amount := range b {
		if all == nil {
			all = map[string]*proto.Amount{}
		}
		if amount.Value > all[name].GetValue() {
			all[name] = amount
		}
	}
	return all
}

// askSpare asks for a spare; t is nil for one for any task.
func (j *Job) askSpare(t *task, a action.Ask) *spare {
	j.requests++
	name := "spare"
	if t != nil {
		name = t.name
	}
	a.Request, a.Avoid = fmt.Sprintf("%s/%d", name, j.requests), j.avoid()
	s := &spare{task: t, memoryMB: a.MemoryMB, request: a.Request}
	j.spares = append(j.spares, s)
	j.emit(a)
	return s
}

// unassigned counts the spares that are for any task.
func (j *Job) unassigned() int {
	n := 0
	for _, s := range j.spares {
		if s.task == nil {
			n++
		}
	}
	return n
}

// unlucky reports whether spares are lost too often to ask for more.
func (j *Job) unlucky() bool { return j.within(j.spareLosses) > j.limits.Losses }

// askStandIn asks for a container for a task that has to leave its own, or may
// have lost it.
func (j *Job) askStandIn(t *task, early bool) {
	if !j.unlucky() {
		s := j.askSpare(t, j.demand(t))
		s.early = early
	}
}

// earlyMost is how many stand-ins there may be when another is asked for early:
// where the application master itself was cut off, all agents seem lost and soon
// are back.
const earlyMost = 4

// askEarly asks for a container for a task whose agent is unreachable, before it is
// known whether the task is lost. The task starts there only once it is; but a
// container that has ended makes its NodeManager report at once, and an ask that
// is there by then is answered without waiting for a node's next heartbeat.
func (j *Job) askEarly(t *task) {
	if j.standIn(t) != nil || len(j.spares)-j.unassigned() >= earlyMost {
		return
	}
	// A spare takes one task only.
	waiting := 0
	for _, o := range j.tasks {
		if o.unreachable() && j.standIn(o) == nil {
			waiting++
		}
	}
	if j.sparesFor(t) < waiting {
		j.askStandIn(t, true)
	}
}

// sparesFor counts the spares for any task that can host a task.
func (j *Job) sparesFor(t *task) int {
	n := 0
	for _, s := range j.spares {
		if s.task == nil && j.fits(s, t) {
			n++
		}
	}
	return n
}

// fits reports whether a spare can host a task now. One for any task runs in the job's
// image.
func (j *Job) fits(s *spare, t *task) bool {
	return (s.task != nil || t.role.Image == "") && s.agentPID != 0 && t.memoryMB <= s.memoryMB && !slices.Contains(j.avoid(), s.node) && !j.hasOrphan(s.node) && !j.occupied(t, s.node)
}

// stands reports whether a task may leave its container for this one now.
func (j *Job) stands(s *spare) bool {
	return s != nil && s.agentPID != 0 && !s.ready.After(j.now)
}

// standIn is a task's stand-in, come or asked for; nil if there is none.
func (j *Job) standIn(t *task) *spare {
	i := slices.IndexFunc(j.spares, func(s *spare) bool { return s.task == t })
	if i < 0 {
		return nil
	}
	return j.spares[i]
}

// spareFor is a spare that can host a task; nil if there is none.
func (j *Job) spareFor(t *task) *spare {
	var found *spare
	for _, s := range j.spares {
		if !j.fits(s, t) {
			continue
		}
		if s.task == t {
			return s
		}
		if s.task == nil && found == nil {
			found = s
		}
	}
	return found
}

// largest is a spare's memory.
func (j *Job) largest() int64 {
	var mb int64
	for _, t := range j.tasks {
		mb = max(mb, t.role.MemoryMb)
	}
	return mb
}

// useSpare gives a spare to a task; keepSpares asks for another.
func (j *Job) useSpare(t *task, s *spare) {
	j.removeSpare(s)
	j.becomeLaunching(t, s.container, s.node, time.Time{})
	j.becomePreparing(t, s.host, s.agentPID, j.now.Add(j.limits.Prepare))
	if !s.early { // else it is what any lost task gets, only sooner
		j.record(t, action.KindNote, "it moves into the spare container on %s", s.node)
	}
	j.emit(action.Assign{Container: t.loc.container, Task: t.name, Port: t.port})
}

// awaitStandIn has a task that lost its container early wait for its stand-in.
func (j *Job) awaitStandIn(t *task, s *spare) {
	if t.memoryMB > s.memoryMB || s.agentPID != 0 || slices.Contains(j.avoid(), s.node) {
		j.giveUpSpare(s)
		j.ask(t)
		return
	}
	j.removeSpare(s)
	if s.container == "" {
		j.becomeWaiting(t, s.request)
		return
	}
	j.becomeLaunching(t, s.container, s.node, s.deadline)
}

// giveUpSpare gives a spare back that is not wanted any longer.
func (j *Job) giveUpSpare(s *spare) {
	j.removeSpare(s)
	if s.container == "" {
		j.emit(action.Withdraw{Request: s.request})
		return
	}
	j.releaseAgent(s.container, s.agentPID)
	j.emit(action.Release{Container: s.container})
}

// dropSpare lets go of a spare that is of no use.
func (j *Job) dropSpare(s *spare, release bool) {
	j.removeSpare(s)
	j.spareLosses = append(j.spareLosses, j.now)
	j.releaseAgent(s.container, s.agentPID)
	if release && s.container != "" {
		j.emit(action.Release{Container: s.container})
	}
}

// heldSpares are the spares that have a container, each as make says of it and of the
// task that it is for; empty: any.
func heldSpares[T any](j *Job, make func(s *spare, task string) T) []T {
	var list []T
	for _, s := range j.spares {
		task := ""
		if s.task != nil {
			task = s.task.name
		}
		if s.container != "" {
			list = append(list, make(s, task))
		}
	}
	return list
}

// spareRecords are for the journal.
func (j *Job) spareRecords() []journal.SpareRecord {
	return heldSpares(j, func(s *spare, task string) journal.SpareRecord {
		return journal.SpareRecord{Container: s.container, Node: s.node, MemoryMB: s.memoryMB, Task: task, Early: s.early}
	})
}

func (j *Job) resumeSpares(r journal.Journal) {
	for _, s := range r.Spares {
		j.spares = append(j.spares, &spare{task: j.named[s.Task], early: s.Early, memoryMB: s.MemoryMB, container: s.Container, node: s.Node})
	}
	j.spareLosses, j.noSparesUntil = journal.Times(r.SpareLosses), journal.Time(r.NoSparesBefore)
}

// recoveredSpares waits for the agents of the spares that were handed over, and gives
// those up that were not: nothing runs there, and an agent that comes is released. It
// returns the containers that are spares still.
func (j *Job) recoveredSpares(e event.Recovered) map[string]bool {
	spares := map[string]bool{}
	for _, s := range slices.Clone(j.spares) {
		node, there := e.Containers[s.container]
		if !there {
			j.removeSpare(s)
			continue
		}
		spares[s.container] = true
		s.node, s.deadline = node, j.now.Add(j.limits.LeaseExpiry)
	}
	return spares
}

// spareAttached takes in that the agent in a spare container is connected. One that has
// a task already was given it by a master that was lost before it wrote that down; it
// has started nothing, and takes no other task.
func (j *Job) spareAttached(s *spare, e event.AgentConnected) {
	s.host, s.agentPID, s.deadline = e.Host, e.PID, time.Time{}
	s.ready = j.now.Add(j.limits.Prewarm)
	if e.Task != "" {
		j.giveUpSpare(s)
	}
}

const notNeeded = "its container is not needed any longer"

// releaseAgent releases an agent that is connected and not needed any longer: where its
// NodeManager is lost, nobody else ends it.
func (j *Job) releaseAgent(container string, agentPID int) {
	if agentPID != 0 {
		j.emit(action.ReleaseAgent{Container: container, Why: notNeeded})
	}
}

func (j *Job) removeSpare(s *spare) {
	j.spares = slices.DeleteFunc(j.spares, func(o *spare) bool { return o == s })
}

// Spare is a spare container as others see it.
type Spare struct {
	Container, Node string
	AgentPID        int    // 0: its agent is not connected
	For             string // the task that it is for; empty: any
	Imminent        bool   // the task seems to be lost already, or may be at any time
}

// Spares are those that have a container.
func (j *Job) Spares() []Spare {
	return heldSpares(j, func(s *spare, task string) Spare {
		return Spare{Container: s.container, Node: s.node, AgentPID: s.agentPID, For: task,
			Imminent: s.early || s.task != nil && s.task.loc.orphan != nil}
	})
}

func (j *Job) spareByRequest(request string) *spare {
	for _, s := range j.spares {
		if s.request != "" && s.request == request {
			return s
		}
	}
	return nil
}

func (j *Job) spareByContainer(container string) *spare {
	for _, s := range j.spares {
		if s.container != "" && s.container == container {
			return s
		}
	}
	return nil
}
