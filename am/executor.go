package am

import (
	"cmp"
	"context"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/recovery"
	"holdfast/proto"
)

// flushDelay is how long, per task of the job, events that arrive together wait to be
// flushed together. To show and journal a job, and to tell its agents, takes time in
// proportion to its size, and what is lost at the same time is to be asked for first.
const flushDelay = 30 * time.Microsecond

// executor carries core's actions out: what concerns the driver at once, and what agents
// and people are to be told when it is flushed.
type executor struct {
	m      *Master
	driver Driver
	ctx    context.Context // of what is done in the background

	events     []*proto.JobEvent
	send       []func()
	decided    time.Time // when the last of that was
	writeAhead bool      // nothing may be sent before the journal is durable
	routed     bool      // tasks have moved
	cut        []string  // tasks to which connections are to be cut
	// assigned and starting are the containers for which there are such messages.
	assigned map[string]*proto.Assign
	starting map[string]bool
	answer   chan<- string // to the last request
	dirty    bool          // there is something to flush
	flushDue *time.Timer
}

func newExecutor(ctx context.Context, m *Master, driver Driver) *executor {
	return &executor{
		m: m, driver: driver, ctx: ctx, flushDue: time.NewTimer(time.Hour),
		assigned: map[string]*proto.Assign{}, starting: map[string]bool{},
	}
}

// step gives core an event and carries out what it decides. It returns core's Finish once
// that is decided.
func (x *executor) step(e event.Event) *action.Finish {
	now := time.Now()
	x.decided = now
	switch e := e.(type) {
	case event.AgentConnected:
		x.m.router.Forget(e.Container)
	}
	var finish *action.Finish
	actions := x.m.job.Step(now, e)
	x.m.stages.Record(now, e, actions, x.m.job)
	for _, a := range actions {
		x.writeAhead = x.writeAhead || action.RequiresWriteAhead(a)
		if f := x.execute(now, a); f != nil {
			finish = f
		}
	}
	if !x.m.job.NeedsJournal() {
		if s, is := e.(event.StepsReported); is && len(s.Counts) > 0 {
			x.m.status.UpdateSpeeds(x.m.job)
		}
		return finish
	}
	clean := !x.dirty
	x.dirty = true
	switch wait := time.Duration(x.m.job.Size()) * flushDelay; {
	case finish != nil || wait < time.Millisecond:
		x.flush()
	case clean:
		x.flushDue.Reset(wait)
	}
	return finish
}

func (x *executor) execute(now time.Time, a action.Action) *action.Finish {
	m := x.m
	send := func(container string, message *proto.ToAgent) {
		tell := m.agents.Sender(container)
		x.send = append(x.send, func() { tell(message) })
	}
	switch a := a.(type) {
	case action.Ask:
		a.Role = cmp.Or(a.Role, "spare")
		x.driver.Ask(a)
	case action.Withdraw:
		x.driver.Withdraw(a.Request)
	case action.Launch:
		m.preparation.launched[a.Container] = true
		x.driver.Launch(a.Container)
	case action.Release:
		x.driver.Release(a.Container)
	case action.Check:
		x.driver.Check(a.Container)
	case action.Assign:
		heartbeat := proto.HeartbeatInterval(m.job.Limits().Lease, m.job.Size())
		task := m.messages.Assign(a, m.agentLease(), heartbeat, m.prewarmer.Plan(a.Task))
		x.assigned[a.Container] = task
		send(a.Container, &proto.ToAgent{Message: &proto.ToAgent_Assign{Assign: task}})
	case action.ChangePort:
		send(a.Container, &proto.ToAgent{Message: &proto.ToAgent_ChangePort{ChangePort: &proto.ChangePort{Port: int32(a.Port)}}})
	case action.Start:
		x.starting[a.Container] = true
		send(a.Container, m.messages.Start(a))
	case action.Vacate:
		send(a.Container, m.messages.Stop(m.job, a.Container, a.Grace, false))
	case action.Stop:
		send(a.Container, m.messages.Stop(m.job, a.Container, m.job.Limits().Stop, a.Stack))
	case action.EndLingering:
		send(a.Container, &proto.ToAgent{Message: &proto.ToAgent_EndLingering{EndLingering: &proto.EndLingering{}}})
	case action.ReleaseAgent:
		send(a.Container, m.messages.Release(a.Why))
	case action.Route:
		x.routed = true
		x.cut = append(x.cut, a.Cut...)
	case action.PrepareStore:
		m.preparation.start(x.ctx, m.job, a)
	case action.Record:
		x.events = append(x.events, &proto.JobEvent{
			AtUnixMs: now.UnixMilli(), Task: a.Task, Kind: a.Kind, Text: a.Text, SinceLossMs: a.TookMS,
		})
		m.cfg.Log.WithField("task", a.Task).Infof("%s: %s", a.Kind, a.Text)
	case action.RequestAnswered:
		answer := x.answer
		x.send = append(x.send, func() { answer <- a.Refusal })
	case action.Finish:
		return &a
	}
	return nil
}

// flush updates the job's status and hands the messages to the journal writer.
func (x *executor) flush() {
	if !x.dirty {
		return
	}
	m := x.m
	m.status.Apply(m.job, x.events, m.stages.ByTask())
	for _, e := range x.events { // which say now what differs of stragglers
		m.notifyOf(e)
	}
	m.prewarmSpares()
	send := x.send
	if x.routed || len(x.starting) > 0 {
		dispatches := m.router.Update(m.job.Tasks(), x.cut, x.starting)
		send = append([]func(){func() {
			for _, d := range dispatches {
				m.agents.SendToAll(d.Containers, d.Message)
			}
		}}, send...)
	}
	if m.router.Started() {
		for container, task := range x.assigned {
			m.router.AddTo(container, task)
		}
	}
	m.write(send, x.decided, x.writeAhead)
	x.events, x.send, x.cut = nil, nil, nil
	x.writeAhead, x.routed, x.dirty = false, false, false
	clear(x.assigned)
	clear(x.starting)
}

// prewarmSpares tells spare containers what to prewarm, as far as they were not told.
func (m *Master) prewarmSpares() {
	for container, prewarm := range m.prewarmer.Spares(m.job) {
		m.agents.Sender(container)(m.messages.Prewarm(prewarm))
	}
}

// write enqueues the job's journal with the messages that depend on it, the last of which was
// decided then. Where no journal is written, it sends them at once.
func (m *Master) write(send []func(), decided time.Time, writeAhead bool) {
	if m.journal == nil {
		for _, s := range send {
			s()
		}
		return
	}
	j := recovery.NewJournal(m.job.Journal(), m.prewarmer.Profiles())
	if j.Outcome != proto.JobState_JOB_STATE_UNSPECIFIED {
		writeAhead = false // a store that does not answer must not keep the job from ending
		m.journal.JobEnds()
	}
	m.journal.Enqueue(recovery.Entry{Journal: j, WriteAhead: writeAhead, Send: send, Decided: decided})
}
