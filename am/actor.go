package am

import (
	"cmp"
	"time"

	"holdfast/am/core"
	"holdfast/proto"
)

// flushPace is, for each task of the job, the least time between two flushes:
// showing and writing down a job takes time in proportion to its size, and its
// events must not wait for that.
const flushPace = 10 * time.Microsecond

// actor carries core's actions out: what the driver is to do at once, and what
// is for agents and people to hear when it is flushed, together.
type actor struct {
	m      *Master
	driver Driver

	moments []*proto.Moment
	orders  []func()
	binding bool     // an order must not leave before the journal is written
	routed  bool     // tasks have moved
	cut     []string // tasks to which connections are to be cut
	dirty   bool     // there is something to flush
	places  *places  // of this step, once they were asked for
	flushed time.Time
	due     *time.Timer
}

// step gives core an event. It returns Finish once core decides it.
func (a *actor) step(e core.Event) *core.Finish {
	now := time.Now()
	a.places = nil
	var finish *core.Finish
	actions := a.m.job.Step(now, e)
	a.m.stages.note(now, e, actions, a.m.job)
	for _, action := range actions {
		a.binding = a.binding || core.Binding(action)
		if f := a.act(now, action); f != nil {
			finish = f
		}
	}
	a.dirty = true
	wait := time.Duration(len(a.m.job.Tasks()))*flushPace - time.Since(a.flushed)
	if finish != nil || wait <= 0 {
		a.flush()
	} else {
		a.due.Reset(wait)
	}
	return finish
}

// where gives the places of this step.
func (a *actor) where() *places {
	if a.places == nil {
		a.places = a.m.orders.places(a.m.job.Tasks())
	}
	return a.places
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
		message := m.orders.assign(action, m.lease(), m.rehearse.of(action.Task, a.where))
		tell(func() { m.hub.send(action.Container, message) })
	case core.Start:
		start, err := m.orders.start(action, a.where())
		if err != nil {
			m.Kill(err.Error())
			break
		}
		tell(func() { m.hub.send(action.Container, start) })
	case core.Vacate:
		message := m.orders.stop(action.Grace.Milliseconds())
		tell(func() { m.hub.send(action.Container, message) })
	case core.Stop:
		message := m.orders.stop(m.job.Limits().Stop.Milliseconds())
		tell(func() { m.hub.send(action.Container, message) })
	case core.Bye:
		tell(func() { m.hub.send(action.Container, m.orders.bye(action.Why)) })
	case core.Route:
		a.routed = true
		a.cut = append(a.cut, action.Cut...)
	case core.Secure:
		m.secure(action.AllDown)
	case core.Record:
		a.moments = append(a.moments, &proto.Moment{
			AtUnixMs: now.UnixMilli(), Task: action.Task, Kind: action.Kind, Text: action.Text, TookMs: action.TookMS,
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
	if a.routed { // those whose tasks do not run are told with their next Start
		var running []string
		for _, t := range m.job.Tasks() {
			if t.State == proto.TaskState_TASK_STATE_RUNNING {
				running = append(running, t.Container)
			}
		}
		if len(running) > 0 {
			message := m.orders.route(a.cut, m.job.Tasks())
			orders = append([]func(){func() { m.hub.sendToAll(running, message) }}, orders...)
		}
	}
	m.give(errand{orders: orders, binding: a.binding})
	a.moments, a.orders, a.cut = nil, nil, nil
	a.binding, a.routed, a.dirty = false, false, false
	a.flushed = time.Now()
}
