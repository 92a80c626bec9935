package yarn

import (
	"context"
	"fmt"
	"maps"
	"time"

	"holdfast/am/core/action"
	"holdfast/internal/backoff"
	"holdfast/internal/hadoop/token"
	hadoop "holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

const (
	// batchDelay is how long run waits for more commands after the first. They come in
	// bursts, each of which is sent in one call.
	batchDelay = 500 * time.Microsecond
	// inspectionValid is how long an inspection says how much room the nodes have.
	inspectionValid = 1500 * time.Millisecond
	// explainAfter is how long asks may wait before that is explained, and
	// inspectionInterval how often the cluster is inspected at most.
	explainAfter       = 1500 * time.Millisecond
	inspectionInterval = time.Second
	// returnInterval is how often the nodes that are taken out of service are looked for in
	// the list of all, which may be large, and returnTime for how long. After that, they are
	// looked for when a container comes there.
	returnInterval = 30 * time.Second
	returnTime     = 2 * time.Hour
	// avoidTimeout is how long nodes are avoided for asks that are not answered.
	avoidTimeout = 5 * time.Second
	// stopTimeout is how long a stopped container may take to end before it is released
	// at the RM.
	stopTimeout      = 5 * time.Second
	stopPollInterval = 50 * time.Millisecond
	// refusedRetryInterval is how long the scheduler is not asked again for what it has
	// refused.
	refusedRetryInterval = 5 * time.Second
)

// Results of asynchronous calls, for run.
type (
	allocated struct {
		answer *hadoop.Answer
		err    error
	}
	reregistered struct {
		reg hadoop.Registered
		err error
	}
	startResult struct {
		ids    []hadoop.ContainerID
		failed map[hadoop.ContainerID]error
		err    error
	}
	stopResult struct {
		node  hadoop.NodeID
		ended []hadoop.Completed
		left  []hadoop.ContainerID // containers that could not be ended at the node
		err   error
	}
	inspection struct {
		at   time.Time
		view clusterView
		err  error
	}
)

// run is the driver's goroutine. It owns the state until the driver's context ends.
func (d *Driver) run() {
	s := d.s
	heartbeat := time.NewTimer(0)
	defer heartbeat.Stop()
	calling := false // Allocate or Register is under way
	due := time.Now()
	for {
		select {
		case <-d.ctx.Done():
			return
		case <-d.commands.Ready():
			if !backoff.Sleep(d.ctx, batchDelay) {
				return
			}
			d.execute(d.commands.Take())
		case r := <-d.results:
			switch r := r.(type) {
			case allocated:
				calling = false
				due = time.Now().Add(d.afterAllocate(r))
				if hadoop.IsNotRegistered(r.err) || (r.answer != nil && r.answer.Resync) {
					calling = true
					d.async(func() any {
						reg, err := d.master.Register(d.ctx, d.registration())
						return reregistered{reg, err}
					})
				}
			case reregistered:
				calling = false
				due = time.Now().Add(d.afterRegister(r))
			case startResult:
				d.afterStart(r)
			case stopResult:
				d.afterStop(r)
			case localizing:
				d.afterLocalizing(r)
			case inspection:
				d.afterInspection(r)
			case applicationReport:
				d.afterApplicationReport(r)
			case successorCheck:
				d.afterSuccessorCheck(r)
			}
		case <-heartbeat.C:
		}
		if s.broken {
			heartbeat.Stop()
			continue // until Finish
		}
		now := time.Now()
		if s.heartbeatNow {
			s.heartbeatNow, due = false, now
		}
		d.releaseOverdue(now)
		woken := s.wake(now)
		d.inspect(now)
		d.checkSuccessor(now)
		// What follows an error waits for as long as afterError says.
		news := (s.table.hasChanges() || len(s.toRelease) > 0) && !s.failed
		if !calling && (news || !now.Before(due)) {
			calling = true
			h := d.heartbeat(now)
			d.async(func() any {
				a, err := d.master.Allocate(d.ctx, h)
				return allocated{a, err}
			})
		}
		next := due
		if calling {
			next = now.Add(time.Second) // the result wakes run
		}
		if !woken.IsZero() && woken.Before(next) {
			next = woken
		}
		heartbeat.Reset(max(time.Until(next), time.Millisecond))
	}
}

// async calls f on a goroutine of its own and passes the result to run.
func (d *Driver) async(f func() any) {
	d.wg.Go(func() {
		r := f()
		select {
		case d.results <- r:
		case <-d.ctx.Done():
		}
	})
}

// execute carries out the master's commands.
func (d *Driver) execute(commands []any) {
	s := d.s
	starts := map[hadoop.NodeID][]hadoop.Start{}
	stops := map[hadoop.NodeID][]hadoop.ContainerID{}
	for _, c := range commands {
		switch c := c.(type) {
		case action.Ask:
			if err := d.checkAsk(c); err != nil && !s.served {
				d.fail(err)
				return
			}
			s.ask(c, time.Now())
		case newTokens:
			own := d.agent.Credentials.Clone() // the present ones may be in use by a call to a node
			own.Take(agentCredentials(c.Credentials))
			d.agent.Credentials = own
		case withdraw:
			s.withdraw(string(c))
			d.reportWaiting("", len(s.table.pending()) == 0)
		case launch:
			h := s.held[string(c)]
			if h == nil || h.released || h.launching || h.launched {
				break // it has ended meanwhile
			}
			start, err := d.launchOf(h)
			if err != nil {
				d.fail(err)
				return
			}
			h.launching = true
			n := h.container.Node
			starts[n] = append(starts[n], hadoop.Start{Container: h.container, Launch: start})
		case check:
			if h := s.held[string(c)]; h != nil && !h.released {
				s.suspectedAt, s.heartbeatNow = time.Now(), true
			}
		case release:
			h := s.held[string(c)]
			if h == nil || h.released {
				break
			}
			h.released, h.releaseAt = true, time.Now()
			switch {
			case h.launched:
				stops[h.container.Node] = append(stops[h.container.Node], h.container.ID)
			case !h.launching: // else it is stopped once it has been started
				s.releaseAtRM(h)
			}
		}
	}
	for node, list := range starts {
		d.start(node, list)
	}
	for node, ids := range stops {
		d.stop(node, ids)
	}
}

// checkAsk returns an error for an ask that the scheduler would refuse, as far as is known.
func (d *Driver) checkAsk(a action.Ask) error {
	if d.reg.Maximum.Equal(hadoop.Resource{}) { // the answer with it was lost
		return nil
	}
	return hadoop.CheckDemands(d.reg.Maximum, []hadoop.Demand{{Role: a.Role, Count: 1, Resource: resourceOf(a)}})
}

// launchOf returns what to run in a container.
func (d *Driver) launchOf(h *held) (hadoop.Launch, error) {
	keys, err := d.cfg.AgentKeys(h.name)
	if err != nil {
		return hadoop.Launch{}, err
	}
	l := d.agent
	l.Credentials = l.Credentials.Clone()
	l.Credentials.Secrets[proto.SecretAgent] = keys
	l.Environment = maps.Clone(l.Environment)
	l.Environment[proto.EnvContainer] = h.name
	l.Environment[proto.EnvHost] = h.container.Node.Host
	l.Environment["GOMEMLIMIT"] = agentHeap(h.container.Resource)
	return l.In(hadoop.ImageOf(imageName(d.cfg.Spec, h.role), d.cfg.Spec)), nil
}

// imageName returns the image for a role's tasks, or, without a role, the job's.
func imageName(spec *proto.JobSpec, role string) string {
	for _, r := range spec.GetRoles() {
		if r.Name == role && r.Image != "" {
			return r.Image
		}
	}
	return spec.GetImage()
}

// agentHeap returns an agent's GOMEMLIMIT: half of its container's memory, since the rest
// is its task's. Tasks do not get the variable.
func agentHeap(r hadoop.Resource) string { return fmt.Sprintf("%dMiB", r.MemoryMB/2) }

func (d *Driver) start(node hadoop.NodeID, list []hadoop.Start) {
	d.async(func() any {
		r := startResult{}
		for _, s := range list {
			r.ids = append(r.ids, s.Container.ID)
		}
		r.failed, r.err = d.nodes.Start(d.ctx, node, list)
		return r
	})
}

// stop ends containers at their node, and polls the node until they have ended: the RM
// would report that a heartbeat of the node later.
func (d *Driver) stop(node hadoop.NodeID, ids []hadoop.ContainerID) {
	d.async(func() any {
		ctx, cancel := context.WithTimeout(d.ctx, stopTimeout)
		defer cancel()
		r := stopResult{node: node, left: ids}
		var failed map[hadoop.ContainerID]error
		if failed, r.err = d.nodes.Stop(ctx, node, ids); r.err != nil {
			return r
		}
		var waiting []hadoop.ContainerID
		r.left = nil
		for _, id := range ids {
			if failed[id] != nil {
				r.left = append(r.left, id)
			} else {
				waiting = append(waiting, id)
			}
		}
		for len(waiting) > 0 {
			if !backoff.Sleep(d.ctx, stopPollInterval) {
				return r
			}
			list, err := d.nodes.Statuses(ctx, node, waiting)
			if err != nil {
				r.left, r.err = append(r.left, waiting...), err
				return r
			}
			waiting = nil
			for _, c := range list {
				if c.Running {
					waiting = append(waiting, c.ID)
				} else {
					r.ended = append(r.ended, c.Completed)
				}
			}
		}
		return r
	})
}

// releaseOverdue releases at the RM the containers that have not ended in time.
func (d *Driver) releaseOverdue(now time.Time) {
	for _, h := range d.s.held {
		if h.released && !h.releasedAtRM && !h.launching && now.Sub(h.releaseAt) > stopTimeout {
			d.s.releaseAtRM(h)
		}
	}
}

// heartbeat returns the next message to the RM, which counts as sent.
func (d *Driver) heartbeat(now time.Time) hadoop.Heartbeat {
	s := d.s
	if now.Sub(s.refusedAt) > refusedRetryInterval {
		s.table.retryRefused()
	}
	soft := len(s.table.pending()) > 0 && now.Sub(s.allocatedAt) > avoidTimeout
	c := s.table.changes(soft)
	h := hadoop.Heartbeat{Requests: c.requests, Avoid: c.avoid, Allow: c.allow, Release: s.toRelease}
	s.toRelease, s.heartbeatAt = nil, now
	return h
}

// inspect begins an inspection of the cluster if it is time for one, because asks wait or nodes
// are taken out of service.
func (d *Driver) inspect(now time.Time) {
	s := d.s
	since := now.Sub(s.inspectedAt)
	waiting := len(s.table.pending()) > 0 && since >= s.inspectionInterval(now) && now.Sub(s.allocatedAt) >= explainAfter
	missing := s.givenLeaving && since >= inspectionInterval || since >= returnInterval && s.leftWithin(now, returnTime)
	if s.inspecting || !s.downSince.IsZero() || !waiting && !missing {
		return
	}
	s.givenLeaving = false
	s.inspecting = true
	queue := d.reg.Queue
	d.async(func() any {
		ctx, cancel := context.WithTimeout(d.ctx, 10*time.Second)
		defer cancel()
		r := inspection{at: time.Now()}
		if d.client == nil {
			return r // only the scheduler's answers are known
		}
		if r.view.nodes, r.err = d.client.Nodes(ctx); r.err != nil {
			return r
		}
		if q, err := d.client.Queue(ctx, queue); err == nil {
			r.view.queue, r.view.hasQueue = q, true
		}
		return r
	})
}

// newTokens is a command for run.
type newTokens struct{ *token.Credentials }
