package status

import (
	"slices"
	"time"

	"holdfast/am/core"
	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/proto"
)

// Stages of a master's start, in order.
const (
	StageProcess    = "process"    // the master's process started
	StageListening  = "listening"  // it has read the spec and what its predecessor left, and serves
	StageRegistered = "registered" // it has registered with the cluster
)

// Stages of a task's start or recovery, in order. A task that restarts in its container,
// or moves into a spare one, passes only some of them.
const (
	stageLost      = "lost"      // the master learned of the loss: a process's exit, or a broken stream
	stageEnded     = "ended"     // the cluster reported that the container is gone
	stageAsked     = "asked"     // a container was asked for
	stageAllocated = "allocated" // the cluster allocated one
	stageAgent     = "agent"     // the agent's process started in it
	stageAttached  = "attached"  // the agent connected
	stagePrepared  = "prepared"  // the agent was ready to start the task
	stageOrdered   = "ordered"   // core decided to start it
	stageStarted   = "started"   // the task's process runs
)

// ProcessStarted is when this process started, as soon as Go code could take the time.
var ProcessStarted = time.Now()

// Stages records when tasks pass the stages of their latest start or recovery. It is not
// safe for concurrent use.
type Stages struct {
	of map[string][]*proto.Stage // by task, in order of time
	// unassigned are the stages of containers without a task: spares, and those that
	// were asked for before a loss was certain.
	unassigned   map[string][]*proto.Stage
	disconnected map[string]time.Time // by container: since when its agent has no stream
	asked        map[string]time.Time // by task: when a container was last asked for
	agents       map[string]time.Time // by container: when its agent's process started
}

// NewStages returns an empty record.
func NewStages() *Stages {
	return &Stages{
		of: map[string][]*proto.Stage{}, unassigned: map[string][]*proto.Stage{},
		disconnected: map[string]time.Time{}, asked: map[string]time.Time{}, agents: map[string]time.Time{},
	}
}

// TakeOver has the records of tasks go on from what an application master before has saved.
func (s *Stages) TakeOver(saved *proto.JobStatus) {
	for _, t := range saved.Tasks {
		if len(t.Stages) > 0 {
			s.of[t.Task] = t.Stages
		}
	}
}

// ByTask returns the stages of each task, in order of time, for reading only. The lists
// in it do not change later.
func (s *Stages) ByTask() map[string][]*proto.Stage { return s.of }

// AgentStarted records when the process of an agent started, which it reports when it
// connects: before event.AgentConnected is recorded.
func (s *Stages) AgentStarted(container string, at time.Time) { s.agents[container] = at }

// NewStage returns a stage that was passed at a time.
func NewStage(name string, at time.Time) *proto.Stage {
	return &proto.Stage{Name: name, AtUnixMs: at.UnixMilli()}
}

// pass records a stage of a task, unless that has passed it already.
func (s *Stages) pass(task string, p *proto.Stage) {
	list := s.of[task]
	if slices.ContainsFunc(list, func(o *proto.Stage) bool { return o.Name == p.Name }) {
		return
	}
	at := len(list)
	for at > 0 && list[at-1].AtUnixMs > p.AtUnixMs {
		at--
	}
	s.of[task] = slices.Insert(slices.Clone(list), at, p) // others may hold the former list
}

// passIn records a stage of a container, for the task in it if there is one.
func (s *Stages) passIn(job *core.Job, container string, p *proto.Stage) {
	if t, hosted := job.Hosted(container); hosted {
		s.pass(t.Name, p)
		return
	}
	s.unassigned[container] = append(s.unassigned[container], p)
}

// begin starts a task's record anew with its loss. Stages that were passed on its behalf
// between the loss and the time at which it was certain count.
func (s *Stages) begin(job *core.Job, task string, lost time.Time) {
	delete(s.of, task)
	s.pass(task, NewStage(stageLost, lost))
	if at := s.asked[task]; !at.Before(lost) {
		s.pass(task, NewStage(stageAsked, at))
	}
	if t, ok := job.Task(task); ok {
		for _, p := range s.unassigned[t.Container] {
			if p.AtUnixMs >= lost.UnixMilli() {
				s.pass(task, p)
			}
		}
		delete(s.unassigned, t.Container)
	}
}

// Record takes in one step of core: an event, and the actions that it led to. It is
// called after job.Step.
func (s *Stages) Record(now time.Time, e event.Event, actions []action.Action, job *core.Job) {
	lost, ended := now, ""
	switch e := e.(type) {
	case event.Allocated:
		s.passIn(job, e.Container, NewStage(stageAllocated, now))
	case event.AgentConnected:
		delete(s.disconnected, e.Container)
		s.passIn(job, e.Container, NewStage(stageAgent, s.agents[e.Container]))
		s.passIn(job, e.Container, NewStage(stageAttached, now))
		delete(s.agents, e.Container)
	case event.AgentPrepared:
		s.passIn(job, e.Container, NewStage(stagePrepared, now))
	case event.TaskStarted:
		s.passIn(job, e.Container, NewStage(stageStarted, now))
	case event.AgentDisconnected:
		s.disconnected[e.Container] = now
	case event.ContainerEnded:
		ended = e.Container
		if at, ok := s.disconnected[ended]; ok {
			lost = at
		}
	}
	for _, a := range actions {
		switch a := a.(type) {
		case action.Ask:
			s.asked[a.Task] = now
			s.pass(a.Task, NewStage(stageAsked, now))
		case action.Record:
			if a.Kind == action.KindLost {
				s.begin(job, a.Task, lost)
				if ended != "" {
					s.pass(a.Task, NewStage(stageEnded, now))
				}
			}
		case action.Start:
			s.pass(a.Task, NewStage(stageOrdered, now))
		}
	}
	delete(s.disconnected, ended)
	delete(s.unassigned, ended)
}
