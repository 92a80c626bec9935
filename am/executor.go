package am

import (
	"cmp"
	"context"
	"time"

	"holdfast/am/core"
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
func (x *executor) step(e core.Event) *core.Finish {
	now := time.Now()
	x.decided = now
	switch e := e.(type) {
	case core.AgentConnected:
		x.m.router.Forget(e.Container)
	}
	var finish *core.Finish
	actions := x.m.job.Step(now, e)
	x.m.stages.Record(now, e, actions, x.m.job)
	for _, action := range actions {
		x.writeAhead = x.writeAhead || core.RequiresWriteAhead(action)
		if f := x.execute(now, action); f != nil {
			finish = f
		}
	}
	if !x.m.job.NeedsJournal() {
		if s, is := e.(core.StepsReported); is && len(s.Counts) > 0 {
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

func (x *executor) execute(now time.Time, action core.Action) *core.Finish {
	m := x.m
	send := func(container string, message *proto.ToAgent) {
		tell := m.agents.Sender(container)
		x.send = append(x.send, func() { tell(message) })
	}
	switch action := action.(type) {
	case core.Ask:
		action.Role = cmp.Or(action.Role, "spare")
		x.driver.Ask(action)
	case core.Withdraw:
		x.driver.Withdraw(action.Request)
	case core.Launch:
		m.preparation.launched[action.Container] = true
		x.driver.Launch(action.Container)
	case core.Release:
		x.driver.Release(action.Container)
	case core.Check:
		x.driver.Check(action.Container)
	case core.Assign:
		heartbeat := proto.HeartbeatInterval(m.job.Limits().Lease, m.job.Size())
		task := m.messages.Assign(action, m.agentLease(), heartbeat, m.prewarmer.Plan(action.Task))
		x.assigned[action.Container] = task
		send(action.Container, &proto.ToAgent{Message: &proto.ToAgent_Assign{Assign: task}})
	case core.ChangePort:
		send(action.Container, &proto.ToAgent{Message: &proto.ToAgent_ChangePort{ChangePort: &proto.ChangePort{Port: int32(action.Port)}}})
	case core.Start:
		x.starting[action.Container] = true
		send(action.Container, m.messages.Start(action))
	case core.Vacate:
		send(action.Container, m.messages.Stop(m.job, action.Container, action.Grace, false))
	case core.Stop:
		send(action.Container, m.messages.Stop(m.job, action.Container, m.job.Limits().Stop, action.Stack))
	case core.EndLingering:
		send(action.Container, &proto.ToAgent{Message: &proto.ToAgent_EndLingering{EndLingering: &proto.EndLingering{}}})
	case core.ReleaseAgent:
		send(action.Container, m.messages.Release(action.Why))
	case core.Route:
		x.routed = true
		x.cut = append(x.cut, action.Cut...)
	case core.PrepareStore:
		m.preparation.start(x.ctx, m.job, action)
	case core.Record:
		x.events = append(x.events, &proto.JobEvent{
			AtUnixMs: now.UnixMilli(), Task: action.Task, Kind: action.Kind, Text: action.Text, SinceLossMs: action.TookMS,
		})
		m.cfg.Log.WithField("task", action.Task).Infof("%s: %s", action.Kind, action.Text)
	case core.RequestAnswered:
		answer := x.answer
		x.send = append(x.send, func() { answer <- action.Refusal })
	case core.Finish:
		return &action
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
