package yarn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/am/core"
	"holdfast/internal/hadoop/rpc"
	hadoop "holdfast/internal/hadoop/yarn"
)

func (d *Driver) afterStart(r startResult) {
	started := map[hadoop.NodeID][]hadoop.ContainerID{}
	defer func() {
		for node, ids := range started {
			d.watchLocalizing(node, ids, localizingAfter)
		}
	}()
	for _, id := range r.ids {
		h := d.s.byID[id]
		if h == nil {
			continue // its end was reported already
		}
		h.launching = false
		err := r.err
		if err == nil {
			err = r.failed[id]
		}
		switch {
		case err == nil:
			h.launched = true
			if h.released {
				d.stop(h.container.Node, []hadoop.ContainerID{id})
				break
			}
			started[h.container.Node] = append(started[h.container.Node], id)
		case h.released:
			d.s.giveBack(h)
		default:
			// The container is given back, and nothing more is said of it. It
			// may have been started all the same: the answer was lost then.
			h.released, h.releaseAt, h.quiet = true, time.Now(), true
			d.s.giveBack(h)
			d.events.Put(core.LaunchFailed{Container: h.name, Why: err.Error()})
		}
	}
}

func (d *Driver) afterStop(r stopResult) {
	if r.err != nil {
		d.log.WithError(r.err).Info("released at the ResourceManager instead")
	}
	for _, id := range r.left {
		if h := d.s.byID[id]; h != nil {
			d.s.giveBack(h)
		}
	}
	for _, c := range r.ended {
		if h := d.s.byID[c.ID]; h != nil {
			d.s.giveBack(h) // the scheduler may use the room at once
			d.end(h, c)
			h.quiet = true // until the RM reports it too
		}
	}
}

// afterAllocate takes the RM's answer in and returns the time to the next heartbeat.
func (d *Driver) afterAllocate(r allocated) time.Duration {
	s := d.s
	if r.err != nil {
		if hadoop.IsInvalidRequest(r.err) {
			s.table.refused()
		}
		s.again()
		return d.afterError(r.err)
	}
	s.served = s.served || s.table.telling()
	s.heard = time.Now()
	s.sure = s.heard
	repeated := !s.downSince.IsZero() || s.odd > 0
	if repeated {
		d.log.Info("the ResourceManager answers again")
		d.say("", true)
		s.downSince, s.oddSince, s.odd = time.Time{}, time.Time{}, 0
	}
	a := r.answer
	if a.Shutdown {
		d.superseded(errors.New("the ResourceManager wants the application master to end"))
		return time.Second
	}
	d.nodes.Learn(a.NMTokens)
	s.headroom, s.hasRoom = a.Headroom, true
	now := time.Now()
	for _, c := range a.Previous {
		if s.byID[c.ID] == nil { // its NodeManager has come to an RM that was restarted too
			s.add(c).launched = true
			d.events.Put(core.ContainerFound{Container: c.ID.String(), Node: c.Node.Host})
		}
	}
	for _, c := range a.Allocated {
		h := s.add(c)
		ask, wanted := core.Ask{}, false
		if !c.Opportunistic { // which nobody asks for: the node may stop it at any time
			ask, wanted = s.table.allocated(c.Priority, c.Node.Host)
		}
		if !wanted {
			h.released, h.releaseAt, h.quiet = true, now, true
			s.giveBack(h)
			continue
		}
		s.answered, s.moved = now, now
		d.events.Put(core.Allocated{Request: ask.Request, Container: h.name, Node: c.Node.Host})
	}
	s.table.answered()
	d.changed(a.Changed)
	d.nodesChanged(a.Updated)
	d.preempting(a.Preempt)
	if len(s.table.pending()) == 0 {
		d.say("", true)
	}
	for _, c := range a.Completed {
		h := s.byID[c.ID]
		if h == nil {
			if c.ID.Attempt.Number < d.attempt { // while no master was there
				d.events.Put(core.ContainerEnded{Container: c.ID.String(), Cause: cause(c, false), Exit: c.Exit, Diagnostics: c.Diagnostics})
			}
			continue
		}
		s.remove(h)
		d.end(h, c)
	}
	if repeated {
		// The answer to a repeated heartbeat may be the one that was lost, with
		// what was new in the repetition ignored.
		s.again()
	}
	return s.pace(now)
}

// end reports a container's end, once.
func (d *Driver) end(h *held, c hadoop.Completed) {
	if h.quiet {
		return
	}
	e := core.ContainerEnded{Container: h.name, Cause: cause(c, h.released), Exit: c.Exit, Diagnostics: c.Diagnostics}
	// YARN says of both that the node is lost.
	if report, sick := d.s.sick[h.container.Node.Host]; sick && e.Cause == core.CauseNodeLost {
		e.Diagnostics = "its node is unhealthy: " + strings.TrimSpace(report)
	}
	d.events.Put(e)
}

// afterError decides what a failed call to the RM means.
func (d *Driver) afterError(err error) time.Duration {
	s := d.s
	switch {
	case d.ctx.Err() != nil || hadoop.IsNotRegistered(err):
		return 0
	case hadoop.IsAttemptGone(err), hadoop.IsUnknownApplication(err), rpc.IsInvalidToken(err):
		d.askAfterUs(err)
		return time.Second
	case hadoop.IsInvalidRequest(err) && s.served:
		s.refusedAt = s.beatAt
		if list := s.table.unwelcome(); len(list) > 0 {
			d.say(fmt.Sprintf("the scheduler refuses %s: a ResourceManager does so that misses its larger nodes after a restart, or that now allows less (yarn.scheduler.maximum-allocation-*); what runs goes on, and it is asked again every %v (%v)", whatFor(list)+" of "+resourceOf(list[0]).String(), refusedPause, err), true)
		}
		return 100 * time.Millisecond
	case hadoop.IsInvalidRequest(err):
		d.breakDown(fmt.Errorf("the scheduler refused what the job asks for; lower it, or look at yarn.scheduler.maximum-allocation-*: %w", err))
		return time.Second
	case rpc.IsDenied(err) && !s.served:
		d.breakDown(fmt.Errorf("the ResourceManager does not let the application master in: %w", err))
		return time.Second
	case away(err):
		if s.downSince.IsZero() {
			s.downSince = time.Now()
			d.log.WithError(err).Warn("the ResourceManager does not answer")
		}
		d.say(fmt.Sprintf("the ResourceManager has not answered since %s; what runs goes on", s.downSince.Format(stamp)), true)
		return 500 * time.Millisecond
	}
	s.odd++
	if s.oddSince.IsZero() {
		s.oddSince = time.Now()
	}
	d.log.WithError(err).Warn("the scheduler answered with an error")
	switch {
	case s.odd < 10:
	case s.served:
		d.say(fmt.Sprintf("the ResourceManager has answered with an error since %s; what runs goes on (%v)", s.oddSince.Format(stamp), err), true)
	default:
		d.breakDown(fmt.Errorf("the scheduler answered %d times in a row with an error: %w", s.odd, err))
	}
	return time.Second
}

// stamp is how a time is told that may be some days ago.
const stamp = "Jan 2 15:04:05"

// away reports whether an error is that no ResourceManager serves just now.
func away(err error) bool {
	return rpc.Unreachable(err) || rpc.IsStandby(err) || rpc.IsRetriable(err) || errors.Is(err, context.DeadlineExceeded)
}

// afterRegister goes on with an RM that was restarted.
func (d *Driver) afterRegister(r reregistered) time.Duration {
	s := d.s
	s.again()
	if r.err != nil {
		return d.afterError(r.err)
	}
	d.registered(r.reg)
	d.forgotten()
	d.log.Info("registered again at a ResourceManager that was restarted")
	return 0
}

// superseded reports that the RM has given up this attempt as the application's master: it
// has started another, or the application is over.
func (d *Driver) superseded(err error) {
	if !d.s.broken {
		d.s.broken = true
		d.supersededBy <- err
	}
}

// breakDown reports that the driver cannot go on, so that the job must end.
func (d *Driver) breakDown(err error) {
	if !d.s.broken {
		d.s.broken = true
		d.events.Put(core.Broken{Why: err.Error()})
	}
}

// say tells why the job waits, if that is new. sure: also that it does not.
func (d *Driver) say(why string, sure bool) {
	if why == d.s.said || (why == "" && !sure) {
		return
	}
	d.s.said = why
	d.events.Put(core.Waiting{Why: why})
}

func (d *Driver) afterLook(r looked) {
	s := d.s
	s.looking = false
	if r.err != nil {
		s.nodesAt = r.at
		s.table.stale()
		if d.ctx.Err() == nil {
			d.log.WithError(r.err).Info("cannot look at the cluster to say why the job waits")
		}
		return
	}
	s.nodesAt = r.at
	s.setNodes(r.view.nodes, r.at)
	pending := s.table.pending()
	if len(pending) == 0 || time.Since(s.answered) < patience || len(s.table.unwelcome()) > 0 {
		return // in the last case it has been told
	}
	r.view.headroom, r.view.hasRoom, r.view.avoided = s.headroom, s.hasRoom, s.table.avoided
	for _, h := range s.held {
		r.view.held += h.container.Resource.MemoryMB
	}
	if r.view.queue.Name == "" {
		r.view.queue.Name = d.reg.Queue
	}
	d.say(explain(pending, r.view), true)
}
