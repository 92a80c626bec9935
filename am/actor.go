package am

import (
	"cmp"
	"time"

	"holdfast/am/core"
	"holdfast/proto"
)

// flushPace is how long, for each task of the job, the first of some events waits
// for the others, to be flushed together: showing and writing down a job, and
// telling agents, takes time in proportion to its size, and what else is lost at
// the same time is not to wait for that before it is asked for.
const flushPace = 30 * time.Microsecond

// actor carries core's actions out: what the driver is to do at once, and what
// is for agents and people to hear when it is flushed, together.
type actor struct {
	m      *Master
	driver Driver

	moments []*proto.JobEvent
	orders  []func()
	binding bool     // an order must not leave before the journal is written
	routed  bool     // tasks have moved
	cut     []string // tasks to which connections are to be cut
	// assigned and starting are the containers for which there are such orders.
	assigned map[string]*proto.Assign
	starting map[string]bool
	dirty    bool // there is something to flush
	due      *time.Timer
}

// step gives core an event. It returns Finish once core decides it.
func (a *actor) step(e core.Event) *core.Finish {
	now := time.Now()
	if attached, is := e.(core.AgentConnected); is {
		a.m.router.forget(attached.Container)
	}
	var finish *core.Finish
	actions := a.m.job.Step(now, e)
	a.m.stages.note(now, e, actions, a.m.job)
	for _, action := range actions {
		a.binding = a.binding || core.RequiresWriteAhead(action)
		if f := a.act(now, action); f != nil {
			finish = f
		}
	}
	if !a.m.job.NeedsJournal() {
		return finish
	}
	clean := !a.dirty
	a.dirty = true
	switch wait := time.Duration(a.m.job.Size()) * flushPace; {
	case finish != nil || wait < time.Millisecond:
		a.flush()
	case clean:
		a.due.Reset(wait)
	}
	return finish
}

func (a *actor) act(now time.Time, action core.Action) *core.Finish {
	m := a.m
	tell := func(send func()) { a.orders = append(a.orders, send) }
	switch action := action.(type) {
	case core.Ask:
		a.driver.Ask(Ask{
			Request: action.Request, Role: cmp.Or(action.Role, "spare"),
			MemoryMB: action.MemoryMB, VCores: action.VCores, GPUs: action.GPUs, Avoid: action.Avoid,
		})
	case core.Withdraw:
		a.driver.Withdraw(action.Request)
	case core.Launch:
		m.launched[action.Container] = true
		a.driver.Launch(action.Container)
	case core.Release:
		a.driver.Release(action.Container)
	case core.Check:
		a.driver.Check(action.Container)
	case core.Assign:
		task := m.orders.assign(action, m.lease(), m.beatEvery(), m.rehearse.of(action.Task))
		a.assigned[action.Container] = task
		tell(func() { m.hub.send(action.Container, &proto.ToAgent{Message: &proto.ToAgent_Assign{Assign: task}}) })
	case core.Start:
		a.starting[action.Container] = true
		tell(func() { m.hub.send(action.Container, m.orders.start(action)) })
	case core.Vacate:
		message := m.orders.stop(action.Grace.Milliseconds(), false)
		tell(func() { m.hub.send(action.Container, message) })
	case core.Stop:
		message := m.orders.stop(m.job.Limits().Stop.Milliseconds(), action.Stack)
		tell(func() { m.hub.send(action.Container, message) })
	case core.ReleaseAgent:
		tell(func() { m.hub.send(action.Container, m.orders.bye(action.Why)) })
	case core.Route:
		a.routed = true
		a.cut = append(a.cut, action.Cut...)
	case core.PrepareStore:
		m.secure(action.AllDown)
	case core.Record:
		a.moments = append(a.moments, &proto.JobEvent{
			AtUnixMs: now.UnixMilli(), Task: action.Task, Kind: action.Kind, Text: action.Text, SinceLossMs: action.TookMS,
		})
		m.cfg.Log.WithField("task", action.Task).Infof("%s: %s", action.Kind, action.Text)
	case core.Finish:
		return &action
	}
	return nil
}

// flush shows the job and has the orders given.
func (a *actor) flush() {
	if !a.dirty {
		return
	}
	m := a.m
	m.board.show(m.job, a.moments, m.stages.of)
	m.rehearseSpares()
	orders := a.orders
	if a.routed || len(a.starting) > 0 {
		news := m.router.news(m.job.Tasks(), a.cut, a.starting)
		orders = append([]func(){func() {
			for _, d := range news {
				m.hub.sendToAll(d.containers, d.message)
			}
		}}, orders...)
	}
	if m.router.known() {
		for container, task := range a.assigned {
			m.router.tell(container, task)
		}
	}
	m.give(errand{orders: orders, binding: a.binding})
	a.moments, a.orders, a.cut = nil, nil, nil
	a.binding, a.routed, a.dirty = false, false, false
	clear(a.assigned)
	clear(a.starting)
}
