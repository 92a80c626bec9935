package yarn

import (
	"maps"
	"slices"

	"holdfast/am/core"
	hadoop "holdfast/internal/hadoop/yarn"
)

// maxNamed is how many nodes an ask names. A request for each goes with every
// change of the table.
const maxNamed = 40

// table is what is asked of the scheduler. It is not safe for concurrent use.
type table struct {
	groups  []*group // in order of priority
	nodes   []hadoop.Node
	room    bool            // nodes' free room is fresh enough to be counted on
	avoided map[string]bool // as the scheduler was told
	unsure  map[string]bool // of which it may have been told
	// apart: one of several groups was refused, and each is told by itself until it
	// is known which.
	apart bool
}

// group is the asks for one resource. The scheduler knows it by its priority,
// since it rounds resources.
type group struct {
	priority int32
	resource hadoop.Resource
	pending  []core.Ask
	told     map[string]bool // places of which the scheduler may hold a number
	dirty    bool            // the scheduler must be told
	sending  bool            // it is being told now
	refused  bool            // the scheduler would not hear of it, when it was told last
	held     bool            // and it is not told until askRefused
}

func newTable() *table { return &table{avoided: map[string]bool{}, unsure: map[string]bool{}} }

func resourceOf(a core.Ask) hadoop.Resource {
	return hadoop.Resource{MemoryMB: a.MemoryMB, VCores: a.VCores, GPUs: a.GPUs}
}

// add takes an ask up.
func (t *table) add(a core.Ask) {
	r := resourceOf(a)
	i := slices.IndexFunc(t.groups, func(g *group) bool { return g.resource == r })
	if i < 0 {
		i = len(t.groups)
		t.groups = append(t.groups, &group{priority: int32(i + 1), resource: r, told: map[string]bool{}})
	}
	g := t.groups[i]
	g.pending = append(g.pending, a)
	g.dirty = true
}

// remove takes an ask back; false: it had been answered.
func (t *table) remove(request string) bool {
	for _, g := range t.groups {
		if i := slices.IndexFunc(g.pending, func(a core.Ask) bool { return a.Request == request }); i >= 0 {
			g.pending = slices.Delete(g.pending, i, i+1)
			g.dirty = true
			return true
		}
	}
	return false
}

// pending are the asks without an answer.
func (t *table) pending() []core.Ask {
	var all []core.Ask
	for _, g := range t.groups {
		all = append(all, g.pending...)
	}
	return all
}

// setNodes gives the cluster's nodes; fresh: their free room is known as of now.
func (t *table) setNodes(nodes []hadoop.Node, fresh bool) {
	t.nodes, t.room = nodes, fresh
	for _, g := range t.groups {
		g.dirty = g.dirty || len(g.pending) > 0
	}
}

// nodeChanged takes in a node's new state. Where no nodes are known, one does
// not help.
func (t *table) nodeChanged(n hadoop.Node) {
	i := slices.IndexFunc(t.nodes, func(o hadoop.Node) bool { return o.ID == n.ID })
	switch {
	case i >= 0:
		t.nodes[i] = n
	case len(t.nodes) > 0:
		t.nodes = append(t.nodes, n)
	}
}

// stale says that the nodes' free room is not known any more.
func (t *table) stale() { t.room = false }

// resend makes everything be told again: the scheduler may have lost it.
func (t *table) resend() {
	for _, g := range t.groups {
		g.dirty, g.sending = true, false
	}
	maps.Copy(t.unsure, t.avoided)
	clear(t.avoided)
}

// change is what the scheduler must be told.
type change struct {
	requests     []hadoop.Request
	avoid, allow []string
}

// changes returns what must be told, and takes it as told. soft: nodes to be
// avoided are not, since nothing else was found for too long.
func (t *table) changes(soft bool) change {
	var c change
	avoid := t.toAvoid()
	if soft {
		avoid = map[string]bool{}
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
	if len(c.avoid)+len(c.allow) > 0 {
		for _, g := range t.groups {
			g.dirty = g.dirty || len(g.pending) > 0
		}
	}
	t.avoided = avoid
	for _, g := range t.groups {
		if !g.news() {
			continue
		}
		if t.apart && len(c.requests) > 0 {
			break
		}
		want := t.want(g)
		for place := range g.told {
			if _, ok := want[place]; !ok {
				want[place] = 0
			}
		}
		g.told = map[string]bool{}
		var places []string
		for place, n := range want {
			places = append(places, place)
			if n > 0 {
				g.told[place] = true
			}
		}
		slices.Sort(places) // "*" before names
		for _, place := range places {
			c.requests = append(c.requests, hadoop.Request{Priority: g.priority, Place: place, Resource: g.resource, Count: want[place]})
		}
		g.dirty, g.sending = false, true
	}
	return c
}

// toAvoid is every node that a pending ask wants to avoid, unless that would
// leave none: the scheduler's list of nodes to avoid is for the whole job.
func (t *table) toAvoid() map[string]bool {
	avoid := map[string]bool{}
	for _, a := range t.pending() {
		for _, host := range a.Avoid {
			avoid[host] = true
		}
	}
	if len(avoid) == 0 {
		return avoid
	}
	for _, g := range t.groups {
		if len(g.pending) > 0 && !slices.ContainsFunc(t.nodes, func(n hadoop.Node) bool {
			return n.Running() && g.resource.Fits(n.Capability) && !avoid[n.ID.Host]
		}) {
			return map[string]bool{}
		}
	}
	return avoid
}

// want is the number of containers for each place.
func (t *table) want(g *group) map[string]int32 {
	n := int32(len(g.pending))
	w := map[string]int32{hadoop.Anywhere: n}
	if n == 0 {
		return w
	}
	named := t.named(g)
	shares := t.share(g, named)
	for i, node := range named {
		if shares[i] > 0 {
			w[node.ID.Host] += shares[i]
			w[node.Rack] = min(n, w[node.Rack]+shares[i])
		}
	}
	return w
}

// named are the nodes to be named for a group.
func (t *table) named(g *group) []hadoop.Node {
	var list []hadoop.Node
	for _, n := range t.nodes {
		if n.Running() && n.Rack != "" && g.resource.Fits(n.Capability) && !t.avoided[n.ID.Host] {
			list = append(list, n)
		}
	}
	if len(list) > maxNamed {
		// Those with the most room are the likeliest.
		slices.SortStableFunc(list, func(a, b hadoop.Node) int { return int(b.Free().MemoryMB - a.Free().MemoryMB) })
		list = list[:maxNamed]
	}
	return list
}

// share spreads the number over the nodes: an even share for each, rounded up,
// and no more than there is room for where that is known. Naming every node with
// the whole number would put all containers on the first that has room. Where none
// has room, none is named: the FairScheduler makes room on the first node that is
// named only (FSAppAttempt.getStarvedResourceRequests), or not at all.
func (t *table) share(g *group, named []hadoop.Node) []int32 {
	n, m := int32(len(g.pending)), int32(len(named))
	shares := make([]int32, m)
	if m == 0 {
		return shares
	}
	even := (n + m - 1) / m
	if t.room && !slices.ContainsFunc(named, func(n hadoop.Node) bool { return fit(g.resource, n.Free()) > 0 }) {
		return shares
	}
	if t.room {
		for each := even; each <= n; each++ {
			var sum int32
			for i, node := range named {
				shares[i] = min(each, fit(g.resource, node.Free()))
				sum += shares[i]
			}
			if sum >= n {
				return shares
			}
		}
	}
	for i := range shares {
		shares[i] = even
	}
	return shares
}

// fit is how many containers fit into a node's free room.
func fit(r, free hadoop.Resource) int32 {
	n := int64(1 << 20)
	if r.MemoryMB > 0 {
		n = min(n, free.MemoryMB/r.MemoryMB)
	}
	if r.GPUs > 0 {
		n = min(n, int64(free.GPUs/r.GPUs))
	}
	// vcores do not count with the default resource calculator.
	return int32(max(n, 0))
}

// allocated finds the ask that a container answers; false: none, release it.
func (t *table) allocated(priority int32, host string) (core.Ask, bool) {
	i := slices.IndexFunc(t.groups, func(g *group) bool { return g.priority == priority })
	if i < 0 {
		return core.Ask{}, false
	}
	g := t.groups[i]
	if g.sending {
		// The scheduler allocated this one before the new number arrived, which
		// was computed without it: tell it again.
		g.dirty = true
	}
	if len(g.pending) == 0 {
		return core.Ask{}, false
	}
	k := max(0, slices.IndexFunc(g.pending, func(a core.Ask) bool { return !slices.Contains(a.Avoid, host) }))
	a := g.pending[k]
	g.pending = slices.Delete(g.pending, k, k+1)
	return a, true
}

// answered ends an exchange: all containers of its answer were passed to allocated.
func (t *table) answered() {
	for _, g := range t.groups {
		if g.sending {
			g.sending, g.refused = false, false
		}
	}
	t.apart = t.apart && t.hasNews()
}

// refused ends an exchange in which the scheduler would not hear of something that
// it was told, and so took in nothing at all.
func (t *table) refused() {
	var told []*group
	for _, g := range t.groups {
		if g.sending {
			told = append(told, g)
		}
	}
	t.apart = true
	if len(told) == 1 {
		told[0].refused, told[0].held = true, true
	}
}

// telling reports whether the scheduler is being told of asks.
func (t *table) telling() bool {
	return slices.ContainsFunc(t.groups, func(g *group) bool { return g.sending && len(g.pending) > 0 })
}

// askRefused has what was refused told again.
func (t *table) askRefused() {
	for _, g := range t.groups {
		g.held = false
	}
}

// unwelcome are the asks that were refused, and not accepted since.
func (t *table) unwelcome() []core.Ask {
	var list []core.Ask
	for _, g := range t.groups {
		if g.refused {
			list = append(list, g.pending...)
		}
	}
	return list
}

// news reports whether the scheduler is to be told of a group: not of one that it
// refuses and that nobody wants any longer.
func (g *group) news() bool { return g.dirty && !g.held && (!g.refused || len(g.pending) > 0) }

// hasNews tells whether changes would return something.
func (t *table) hasNews() bool { return slices.ContainsFunc(t.groups, (*group).news) }
