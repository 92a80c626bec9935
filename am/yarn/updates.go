package yarn

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	hadoop "holdfast/internal/hadoop/yarn"
)

// updateNodes takes in the nodes' states, and reports which are decommissioned and which
// are in service again. The RM reports what ran on a lost or unhealthy node as ended.
func (d *Driver) updateNodes(list []hadoop.Node) {
	if len(list) > 0 {
		d.s.nodesChangedAt = time.Now()
	}
	for _, n := range list {
		d.s.table.nodeChanged(n)
		if n.Unhealthy() {
			d.s.unhealthy[n.ID.Host] = n.Health
		} else {
			delete(d.s.unhealthy, n.ID.Host)
		}
		host := n.ID.Host
		switch _, leaving := d.s.leaving[host]; {
		case n.Leaving() && !leaving:
			d.s.leaving[host] = time.Now()
			d.events.Put(event.NodeDecommissioning{Node: host, Within: n.Timeout, HostsAM: host == d.cfg.Host})
		case n.Running() && leaving:
			d.returned(host)
		}
	}
}

// returned reports that a node is in service again.
func (d *Driver) returned(host string) {
	delete(d.s.leaving, host)
	d.events.Put(event.NodeRecommissioned{Node: host})
}

// findReturned looks in the list of the cluster's nodes, as asked for at a time, for nodes that
// are in service again, which answers to heartbeats need not say (AllocateResponseProto,
// updated_nodes): the ResourceManager of Hadoop 3.1 never does, and one that is restarted forgets
// what it was about to say.
func (d *Driver) findReturned(list []hadoop.Node, at time.Time) {
	back := map[string]bool{}
	for _, n := range list {
		if since, leaving := d.s.leaving[n.ID.Host]; leaving && at.After(since) && n.Running() {
			back[n.ID.Host] = true
		}
	}
	for _, n := range list { // of two NodeManagers on one host
		if n.Leaving() {
			delete(back, n.ID.Host)
		}
	}
	for _, host := range slices.Sorted(maps.Keys(back)) {
		d.returned(host)
	}
}

// warnPreemption reports the containers that the scheduler is going to preempt. That an
// answer does not name a container means nothing: in PreemptionMessage
// (AllocateResponseProto), the CapacityScheduler names it in one answer only, and the
// FairScheduler in each until the container has ended. See cancelPreemptions.
func (d *Driver) warnPreemption(p hadoop.Preemption) {
	for _, contract := range []struct {
		ids    []hadoop.ContainerID
		strict bool
	}{{p.Strict, true}, {p.Negotiable, p.Resources.MemoryMB == 0}} {
		var names []string
		for _, id := range contract.ids {
			if h := d.s.byID[id]; h != nil && !h.released {
				h.preemptionWarned = true
				names = append(names, h.name)
			}
		}
		if len(names) > 0 {
			d.events.Put(event.PreemptionWarned{Containers: names, Strict: contract.strict, Within: d.warning})
		}
	}
}

// cancelPreemptions reports the containers whose preemption was announced by a
// ResourceManager that has been restarted. Both schedulers keep their plans in memory
// only: the new one announces again what it still wants, with the full time to stop.
func (d *Driver) cancelPreemptions() {
	var names []string
	for _, h := range d.s.held {
		if h.preemptionWarned && !h.released {
			names = append(names, h.name)
		}
		h.preemptionWarned = false
	}
	if len(names) > 0 {
		slices.Sort(names)
		d.events.Put(event.PreemptionCanceled{Containers: names, Why: "the ResourceManager was restarted"})
	}
}

// containersChanged takes in containers that were changed by others. The previous token
// cannot start such a container any longer.
func (d *Driver) containersChanged(list []hadoop.Container) {
	for _, c := range list {
		if h := d.s.byID[c.ID]; h != nil {
			c.Priority = h.container.Priority
			h.container = c
			continue
		}
		h := d.s.add(c)
		h.released, h.endReported = true, true
		d.s.releaseAtRM(h)
	}
}

// notePacked tells, once all containers of a role that is packed have come, on which nodes they
// are if these are several, and that was not told. ask is the last one that was answered.
func (d *Driver) notePacked(ask action.Ask, host string) {
	s := d.s
	if !s.table.place.packs(ask.Role) || slices.ContainsFunc(s.table.pending(), func(a action.Ask) bool { return a.Role == ask.Role }) {
		return
	}
	on := map[string]int{host: 1}
	for _, c := range ask.Near {
		if h := s.held[c]; h != nil && !h.released {
			on[h.container.Node.Host]++
		}
	}
	racks := map[string]bool{}
	var parts []string
	for _, host := range slices.Sorted(maps.Keys(on)) {
		parts = append(parts, fmt.Sprintf("%d on %s", on[host], host))
		if i := slices.IndexFunc(s.table.nodes, func(n hadoop.Node) bool { return n.ID.Host == host }); i >= 0 {
			racks[s.table.nodes[i].Rack] = true
		}
	}
	where := strings.Join(parts, ", ")
	if s.packed[ask.Role] == where {
		return
	}
	s.packed[ask.Role] = where
	if len(on) == 1 {
		return
	}
	of := "in one rack"
	if len(racks) != 1 {
		of = fmt.Sprintf("in %d racks", len(racks))
	}
	d.events.Put(event.Noted{Text: fmt.Sprintf("the tasks of %s are on %d nodes, %s, as none had room for all (--%s-pack): %s", ask.Role, len(on), of, ask.Role, where)})
}
