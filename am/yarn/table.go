package yarn

import (
	"maps"
	"slices"

	"holdfast/am/core/action"
	hadoop "holdfast/internal/hadoop/yarn"
)

// maxNamed is how many nodes an ask names at most. Each change of a group is a request for
// every one of them.
const maxNamed = 40

// table holds the asks and what the scheduler was told of them. It is not safe for
// concurrent use.
type table struct {
	groups    []*group // in order of priority
	nodes     []hadoop.Node
	counted   bool            // the scheduler counts all resources, and not memory alone
	roomKnown bool            // the nodes' free resources are known as of now
	avoided   map[string]bool // hosts that the scheduler was told to avoid
	unsure    map[string]bool // hosts that it may have been told to avoid
	allowed   []string        // hosts of which the last message says that they need not be avoided
	// inherited: an earlier application master may have told the scheduler to avoid any
	// host, and no node is known yet. The scheduler keeps that for the next one
	// (AppSchedulingInfo.transferStateFromPreviousAppSchedulingInfo).
	inherited bool
	// isolate: one of several groups was refused, and each is sent on its own until it is
	// known which.
	isolate bool
	place   placement
	soft    bool                          // no container has come for long (changes)
	hostOf  func(container string) string // of a container of the job; empty: it has ended
}

// group is the asks for one resource in one partition. The scheduler knows it by its
// priority, since it rounds resources, and keeps one partition for each priority.
type group struct {
	priority int32
	resource hadoop.Resource
	label    string
	role     string          // whose containers are placed by a rule; empty: none is
	claimed  map[string]bool // the nodes that it was told to use; nil: any (plan.go)
	pending  []action.Ask
	known    map[string]bool // places for which the scheduler may hold a number
	dirty    bool            // the scheduler must be told
	sending  bool            // it is in the heartbeat that is under way
	refused  bool            // the scheduler refused it when it was last told
	paused   bool            // it is not sent again until retryRefused
}

func newTable() *table { return &table{avoided: map[string]bool{}, unsure: map[string]bool{}} }

func resourceOf(a action.Ask) hadoop.Resource {
	return hadoop.Resource{MemoryMB: a.MemoryMB, VCores: a.VCores, GPUs: a.GPUs, Others: hadoop.Amounts(a.Others)}
}

// add adds an ask.
func (t *table) add(a action.Ask) {
	r, label, role := resourceOf(a), t.place.label(a.Role), t.place.ruled(a.Role)
	i := slices.IndexFunc(t.groups, func(g *group) bool { return g.resource.Equal(r) && g.label == label && g.role == role })
	if i < 0 {
		i = len(t.groups)
		t.groups = append(t.groups, &group{priority: int32(i + 1), resource: r, label: label, role: role, known: map[string]bool{}})
	}
	g := t.groups[i]
	g.pending = append(g.pending, a)
	g.dirty = true
}

// remove takes an ask back. It returns false if the ask was answered.
func (t *table) remove(request string) bool {
	for _, g := range t.groups {
		if i := slices.IndexFunc(g.pending, func(a action.Ask) bool { return a.Request == request }); i >= 0 {
			g.pending = slices.Delete(g.pending, i, i+1)
			g.dirty = true
			return true
		}
	}
	return false
}

// pending returns the asks that are not answered.
func (t *table) pending() []action.Ask {
	var all []action.Ask
	for _, g := range t.groups {
		all = append(all, g.pending...)
	}
	return all
}

// setNodes sets the cluster's nodes. fresh says that their free resources are known as of
// now.
func (t *table) setNodes(nodes []hadoop.Node, fresh bool) {
	t.nodes, t.roomKnown = nodes, fresh
	if t.inherited {
		for _, n := range nodes {
			t.unsure[n.ID.Host] = true
		}
		t.inherited = len(nodes) == 0
	}
	t.tellAgain()
}

// nodeChanged sets a node's state, unless no nodes are known: one alone does not help.
func (t *table) nodeChanged(n hadoop.Node) {
	i := slices.IndexFunc(t.nodes, func(o hadoop.Node) bool { return o.ID == n.ID })
	switch {
	case i >= 0:
		t.nodes[i] = n
	case len(t.nodes) > 0:
		t.nodes = append(t.nodes, n)
	}
	t.tellAgain()
}

// tellAgain has the scheduler be told where the asks are wanted, as the nodes have changed.
func (t *table) tellAgain() {
	for _, g := range t.groups {
		g.dirty = g.dirty || len(g.pending) > 0
	}
}

// roomUnknown records that the nodes' free resources are not known any longer.
func (t *table) roomUnknown() { t.roomKnown = false }

// resend makes changes return everything again, since the scheduler may have lost it.
func (t *table) resend() {
	for _, g := range t.groups {
		g.dirty, g.sending = true, false
	}
	maps.Copy(t.unsure, t.avoided)
	clear(t.avoided)
	for _, host := range t.allowed {
		t.unsure[host] = true
	}
}

// change is what the scheduler must be told.
type change struct {
	requests     []hadoop.Request
	avoid, allow []string
}

// changes returns what the scheduler must be told, which counts as sent. soft says that no
// container has come for too long: nodes are not avoided any longer, and roles not kept
// together.
func (t *table) changes(soft bool) change {
	var c change
	avoid := t.toAvoid()
	if soft {
		avoid = map[string]bool{}
	}
	for _, host := range t.place.banned() {
		avoid[host] = true
	}
	for host := range avoid {
		if !t.avoided[host] {
			c.avoid = append(c.avoid, host)
		}
	}
	maps.Copy(t.unsure, t.avoided)
	for host := range t.unsure {
		if !avoid[host] {
			c.allow = append(c.allow, host)
		}
	}
	clear(t.unsure)
	slices.Sort(c.avoid)
	slices.Sort(c.allow)
	t.allowed = c.allow
	if len(c.avoid)+len(c.allow) > 0 {
		t.tellAgain()
	}
	t.avoided = avoid
	if t.soft != soft {
		t.soft = soft
		for _, g := range t.groups {
			g.dirty = g.dirty || t.place.packs(g.role) && len(g.pending) > 0
		}
	}
	t.claim()
	for _, g := range t.groups {
		if !g.changed() {
			continue
		}
		if t.isolate && len(c.requests) > 0 {
			break
		}
		p := t.plan(g)
		want := p.counts
		for place := range g.known {
			if _, ok := want[place]; !ok {
				want[place] = 0
			}
		}
		g.known = map[string]bool{}
		var places []string
		for place, n := range want {
			places = append(places, place)
			if n > 0 {
				g.known[place] = true
			}
		}
		slices.Sort(places) // "*" before names
		for _, place := range places {
			c.requests = append(c.requests, hadoop.Request{Priority: g.priority, Place: place, Resource: g.resource, Label: g.label, Count: want[place], Strict: p.strict && !p.hosts[place]})
		}
		g.dirty, g.sending = false, true
	}
	return c
}

// toAvoid returns every node that a pending ask avoids, unless that is known to leave none: the
// scheduler's list of nodes to avoid is for all asks of the job.
func (t *table) toAvoid() map[string]bool {
	avoid := map[string]bool{}
	for _, a := range t.pending() {
		for _, host := range a.Avoid {
			avoid[host] = true
		}
	}
	if len(avoid) == 0 || len(t.nodes) == 0 {
		return avoid
	}
	for _, g := range t.groups {
		if len(g.pending) > 0 && !slices.ContainsFunc(t.nodes, func(n hadoop.Node) bool {
			return n.Running() && t.place.takes(n, g.label) && !t.place.bans(n.ID.Host) && g.resource.Fits(n.Capability) && !avoid[n.ID.Host]
		}) {
			return map[string]bool{}
		}
	}
	return avoid
}

// occupied reports whether a node has a container with which the one for an ask must not
// share it.
func (t *table) occupied(a action.Ask, host string) bool {
	return slices.ContainsFunc(a.Apart, func(c string) bool { return t.hostOf != nil && t.hostOf(c) == host })
}

// ended records that a container has ended: a node may be free for a role that is spread.
func (t *table) ended() {
	for _, g := range t.groups {
		g.dirty = g.dirty || g.role != "" && len(g.pending) > 0
	}
}

// allocated removes and returns the ask that a container answers. It returns false if there
// is none, and the container is to be released.
func (t *table) allocated(priority int32, host, container string) (action.Ask, bool) {
	i := slices.IndexFunc(t.groups, func(g *group) bool { return g.priority == priority })
	if i < 0 {
		return action.Ask{}, false
	}
	g := t.groups[i]
	if g.sending {
		// The scheduler allocated this one before the new number arrived, which
		// was computed without it: tell it again.
		g.dirty = true
	}
	if len(g.pending) == 0 {
		return action.Ask{}, false
	}
	fit := func(a action.Ask) bool { return !t.occupied(a, host) }
	k := slices.IndexFunc(g.pending, func(a action.Ask) bool { return fit(a) && !slices.Contains(a.Avoid, host) })
	if k < 0 {
		k = slices.IndexFunc(g.pending, fit)
	}
	if k < 0 {
		g.dirty = true // the scheduler has lowered its number
		return action.Ask{}, false
	}
	a := g.pending[k]
	g.pending = slices.Delete(g.pending, k, k+1)
	for _, other := range t.groups {
		apart, near := t.place.apart(a.Role, other.role), t.place.packs(other.role) && other.role == a.Role
		for i := range other.pending {
			if o := &other.pending[i]; apart {
				o.Apart = append(slices.Clone(o.Apart), container)
			} else if near {
				o.Near = append(slices.Clone(o.Near), container)
			}
		}
		other.dirty = other.dirty || (apart || near) && len(other.pending) > 0
	}
	return a, true
}

// answered ends an exchange with the scheduler, once all containers of its answer were
// passed to allocated.
func (t *table) answered() {
	for _, g := range t.groups {
		if g.sending {
			g.sending, g.refused = false, false
		}
	}
	t.isolate = t.isolate && t.hasChanges()
}

// refused ends an exchange in which the scheduler refused a request, and so ignored all of
// them.
func (t *table) refused() {
	var told []*group
	for _, g := range t.groups {
		if g.sending {
			told = append(told, g)
		}
	}
	t.isolate = true
	if len(told) == 1 {
		told[0].refused, told[0].paused = true, true
	}
}

// sendingAsks reports whether asks are in the heartbeat that is under way.
func (t *table) sendingAsks() bool {
	return slices.ContainsFunc(t.groups, func(g *group) bool { return g.sending && len(g.pending) > 0 })
}

// retryRefused makes changes return again what was refused.
func (t *table) retryRefused() {
	for _, g := range t.groups {
		g.paused = false
	}
}

// refusedAsks returns the asks that were refused, and not accepted since.
func (t *table) refusedAsks() []action.Ask {
	var list []action.Ask
	for _, g := range t.groups {
		if g.refused {
			list = append(list, g.pending...)
		}
	}
	return list
}

// changed reports whether the scheduler is to be told of a group. A refused group that has
// no asks any longer is not sent.
func (g *group) changed() bool { return g.dirty && !g.paused && (!g.refused || len(g.pending) > 0) }

// hasChanges reports whether changes would return something.
func (t *table) hasChanges() bool { return slices.ContainsFunc(t.groups, (*group).changed) }
