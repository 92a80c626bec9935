package yarn

import (
	"slices"

	"holdfast/am/core"
	hadoop "holdfast/internal/hadoop/yarn"
)

// nodesChanged tells which nodes are taken out of service, and into it again. What
// ran on a node that is lost or unhealthy the RM reports as ended.
func (d *Driver) nodesChanged(list []hadoop.Node) {
	for _, n := range list {
		d.s.table.nodeChanged(n)
		if n.Unhealthy() {
			d.s.sick[n.ID.Host] = n.Health
		} else {
			delete(d.s.sick, n.ID.Host)
		}
		switch host := n.ID.Host; {
		case n.Leaving() && !d.s.leaving[host]:
			d.s.leaving[host] = true
			d.events.Put(core.NodeDecommissioning{Node: host, Within: n.Timeout, HostsAM: host == d.cfg.Host})
		case n.Running() && d.s.leaving[host]:
			delete(d.s.leaving, host)
			d.events.Put(core.NodeRecommissioned{Node: host})
		}
	}
}

// preempting warns of the containers that the scheduler is going to take. That an
// answer does not name one says nothing: of PreemptionMessage in AllocateResponseProto,
// the CapacityScheduler names a container in one answer only, and the FairScheduler in
// each until the container has ended. See forgotten.
func (d *Driver) preempting(p hadoop.Preemption) {
	for _, contract := range []struct {
		ids    []hadoop.ContainerID
		strict bool
	}{{p.Strict, true}, {p.Negotiable, false}} {
		var names []string
		for _, id := range contract.ids {
			if h := d.s.byID[id]; h != nil && !h.released {
				h.wanted = true
				names = append(names, h.name)
			}
		}
		if len(names) > 0 {
			d.events.Put(core.PreemptionWarned{Containers: names, Strict: contract.strict, Within: d.warning})
		}
	}
}

// forgotten tells of the containers whose preemption was announced by a
// ResourceManager that is no more. Its plans were in its memory only, with both
// schedulers: the one that serves now announces anew what it still wants, and leaves as
// much time as for the first time.
func (d *Driver) forgotten() {
	var names []string
	for _, h := range d.s.held {
		if h.wanted && !h.released {
			names = append(names, h.name)
		}
		h.wanted = false
	}
	if len(names) > 0 {
		slices.Sort(names)
		d.events.Put(core.PreemptionCanceled{Containers: names, Why: "the ResourceManager was restarted"})
	}
}

// changed takes in containers that somebody else has had changed: the token of
// before is no longer good for starting one.
func (d *Driver) changed(list []hadoop.Container) {
	for _, c := range list {
		if h := d.s.byID[c.ID]; h != nil {
			c.Priority = h.container.Priority
			h.container = c
			continue
		}
		h := d.s.add(c)
		h.released, h.quiet = true, true
		d.s.giveBack(h)
	}
}
