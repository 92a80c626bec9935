package am

import (
	"slices"
	"time"

	"holdfast/am/core"
	"holdfast/proto"
)

// Stages of a master's start, in order.
const (
	stageMasterBegan = "process"    // the master's process began
	stageListening   = "listening"  // it has read what it must know
	stageRegistered  = "registered" // the cluster knows it
)

// Stages of a task's start or recovery, in order. A task that starts again in
// place, or moves into a spare container, passes some of them only.
const (
	stageLost      = "lost"      // the master heard of it: a process's end, or a broken stream
	stageEnded     = "ended"     // the cluster told that the container is gone
	stageAsked     = "asked"     // a container was asked for
	stageAllocated = "allocated" // the cluster gave one
	stageAgent     = "agent"     // the agent's process began in it
	stageAttached  = "attached"  // the agent has connected
	stagePrepared  = "prepared"  // it could start the task
	stageOrdered   = "ordered"   // it was decided that it shall
	stageStarted   = "started"   // the task's process runs
)

// began is when this process did, but for what Go's runtime does first.
var began = time.Now()

// stages notes when tasks pass the stages of their last start. It belongs to
// the loop.
type stages struct {
	of map[string][]*proto.Stage // by task, in order of time
	// boxes are the stages of containers that no task has yet: spares, and those
	// that were asked for early.
	boxes  map[string][]*proto.Stage
	silent map[string]time.Time // by container: since when its agent has no stream
	asked  map[string]time.Time // by task: when a container was asked for it last
	agents map[string]time.Time // by container: when its agent's process began
}

func newStages() *stages {
	return &stages{
		of: map[string][]*proto.Stage{}, boxes: map[string][]*proto.Stage{},
		silent: map[string]time.Time{}, asked: map[string]time.Time{}, agents: map[string]time.Time{},
	}
}

func stage(name string, at time.Time) *proto.Stage {
	return &proto.Stage{Name: name, AtUnixMs: at.UnixMilli()}
}

// pass notes a stage of a task. One that was passed already is not passed again.
func (s *stages) pass(task string, p *proto.Stage) {
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

// passIn notes a stage of a container, and of the task in it.
func (s *stages) passIn(job *core.Job, container string, p *proto.Stage) {
	if t, hosted := job.Hosted(container); hosted {
		s.pass(t.Name, p)
		return
	}
	s.boxes[container] = append(s.boxes[container], p)
}

// begin begins a task's stages anew with its loss. What was done for it since
// its agent was lost, before the loss was certain, counts.
func (s *stages) begin(job *core.Job, task string, lost time.Time) {
	delete(s.of, task)
	s.pass(task, stage(stageLost, lost))
	if at := s.asked[task]; !at.Before(lost) {
		s.pass(task, stage(stageAsked, at))
	}
	if t, ok := job.Task(task); ok {
		for _, p := range s.boxes[t.Container] {
			if p.AtUnixMs >= lost.UnixMilli() {
				s.pass(task, p)
			}
		}
		delete(s.boxes, t.Container)
	}
}

// note takes in one step of core: the event and what came of it.
func (s *stages) note(now time.Time, e core.Event, actions []core.Action, job *core.Job) {
	lost, ended := now, ""
	switch e := e.(type) {
	case core.Allocated:
		s.passIn(job, e.Container, stage(stageAllocated, now))
	case core.AgentConnected:
		delete(s.silent, e.Container)
		s.passIn(job, e.Container, stage(stageAgent, s.agents[e.Container]))
		s.passIn(job, e.Container, stage(stageAttached, now))
		delete(s.agents, e.Container)
	case core.AgentPrepared:
		s.passIn(job, e.Container, stage(stagePrepared, now))
	case core.TaskStarted:
		s.passIn(job, e.Container, stage(stageStarted, now))
	case core.AgentDisconnected:
		s.silent[e.Container] = now
	case core.ContainerEnded:
		ended = e.Container
		if at, ok := s.silent[ended]; ok {
			lost = at
		}
	}
	for _, a := range actions {
		switch a := a.(type) {
		case core.Ask:
			s.asked[a.Task] = now
			s.pass(a.Task, stage(stageAsked, now))
		case core.Record:
			if a.Kind == core.KindLost {
				s.begin(job, a.Task, lost)
				if ended != "" {
					s.pass(a.Task, stage(stageEnded, now))
				}
			}
		case core.Start:
			s.pass(a.Task, stage(stageOrdered, now))
		}
	}
	delete(s.silent, ended)
	delete(s.boxes, ended)
}
