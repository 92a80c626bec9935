package yarn

import (
	"fmt"
	"slices"
	"strings"

	"holdfast/am/core/action"
	hadoop "holdfast/internal/hadoop/yarn"
)

// clusterView is what is known of the cluster while a job waits.
type clusterView struct {
	nodes    []hadoop.Node
	queue    hadoop.Queue
	hasQueue bool
	headroom hadoop.Resource // what the limits of queue and user leave, as the scheduler reports
	hasRoom  bool
	avoided  map[string]bool
	place    placement
	occupied func(a action.Ask, host string) bool // table.occupied; nil: no role is spread
	held     hadoop.Resource                      // by the job's containers that are not to end
	counted  bool                                 // all resources are counted, and not memory alone
}

// explain describes for a person why asks are not answered; empty if none is pending.
func explain(pending []action.Ask, v clusterView) string {
	if len(pending) == 0 {
		return ""
	}
	// The largest ask is the hardest to answer.
	a := slices.MaxFunc(pending, func(a, b action.Ask) int {
		if a.GPUs != b.GPUs {
			return int(a.GPUs - b.GPUs)
		}
		if len(a.Others) != len(b.Others) {
			return len(a.Others) - len(b.Others)
		}
		return int(a.MemoryMB - b.MemoryMB)
	})
	need := v.held
	for _, p := range pending {
		need = need.Plus(resourceOf(p))
	}
	return fmt.Sprintf("waiting for %s: %s", countByRole(pending), why(a, need, v))
}

// countByRole describes asks by role: "2 containers for ps, 1 for worker".
func countByRole(pending []action.Ask) string {
	var roles []string
	count := map[string]int{}
	for _, a := range pending {
		if count[a.Role] == 0 {
			roles = append(roles, a.Role)
		}
		count[a.Role]++
	}
	var parts []string
	for i, r := range roles {
		noun := ""
		if i == 0 {
			noun = " containers"
			if count[r] == 1 {
				noun = " container"
			}
		}
		parts = append(parts, fmt.Sprintf("%d%s for %s", count[r], noun, r))
	}
	return strings.Join(parts, ", ")
}

// why describes what is missing for one ask of a job that needs so much in all.
func why(a action.Ask, need hadoop.Resource, v clusterView) string {
	r, label := resourceOf(a), v.place.label(a.Role)
	of := v.place.words(label)
	var running, able []hadoop.Node
	var sick, there int
	for _, n := range v.nodes {
		if !v.place.takes(n, label) || v.place.bans(n.ID.Host) {
			continue
		}
		if there++; !n.Running() {
			if n.State == "UNHEALTHY" || n.State == "LOST" {
				sick++
			}
			continue
		}
		running = append(running, n)
		if r.Fits(n.Capability) {
			able = append(able, n)
		}
	}
	switch {
	case len(v.nodes) > 0 && there == 0:
		return fmt.Sprintf("the cluster has no node%s any longer: see that the label is given to nodes (yarn rmadmin -replaceLabelsOnNode)", of)
	case len(v.nodes) > 0 && len(running) == 0:
		return fmt.Sprintf("the cluster has no node%s that runs (%d lost or unhealthy)", of, sick)
	case len(running) > 0 && len(able) == 0:
		return tooLarge(a, r, running, of)
	}
	if v.hasQueue && !v.queue.Running {
		return fmt.Sprintf("the queue %q is stopped", v.queue.Name)
	}
	if name := v.limited(r, label); name != "" {
		return v.limits(name, a, label, need)
	}
	closed, open := "", able
	if v.occupied != nil && len(able) > 0 {
		open = slices.DeleteFunc(slices.Clone(able), func(n hadoop.Node) bool { return v.occupied(a, n.ID.Host) })
		if len(open) == 0 {
			return fmt.Sprintf("each node%s has a task already with which one of %s may share none (%s); it goes on when another node can take it", of, a.Role, v.place.rules(a.Role))
		}
		if len(open) < len(able) {
			closed = fmt.Sprintf(", of those that it may be on (%s)", v.place.rules(a.Role))
		}
	}
	if len(open) == 0 {
		return "the ResourceManager has not given them yet"
	}
	free := slices.ContainsFunc(open, func(n hadoop.Node) bool { return fit(r, n.Free(), v.counted) > 0 })
	if !free {
		return v.inUse(a, open, of, closed, func(name string) string {
			most, known := v.mostOf(able, name)
			return until("other containers end", name, need, most, known, "the nodes that could serve it have together: ask for less, or have nodes added")
		})
	}
	if slices.ContainsFunc(open, func(n hadoop.Node) bool { return v.avoided[n.ID.Host] }) {
		return "nodes where tasks of this job failed are avoided for the moment"
	}
	return "there is room, and the ResourceManager will give it with the nodes' next heartbeats"
}

// inUse describes that no node of those that are open to an ask has room now. of says of which
// partition they are, closed that there are others, and event, for a resource type, when the job
// goes on.
func (v clusterView) inUse(a action.Ask, open []hadoop.Node, of, closed string, event func(string) string) string {
	r := resourceOf(a)
	for _, name := range slices.Backward(r.Types()) { // memory is the last
		free := func(n hadoop.Node) hadoop.Amount { return n.Free().Of(name) }
		most := slices.MaxFunc(open, func(a, b hadoop.Node) int { return free(a).Compare(free(b)) })
		switch {
		case name == hadoop.VCoresType && !v.counted || r.Of(name).Compare(free(most)) <= 0:
		case name == hadoop.MemoryType:
			return fmt.Sprintf("no node%s has %s free now for %s%s; the most is %s on %s; %s", of, r, a.Role, closed, left(name, most.Free()), most.ID.Host, event(name))
		default:
			return fmt.Sprintf("no node%s has %s free now for %s%s; the most is %s; %s", of, hadoop.Say(name, r.Of(name)), a.Role, closed, left(name, most.Free()), event(name))
		}
	}
	return fmt.Sprintf("no node%s has %s free at the same time for %s%s; it goes on when other containers end", of, r, a.Role, closed)
}

// tooLarge describes that no node is large enough; of says of which partition they are.
func tooLarge(a action.Ask, r hadoop.Resource, running []hadoop.Node, of string) string {
	if r.GPUs > 0 && !slices.ContainsFunc(running, func(n hadoop.Node) bool { return n.Capability.GPUs >= r.GPUs }) {
		return fmt.Sprintf("no node%s has %d GPUs, which %s asks for", of, r.GPUs, a.Role)
	}
	if name := scarce(r, running); name != "" {
		return fmt.Sprintf("no node%s has %s of %s, which %s asks for", of, r.Others[name], name, a.Role)
	}
	most := slices.MaxFunc(running, func(a, b hadoop.Node) int { return int(a.Capability.MemoryMB - b.Capability.MemoryMB) })
	return fmt.Sprintf("no node%s is large enough for %s, which asks for %s; the largest, %s, has %s in all", of, a.Role, r, most.ID.Host, most.Capability)
}

// scarce returns the first of the other resource types of which no node has as much as r in all;
// empty: each has a node.
func scarce(r hadoop.Resource, nodes []hadoop.Node) string {
	var most hadoop.Resource
	for _, n := range nodes {
		most = most.Max(n.Capability)
	}
	return r.Lacks(most)
}

// limited returns the first resource type of which the limits of queue and user leave less
// than r; empty: there is none. A scheduler that counts memory alone tells nothing of others.
// That a queue may have no more since the nodes have no more is not its limit.
func (v clusterView) limited(r hadoop.Resource, label string) string {
	if !v.hasRoom {
		return ""
	}
	for _, name := range r.Types() {
		if name != hadoop.MemoryType && !v.counted {
			continue
		}
		if r.Of(name).Compare(v.headroom.Of(name)) > 0 && (name == hadoop.MemoryType || !v.exhausted(r, label, name)) {
			return name
		}
	}
	return ""
}

// exhausted reports whether it is the nodes of a partition that have less of a resource type
// left than r, and the queue may have all that they have.
func (v clusterView) exhausted(r hadoop.Resource, label, name string) bool {
	all := total(v.in(v.place.partition(label)), name, hadoop.Node.All)
	most, known := v.queueMost(label, name)
	return known && most.Compare(all) >= 0 && r.Of(name).Compare(all.Minus(v.usedOf(label, name))) > 0
}

// limits describes that the limits of the queue, or of its user, leave too little of a
// resource type for an ask.
func (v clusterView) limits(name string, a action.Ask, label string, need hadoop.Resource) string {
	r, others := resourceOf(a), "others in the queue end"
	leaves := fmt.Sprintf("it leaves this job %s%s, and %s asks for %s", left(name, v.headroom), inPartition(v.place.words(label)), a.Role, r)
	most, known := v.queueMost(label, name)
	if used := v.usedOf(label, name); known && r.Of(name).Compare(most.Minus(used)) <= 0 {
		return fmt.Sprintf("the queue %q may have more, and its user may not (user-limit-factor, minimum-user-limit-percent): %s; %s",
			v.queue.Name, leaves, until("other jobs of "+v.user()+" in the queue end", name, need, most, known, queueMay))
	}
	use := ""
	if v.lent(label) { // beyond what the queue may have
		known, others = false, others+", or a node with another label that is not exclusive has room to lend"
	}
	switch {
	case !known:
	case name == hadoop.MemoryType && v.place.partition(label) == "":
		use = fmt.Sprintf(" (%s of at most %s in use)", hadoop.Megabytes(v.queue.Allocated), hadoop.Say(name, most))
	case v.place.partition(label) == "":
		use = fmt.Sprintf(" (it may have %s at most)", hadoop.Say(name, most))
	default: // what it uses of one partition is not known
		use = fmt.Sprintf(" (it may have %s of these nodes at most)", hadoop.Say(name, most))
	}
	return fmt.Sprintf("the queue %q is full%s: %s; %s", v.queue.Name, use, leaves, until(others, name, need, most, known, queueMay))
}

const queueMay = "the queue may ever have: ask for less, or name another queue with --queue"

func (v clusterView) user() string {
	if u := v.place.spec.GetUser(); u != "" {
		return u
	}
	return "the user"
}

// left describes how much there is of a resource type.
func left(name string, r hadoop.Resource) string {
	a := r.Of(name)
	if a.Value <= 0 && name == hadoop.MemoryType {
		return "nothing"
	}
	a.Value = max(a.Value, 0) // a queue may have more than its limit for a while
	return hadoop.Say(name, a)
}

// lent reports whether nodes of other partitions, too, run what is asked for with a label.
func (v clusterView) lent(label string) bool {
	return slices.ContainsFunc(v.nodes, func(n hadoop.Node) bool {
		return n.Running() && n.Label != v.place.partition(label) && v.place.takes(n, label)
	})
}

// queueMost returns how much of a resource type of a partition the queue may ever have, if that
// is known.
func (v clusterView) queueMost(label, name string) (hadoop.Amount, bool) {
	if !v.hasQueue || v.place.several() {
		return hadoop.Amount{}, false
	}
	label = v.place.partition(label)
	if most, ok := v.queue.Most[label]; ok {
		return most.Of(name), true
	}
	share := v.queue.AbsoluteMax
	if label != "" {
		share = v.queue.LabelMax[label]
	}
	all := total(v.in(label), name, hadoop.Node.All)
	all.Value = int64(share * float64(all.Value))
	return all, all.Value > 0
}

// usedOf returns how much of a resource type of a partition is in use at most: by all queues.
func (v clusterView) usedOf(label, name string) hadoop.Amount {
	label = v.place.partition(label)
	used := total(v.in(label), name, func(n hadoop.Node) hadoop.Resource { return n.Used })
	if name == hadoop.MemoryType && label == "" {
		used.Value = max(used.Value, v.queue.Allocated) // the nodes may tell later
	}
	return used
}

// in returns the nodes of a partition.
func (v clusterView) in(label string) []hadoop.Node {
	return slices.DeleteFunc(slices.Clone(v.nodes), func(n hadoop.Node) bool { return n.Label != label })
}

// inPartition is what words returns where no node is spoken of.
func inPartition(of string) string { return strings.Replace(of, " with", " of the nodes with", 1) }

// mostOf returns how much of a resource type nodes that may serve the job have; it is not known
// where some of the job is to be on others.
func (v clusterView) mostOf(able []hadoop.Node, name string) (hadoop.Amount, bool) {
	return total(able, name, hadoop.Node.All), !v.place.several()
}

// total returns how much of a resource type the running nodes have together, of what counts of
// a node.
func total(nodes []hadoop.Node, name string, of func(hadoop.Node) hadoop.Resource) hadoop.Amount {
	var all hadoop.Resource
	for _, n := range nodes {
		if n.Running() {
			all = all.Plus(of(n))
		}
	}
	return all.Of(name)
}

// until describes when a job continues: after an event, or not at all where it needs more
// of a resource type than most, if that is known.
func until(event, name string, need hadoop.Resource, most hadoop.Amount, known bool, what string) string {
	if !known || need.Of(name).Compare(most) <= 0 {
		return "it goes on when " + event
	}
	return fmt.Sprintf("the job needs %s in all, more than the %s that %s", hadoop.Say(name, need.Of(name)), hadoop.Say(name, most), what)
}
