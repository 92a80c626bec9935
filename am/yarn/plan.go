package yarn

import (
	"cmp"
	"maps"
	"slices"

	hadoop "holdfast/internal/hadoop/yarn"
)

// plan is where the containers of a group are asked for.
type plan struct {
	counts map[string]int32 // by place
	hosts  map[string]bool  // the places that are nodes
	strict bool             // containers on other nodes are of no use
}

// plan returns where to ask for a group's containers.
func (t *table) plan(g *group) plan {
	n := int32(len(g.pending))
	p := plan{counts: map[string]int32{hadoop.Anywhere: n}, hosts: map[string]bool{}}
	// Where no node is known to be named, any may give a container, and those are given back
	// that come where none may be (table.allocated).
	p.strict = t.place.separates(g.role) && len(t.nodes) > 0
	if n == 0 {
		return p
	}
	nodes := t.named(g)
	var shares []int32
	switch {
	case t.place.packs(g.role):
		var together bool
		shares, together = t.pack(g, nodes)
		p.strict = p.strict || together && !t.soft
	case t.place.spreads(g.role):
		shares = t.spread(g, nodes)
	default:
		shares = t.share(g, nodes, p.strict)
	}
	for i, node := range nodes {
		if shares[i] > 0 {
			p.hosts[node.ID.Host] = true
			p.counts[node.ID.Host] += shares[i]
			p.counts[node.Rack] = min(n, p.counts[node.Rack]+shares[i])
		}
	}
	return p
}

// named returns the nodes that the requests for a group name.
func (t *table) named(g *group) []hadoop.Node {
	list := t.usable(g)
	if g.claimed != nil {
		list = slices.DeleteFunc(list, func(n hadoop.Node) bool { return !g.claimed[n.ID.Host] })
	}
	if most := max(maxNamed, 2*len(g.pending)); len(list) > maxNamed && (g.role == "" || len(list) > most) {
		// Those with the most room are the likeliest.
		slices.SortStableFunc(list, func(a, b hadoop.Node) int {
			return cmp.Or(cmp.Compare(t.room(g, b), t.room(g, a)), cmp.Compare(b.Free().MemoryMB, a.Free().MemoryMB))
		})
		if g.role == "" {
			most = maxNamed
		}
		list = list[:most]
	}
	return list
}

// usable returns the nodes that can take some container of a group. Those of partitions that
// it may only borrow from are not among them.
func (t *table) usable(g *group) []hadoop.Node {
	var list []hadoop.Node
	closed := t.closedTo(g)
	for _, n := range t.nodes {
		if n.Running() && n.Rack != "" && n.Label == t.place.partition(g.label) && g.resource.Fits(n.Capability) && !t.avoided[n.ID.Host] && !closed[n.ID.Host] {
			list = append(list, n)
		}
	}
	return list
}

// closedTo returns the nodes that have containers with which no container of a group may
// share them.
func (t *table) closedTo(g *group) map[string]bool {
	if g.role == "" || t.hostOf == nil {
		return nil
	}
	asks := map[string]int{} // for how many asks a node is closed
	for _, a := range g.pending {
		hosts := map[string]bool{}
		for _, c := range a.Apart {
			hosts[t.hostOf(c)] = true
		}
		for host := range hosts {
			asks[host]++
		}
	}
	closed := map[string]bool{}
	for host, n := range asks {
		closed[host] = n == len(g.pending)
	}
	return closed
}

// fit returns how many containers of a group fit into resources.
func (t *table) fit(g *group, there hadoop.Resource) int32 { return fit(g.resource, there, t.counted) }

// room returns how many containers of a group a node has room for now, or in all where that is
// not known.
func (t *table) room(g *group, n hadoop.Node) int32 {
	if t.roomKnown {
		return t.fit(g, n.Free())
	}
	return t.fit(g, n.Capability)
}

// spread names each node for one container. Where there is room on too few, the scheduler
// reserves what comes free on any.
func (t *table) spread(g *group, named []hadoop.Node) []int32 {
	shares := make([]int32, len(named))
	room := int32(0)
	for i, node := range named {
		shares[i] = min(1, t.room(g, node))
		room += shares[i]
	}
	for i := range shares {
		shares[i] = max(shares[i], int32(cmp.Compare(len(g.pending), int(room))))
	}
	return shares
}

// pack puts a group's number on one node that has room for all, or else on as few nodes of one
// rack as have room, or else on as few of all: where the role has containers already, on those
// nodes first. Where there is not as much room anywhere, it returns an even share for each node
// that gets nothing, and false.
func (t *table) pack(g *group, named []hadoop.Node) (shares []int32, together bool) {
	shares = make([]int32, len(named))
	n := int32(len(g.pending))
	own := map[string]int{} // containers of the role, by node and by rack
	for _, c := range g.pending[0].Near {
		if t.hostOf != nil {
			own[t.hostOf(c)]++
		}
	}
	delete(own, "")
	begun := len(own) > 0
	inRack := map[string]int32{}
	for _, node := range named {
		own[node.Rack] += own[node.ID.Host]
		inRack[node.Rack] += t.room(g, node)
	}
	// Nodes in the order in which they are filled.
	order := make([]int, len(named))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := named[a], named[b]
		return cmp.Or(cmp.Compare(own[y.ID.Host], own[x.ID.Host]), cmp.Compare(t.room(g, y), t.room(g, x)))
	})
	fill := func(in func(hadoop.Node) bool) {
		left := n
		for _, i := range order {
			if in(named[i]) {
				shares[i] = min(left, t.room(g, named[i]))
				left -= shares[i]
			}
		}
		together = left == 0
	}
	for _, i := range order {
		if node := named[i]; t.room(g, node) >= n && (!begun || own[node.ID.Host] > 0) {
			fill(func(o hadoop.Node) bool { return o.ID == node.ID })
			return shares, together
		}
	}
	racks := slices.SortedFunc(maps.Keys(inRack), func(a, b string) int {
		return cmp.Or(cmp.Compare(own[b], own[a]), cmp.Compare(inRack[b], inRack[a]), cmp.Compare(a, b))
	})
	for _, rack := range racks {
		if inRack[rack] >= n {
			fill(func(o hadoop.Node) bool { return o.Rack == rack })
			return shares, together
		}
	}
	if fill(func(hadoop.Node) bool { return true }); !together {
		for i := range shares {
			shares[i] = max(shares[i], (n+int32(len(named))-1)/int32(len(named)))
		}
	}
	return shares, together
}

// claim divides the nodes between groups whose roles must not share one, so that none takes
// them all: each gets as many as it needs, and what is left goes round.
func (t *table) claim() {
	var groups []*group
	for _, g := range t.groups {
		if len(g.pending) > 0 && slices.ContainsFunc(t.groups, func(o *group) bool { return len(o.pending) > 0 && t.part(g, o) }) {
			groups = append(groups, g)
		} else if g.claimed != nil {
			g.claimed, g.dirty = nil, true
		}
	}
	if len(groups) == 0 {
		return
	}
	usable := map[*group][]hadoop.Node{}
	for _, g := range groups {
		usable[g] = t.usable(g)
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return cmp.Compare(len(usable[a]), len(usable[b])) })
	all := func(g *group, n hadoop.Node) int32 { return t.fit(g, n.Capability) }
	claims, enough := t.divide(groups, usable, t.room, len(t.nodes))
	if !enough { // when others' containers end
		claims, enough = t.divide(groups, usable, all, len(t.nodes))
	}
	if !enough { // ever; but fewer containers may do
		claims, _ = t.divide(groups, usable, all, 1)
	}
	for _, g := range groups {
		if g.claimed == nil || !maps.Equal(g.claimed, claims[g]) {
			g.claimed, g.dirty = claims[g], true
		}
	}
}

// part reports whether containers of two groups must not share a node.
func (t *table) part(g, o *group) bool { return g.role != o.role && t.place.apart(g.role, o.role) }

// divide returns which nodes each group may use, and whether they have room for all. room is
// how many containers of a group a node is good for, and turn how many nodes a group takes of
// those that it needs before it is the next one's turn.
func (t *table) divide(groups []*group, usable map[*group][]hadoop.Node, room func(*group, hadoop.Node) int32, turn int) (claims map[*group]map[string]bool, enough bool) {
	claims, enough = map[*group]map[string]bool{}, true
	for _, g := range groups {
		claims[g] = map[string]bool{}
	}
	open := func(g *group, host string) bool {
		return !claims[g][host] && !slices.ContainsFunc(groups, func(o *group) bool { return t.part(g, o) && claims[o][host] })
	}
	left, nodes := map[*group]int32{}, map[*group][]hadoop.Node{}
	for _, g := range groups {
		// A role that is spread takes the nodes with the least room, and leaves the others.
		left[g], nodes[g] = int32(len(g.pending)), slices.Clone(usable[g])
		slices.SortStableFunc(nodes[g], func(a, b hadoop.Node) int {
			if t.place.spreads(g.role) {
				a, b = b, a
			}
			return cmp.Compare(room(g, b), room(g, a))
		})
	}
	take := func(g *group) bool {
		i := slices.IndexFunc(nodes[g], func(n hadoop.Node) bool { return room(g, n) > 0 && open(g, n.ID.Host) })
		if left[g] <= 0 || i < 0 {
			return false
		}
		n := nodes[g][i]
		nodes[g] = nodes[g][i+1:] // those before it are taken, or of no use
		claims[g][n.ID.Host] = true
		if t.place.spreads(g.role) {
			left[g]--
		} else {
			left[g] -= room(g, n)
		}
		return true
	}
	for more := true; more; {
		more = false
		for _, g := range groups {
			for n := 0; n < turn && take(g); n++ {
				more = true
			}
		}
	}
	for _, g := range groups {
		enough = enough && left[g] <= 0
	}
	rest := maps.Clone(usable)
	for more := true; more; {
		more = false
		for _, g := range groups {
			for len(rest[g]) > 0 && !open(g, rest[g][0].ID.Host) {
				rest[g] = rest[g][1:]
			}
			if len(rest[g]) > 0 {
				claims[g][rest[g][0].ID.Host], more = true, true
			}
		}
	}
	return claims, enough
}

// share spreads a group's number over nodes: an even share for each, rounded up, and no
// more than there is room for where that is known. To name every node with the whole number
// would put all containers on the first that has room. Where no node has room, none is
// named, unless the scheduler gives no others: the FairScheduler makes room only on the first
// node that is named (FSAppAttempt.getStarvedResourceRequests), or nowhere.
func (t *table) share(g *group, named []hadoop.Node, strict bool) []int32 {
	n, m := int32(len(g.pending)), int32(len(named))
	shares := make([]int32, m)
	if m == 0 {
		return shares
	}
	even := (n + m - 1) / m
	if t.roomKnown && !strict && !slices.ContainsFunc(named, func(n hadoop.Node) bool { return t.fit(g, n.Free()) > 0 }) {
		return shares
	}
	if t.roomKnown {
		for each := even; each <= n; each++ {
			var sum int32
			for i, node := range named {
				shares[i] = min(each, t.fit(g, node.Free()))
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

// fit returns how many containers fit into a node's free resources. Cores count if the scheduler
// counts more than memory.
func fit(r, free hadoop.Resource, counted bool) int32 {
	n := int64(1 << 20)
	if r.MemoryMB > 0 {
		n = min(n, free.MemoryMB/r.MemoryMB)
	}
	if r.VCores > 0 && counted {
		n = min(n, int64(free.VCores/r.VCores))
	}
	if r.GPUs > 0 {
		n = min(n, int64(free.GPUs/r.GPUs))
	}
	for name, a := range r.Others {
		n = min(n, free.Others[name].Times(a))
	}
	return int32(max(n, 0))
}
