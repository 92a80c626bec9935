package yarn

import (
	"context"
	"fmt"
	"maps"
	"time"

	"holdfast/am/core"
	"holdfast/internal/backoff"
	"holdfast/internal/hadoop/token"
	hadoop "holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

const (
	// gather is how long run waits for more commands after the first: they come
	// in bursts, and a burst belongs into one call.
	gather = 500 * time.Microsecond
	// freshFor is how long a look at the nodes tells what room there is.
	freshFor = 1500 * time.Millisecond
	// patience is how long asks may wait before that is explained, and
	// lookEvery how often the cluster is looked at while they do.
	patience  = 1500 * time.Millisecond
	lookEvery = time.Second
	// avoidFor is how long nodes are avoided for asks that nothing answers.
	avoidFor = 5 * time.Second
	// stopFor is how long a stopped container may take to end before the RM is
	// told to release it.
	stopFor  = 5 * time.Second
	stopPoll = 50 * time.Millisecond
	// refusedPause is how long the scheduler is not asked again for what it refuses.
	refusedPause = 5 * time.Second
)

// Results that come back to run.
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
		left  []hadoop.ContainerID // that the node could not be made to end
		err   error
	}
	looked struct {
		at   time.Time
		view view
		err  error
	}
)

// run owns the state until the driver's context ends.
func (d *Driver) run() {
	s := d.s
	beat := time.NewTimer(0)
	defer beat.Stop()
	calling := false // allocate or register is under way
	due := time.Now()
	for {
		select {
		case <-d.ctx.Done():
			return
		case <-d.commands.Ready():
			if !backoff.Sleep(d.ctx, gather) {
				return
			}
			d.carryOut(d.commands.Take())
		case r := <-d.back:
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
			case looked:
				d.afterLook(r)
			case standing:
				d.afterStanding(r)
			case heir:
				d.afterHeir(r)
			}
		case <-beat.C:
		}
		if s.broken {
			beat.Stop()
			continue // only Finish helps
		}
		now := time.Now()
		if s.hurry {
			s.hurry, due = false, now
		}
		d.giveUpStopping(now)
		d.look(now)
		d.lookForHeir(now)
		news := (s.table.hasNews() || len(s.give) > 0) && s.downSince.IsZero() && s.odd == 0
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
			next = now.Add(time.Second) // its result wakes run
		}
		beat.Reset(max(time.Until(next), time.Millisecond))
	}
}

// async does something elsewhere and brings the result back to run.
func (d *Driver) async(f func() any) {
	d.wg.Go(func() {
		r := f()
		select {
		case d.back <- r:
		case <-d.ctx.Done():
		}
	})
}

// carryOut does what the AM wants.
func (d *Driver) carryOut(commands []any) {
	s := d.s
	starts := map[hadoop.NodeID][]hadoop.Start{}
	stops := map[hadoop.NodeID][]hadoop.ContainerID{}
	for _, c := range commands {
		switch c := c.(type) {
		case core.Ask:
			if err := d.answerable(c); err != nil && !s.served {
				d.breakDown(err)
				return
			}
			s.ask(c, time.Now())
		case newTokens:
			own := d.agent.Credentials.Clone() // the old ones may be on their way to a node
			own.Take(agentCredentials(c.Credentials))
			d.agent.Credentials = own
		case withdraw:
			s.table.remove(string(c))
			d.say("", len(s.table.pending()) == 0)
		case launch:
			h := s.held[string(c)]
			if h == nil || h.released || h.launching || h.launched {
				break // it has ended meanwhile
			}
			start, err := d.launchOf(h)
			if err != nil {
				d.breakDown(err)
				return
			}
			h.launching = true
			n := h.container.Node
			starts[n] = append(starts[n], hadoop.Start{Container: h.container, Launch: start})
		case check:
			if h := s.held[string(c)]; h != nil && !h.released {
				s.doubted, s.hurry = time.Now(), true
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
				s.giveBack(h)
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

// answerable says which asks the scheduler would refuse, as far as is known.
func (d *Driver) answerable(a core.Ask) error {
	if d.reg.Maximum == (hadoop.Resource{}) { // it was told in an answer that was lost
		return nil
	}
	return hadoop.CheckDemands(d.reg.Maximum, []hadoop.Demand{{Role: a.Role, Count: 1, Resource: resourceOf(a)}})
}

// launchOf is what runs in a container.
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
	return l, nil
}

// agentHeap is how much of its container's memory an agent is to use before Go's
// collector does all it can (package runtime): half, as the rest is its task's. Tasks
// do not get the variable.
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

// stop ends containers at their node and asks it until they have ended: the RM
// would tell a node's heartbeat later.
func (d *Driver) stop(node hadoop.NodeID, ids []hadoop.ContainerID) {
	d.async(func() any {
		ctx, cancel := context.WithTimeout(d.ctx, stopFor)
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
			if !backoff.Sleep(d.ctx, stopPoll) {
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

// giveUpStopping releases what should have ended.
func (d *Driver) giveUpStopping(now time.Time) {
	for _, h := range d.s.held {
		if h.released && !h.given && !h.launching && now.Sub(h.releaseAt) > stopFor {
			d.s.giveBack(h)
		}
	}
}

// heartbeat takes what the RM must be told.
func (d *Driver) heartbeat(now time.Time) hadoop.Heartbeat {
	s := d.s
	if now.Sub(s.refusedAt) > refusedPause {
		s.table.askRefused()
	}
	soft := len(s.table.pending()) > 0 && now.Sub(s.answered) > avoidFor
	c := s.table.changes(soft)
	h := hadoop.Heartbeat{Requests: c.requests, Avoid: c.avoid, Allow: c.allow, Release: s.give}
	s.give, s.beatAt = nil, now
	return h
}

// look looks at the cluster while asks wait.
func (d *Driver) look(now time.Time) {
	s := d.s
	if s.looking || len(s.table.pending()) == 0 || !s.downSince.IsZero() ||
		now.Sub(s.nodesAt) < lookEvery || now.Sub(s.answered) < patience {
		return
	}
	s.looking = true
	queue := d.reg.Queue
	d.async(func() any {
		ctx, cancel := context.WithTimeout(d.ctx, 10*time.Second)
		defer cancel()
		r := looked{at: time.Now()}
		if d.client == nil {
			return r // what the scheduler says must do
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

// newTokens is a command to run.
type newTokens struct{ *token.Credentials }
