package yarn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
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
			continue // its end was already reported
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
				h.releaseAt = time.Now() // its time to end begins
				d.stop(h.container.Node, []hadoop.ContainerID{id})
				break
			}
			started[h.container.Node] = append(started[h.container.Node], id)
		case h.released:
			d.s.releaseAtRM(h)
		default:
			// The container is released, and its end is not reported. It may have been
			// started all the same, if only the answer was lost.
			h.released, h.releaseAt = true, time.Now()
			d.s.reported(h)
			d.s.releaseAtRM(h)
			d.events.Put(event.LaunchFailed{Container: h.name, Why: err.Error()})
		}
	}
}

func (d *Driver) afterStop(r stopResult) {
	if r.err != nil {
		d.log.WithError(r.err).Info("cannot stop containers at their node; releasing them at the ResourceManager instead")
	}
	for _, id := range r.left {
		if h := d.s.byID[id]; h != nil {
			d.s.releaseAtRM(h)
		}
	}
	for _, c := range r.ended {
		if h := d.s.byID[c.ID]; h != nil {
			d.s.releaseAtRM(h) // the scheduler may use the room at once
			d.end(h, c)
			d.s.reported(h) // until the RM reports it too
		}
	}
}

// afterAllocate processes the RM's answer and returns the time until the next heartbeat.
func (d *Driver) afterAllocate(r allocated) time.Duration {
	s := d.s
	if s.failed = r.err != nil; s.failed {
		if hadoop.IsInvalidRequest(r.err) {
			s.table.refused()
		}
		s.resend()
		return d.afterError(r.err)
	}
	s.served = s.served || s.table.sendingAsks()
	s.answeredAt = time.Now()
	s.soleMasterAt = s.answeredAt
	repeated := !s.downSince.IsZero() || s.unknownErrors > 0
	if repeated {
		d.log.Info("the ResourceManager answers again")
		d.reportWaiting("", true)
		s.downSince, s.unknownErrorsSince, s.unknownErrors = time.Time{}, time.Time{}, 0
	}
	a := r.answer
	if a.Shutdown {
		d.supersede(errors.New("the ResourceManager wants the application master to end"))
		return time.Second
	}
	d.nodes.Learn(a.NMTokens)
	s.headroom, s.hasRoom = a.Headroom, true
	now := time.Now()
	d.found(a.Previous) // their NodeManagers have just registered with a restarted RM
	for _, c := range a.Allocated {
		h := s.add(c)
		if _, leaving := s.leaving[c.Node.Host]; leaving {
			s.givenLeaving = true
		}
		ask, wanted := action.Ask{}, false
		if !c.Opportunistic { // the node may stop such a container at any time, so none is asked for
			ask, wanted = s.table.allocated(c.Priority, c.Node.Host, h.name)
		}
		if !wanted {
			h.released, h.releaseAt, h.endReported = true, now, true
			s.releaseAtRM(h)
			continue
		}
		s.allocatedAt, s.asksChangedAt = now, now
		h.role = ask.Role
		d.events.Put(event.Allocated{Request: ask.Request, Container: h.name, Node: c.Node.Host})
		d.notePacked(ask, c.Node.Host)
	}
	s.table.answered()
	d.containersChanged(a.Changed)
	d.updateNodes(a.Updated)
	d.warnPreemption(a.Preempt)
	if len(s.table.pending()) == 0 {
		d.reportWaiting("", true)
	}
	for _, c := range a.Completed {
		h := s.byID[c.ID]
		if h == nil {
			if c.ID.Attempt.Number < d.attempt { // while there was no master
				d.events.Put(containerEnded(c, false))
			}
			continue
		}
		s.remove(h)
		d.end(h, c)
	}
	if repeated {
		// The RM may answer a repeated heartbeat with the answer that was lost, and ignore
		// what was new in the repetition.
		s.resend()
	}
	return s.heartbeatInterval(now)
}

// found takes in containers of the job that the RM has, as far as they are not known.
func (d *Driver) found(list []hadoop.Container) {
	for _, c := range list {
		if d.s.byID[c.ID] == nil {
			d.s.add(c).launched = true
			d.events.Put(event.ContainerFound{Container: c.ID.String(), Node: c.Node.Host})
		}
	}
}

// end reports the end of a container, unless that was done.
func (d *Driver) end(h *held, c hadoop.Completed) {
	if h.endReported {
		return
	}
	e := containerEnded(c, h.released)
	if image := imageName(d.cfg.Spec, h.role); image != "" && c.Exit == exitInvalid && e.Diagnostics == "" {
		e.Diagnostics = fmt.Sprintf("the NodeManager of %s did not start the image %s, and only its log says why: see that yarn.nodemanager.runtime.linux.allowed-runtimes there names the image's runtime", h.container.Node.Host, image)
	}
	// YARN reports a lost node in both cases.
	if report, sick := d.s.unhealthy[h.container.Node.Host]; sick && e.Cause == event.CauseNodeLost {
		e.Diagnostics = "its node is unhealthy: " + strings.TrimSpace(report)
	}
	d.events.Put(e)
}

// afterError decides what a failed call to the RM means, and returns the time until the
// next heartbeat.
func (d *Driver) afterError(err error) time.Duration {
	s := d.s
	switch {
	case d.ctx.Err() != nil || hadoop.IsNotRegistered(err):
		return 0
	case hadoop.IsAttemptGone(err), hadoop.IsUnknownApplication(err), rpc.IsInvalidToken(err):
		d.queryApplication(err)
		return time.Second
	case hadoop.IsInvalidRequest(err) && s.served:
		s.refusedAt = s.heartbeatAt
		if list := s.table.refusedAsks(); len(list) > 0 {
			d.reportWaiting(fmt.Sprintf("the scheduler refuses %s: a ResourceManager does so that misses its larger nodes after a restart, or that now allows less (yarn.scheduler.maximum-allocation-*); what runs goes on, and it is asked again every %v (%v)", countByRole(list)+" of "+resourceOf(list[0]).String(), refusedRetryInterval, err), true)
		}
		return 100 * time.Millisecond
	case hadoop.IsInvalidRequest(err):
		d.fail(fmt.Errorf("the scheduler refused what the job asks for; lower it, or look at yarn.scheduler.maximum-allocation-*: %w", err))
		return time.Second
	case rpc.IsDenied(err) && !s.served:
		d.fail(fmt.Errorf("the ResourceManager does not let the application master in: %w", err))
		return time.Second
	case rmUnavailable(err):
		if s.downSince.IsZero() {
			s.downSince = time.Now()
			d.log.WithError(err).Warn("the ResourceManager does not answer")
		}
		d.reportWaiting(fmt.Sprintf("the ResourceManager has not answered since %s; what runs goes on", s.downSince.Format(stamp)), true)
		return 500 * time.Millisecond
	}
	s.unknownErrors++
	if s.unknownErrorsSince.IsZero() {
		s.unknownErrorsSince = time.Now()
	}
	d.log.WithError(err).Warn("the scheduler answered with an error")
	switch {
	case s.unknownErrors < 10:
	case s.served:
		d.reportWaiting(fmt.Sprintf("the ResourceManager has answered with an error since %s; what runs goes on (%v)", s.unknownErrorsSince.Format(stamp), err), true)
	default:
		d.fail(fmt.Errorf("the scheduler answered %d times in a row with an error: %w", s.unknownErrors, err))
	}
	return time.Second
}

// stamp is the format of times that may be some days ago.
const stamp = "Jan 2 15:04:05"

// rmUnavailable reports whether an error says that no ResourceManager serves at present.
func rmUnavailable(err error) bool {
	return rpc.Unreachable(err) || rpc.IsStandby(err) || rpc.IsRetriable(err) || errors.Is(err, context.DeadlineExceeded)
}

// afterRegister continues with an RM that was restarted, and returns the time until the
// next heartbeat.
func (d *Driver) afterRegister(r reregistered) time.Duration {
	s := d.s
	s.resend()
	if s.failed = r.err != nil; s.failed {
		return d.afterError(r.err)
	}
	d.registered(r.reg)
	// It lists all that run, and names none of them again in its answers to heartbeats
	// (SchedulerApplicationAttempt.pullContainersToTransfer): also those of an earlier master
	// whose nodes had not registered with the RM before it, and those that it took for ended.
	d.found(r.reg.Previous)
	d.cancelPreemptions()
	d.log.Info("registered again at a ResourceManager that was restarted")
	return 0
}

// supersede reports that the RM has given up this attempt as the application's master: it
// has started another, or the application is over.
func (d *Driver) supersede(err error) {
	if !d.s.broken {
		d.s.broken = true
		d.superseded <- err
	}
}

// fail reports that the driver cannot go on, so that the job must end.
func (d *Driver) fail(err error) {
	if !d.s.broken {
		d.s.broken = true
		d.events.Put(event.Broken{Why: err.Error()})
	}
}

// reportWaiting emits event.Waiting if the reason has changed. An empty reason, that the job
// does not wait any longer, is emitted only if sure.
func (d *Driver) reportWaiting(why string, sure bool) {
	if why == d.s.waitingWhy || (why == "" && !sure) {
		return
	}
	d.s.waitingWhy = why
	d.events.Put(event.Waiting{Why: why})
}

func (d *Driver) afterInspection(r inspection) {
	s := d.s
	s.inspecting = false
	if r.err != nil {
		s.inspectedAt = r.at
		s.table.roomUnknown()
		if d.ctx.Err() == nil {
			d.log.WithError(r.err).Info("cannot inspect the cluster: why the job waits is not explained, and nodes that are in service again are not found")
		}
		return
	}
	s.inspectedAt = r.at
	s.setNodes(r.view.nodes, r.at)
	d.findReturned(r.view.nodes, r.at)
	pending := s.table.pending()
	if len(pending) == 0 || time.Since(s.allocatedAt) < explainAfter || len(s.table.refusedAsks()) > 0 {
		return // refused asks have been reported already
	}
	r.view.headroom, r.view.hasRoom, r.view.avoided, r.view.place = s.headroom, s.hasRoom, s.table.avoided, s.table.place
	r.view.occupied, r.view.counted = s.table.occupied, d.reg.AllCounted
	for _, h := range s.held {
		if !h.released {
			r.view.held = r.view.held.Plus(h.container.Resource)
		}
	}
	if r.view.queue.Name == "" {
		r.view.queue.Name = d.reg.Queue
	}
	d.reportWaiting(explain(pending, r.view), true)
}
