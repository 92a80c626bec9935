package core

import (
	"slices"
	"strings"
	"time"

	"holdfast/am/core/action"
	"holdfast/proto"
)

// apart names the containers with which one for a task must not share a node.
func (j *Job) apart(t *task) []string { return j.containersOf(t, t.role.Apart) }

// near names the containers beside which one for a task is wanted: those of the role's other
// tasks, where the role is packed.
func (j *Job) near(t *task) []string {
	return j.containersOf(t, func(o *proto.RoleSpec) bool { return t.role.Pack && o == t.role })
}

// containersOf names the containers of the other tasks of some roles, and those that stand in
// for such tasks.
func (j *Job) containersOf(t *task, some func(*proto.RoleSpec) bool) []string {
	if !slices.ContainsFunc(j.roles, some) { // as in most jobs, which may be large
		return nil
	}
	var list []string
	for _, o := range j.tasks {
		if o != t && o.loc.container != "" && some(o.role) {
			list = append(list, o.loc.container)
		}
	}
	for _, s := range j.spares {
		if s.task != nil && s.task != t && s.container != "" && some(s.task.role) {
			list = append(list, s.container)
		}
	}
	return list
}

// occupied reports whether a node has another task with which this one must not share it.
func (j *Job) occupied(t *task, node string) bool {
	return slices.ContainsFunc(j.roles, t.role.Apart) && j.any(func(o *task) bool {
		return o != t && o.loc.container != "" && o.loc.node == node && t.role.Apart(o.role)
	})
}

// trouble is a failure that is put down to a node.
type trouble struct {
	at  time.Time
	why string
}

// troublesToAvoid is how many failures within Limits.Window make a node one to avoid.
const troublesToAvoid = 2

// noteTrouble puts a failure down to a node. One that is decisive makes it one to avoid by
// itself.
func (j *Job) noteTrouble(node, why string, decisive bool) {
	before, n := len(j.recentTroubles(node)), 1
	if decisive {
		n = troublesToAvoid
	}
	for range n {
		j.nodeTrouble[node] = append(j.nodeTrouble[node], trouble{j.now, why})
	}
	if before < troublesToAvoid && before+n >= troublesToAvoid {
		j.record(nil, action.KindNote, "the node %s is avoided for %s, while others have room: %s", node, j.limits.Window, why)
	}
}

// recentTroubles returns a node's failures that count still, the oldest first.
func (j *Job) recentTroubles(node string) []trouble {
	return slices.DeleteFunc(slices.Clone(j.nodeTrouble[node]), func(x trouble) bool { return j.now.Sub(x.at) >= j.limits.Window })
}

// AvoidedNode is a node to which containers are brought only if no other has room.
type AvoidedNode struct {
	Node, Why string
	// Until is when the node is used again at the latest; zero: not before no task is there any
	// longer. One that is taken out of service is used again as soon as it is known to be back.
	Until time.Time
}

// AvoidedNodes returns those that have failed twice lately, and those that are taken out of
// service, in the order of their names.
func (j *Job) AvoidedNodes() []AvoidedNode {
	list := j.avoided()
	for i, a := range list {
		if a.Until.IsZero() {
			list[i].Until = j.forgottenAt(a.Node)
		}
	}
	return list
}

// avoided returns them without until when those are avoided that are taken out of service.
func (j *Job) avoided() []AvoidedNode {
	var list []AvoidedNode
	for node := range j.nodeTrouble {
		recent := j.recentTroubles(node)
		_, closing := j.closing[node]
		if n := len(recent); n >= troublesToAvoid && !closing {
			list = append(list, AvoidedNode{node, recent[n-1].why, recent[n-troublesToAvoid].at.Add(j.limits.Window)})
		}
	}
	for node := range j.closing {
		list = append(list, AvoidedNode{Node: node, Why: "it is taken out of service"})
	}
	slices.SortFunc(list, func(a, b AvoidedNode) int { return strings.Compare(a.Node, b.Node) })
	return list
}

// avoid names the nodes to avoid.
func (j *Job) avoid() []string {
	var nodes []string
	for _, a := range j.avoided() {
		nodes = append(nodes, a.Node)
	}
	return nodes
}

// TroubleRecord is a failure that is put down to a node, in a Journal.
type TroubleRecord struct {
	At  int64  `json:"at"`
	Why string `json:"why"`
}

// troubleRecords are for the journal.
func (j *Job) troubleRecords() map[string][]TroubleRecord {
	var all map[string][]TroubleRecord
	for node := range j.nodeTrouble {
		for _, x := range j.recentTroubles(node) {
			if all == nil {
				all = map[string][]TroubleRecord{}
			}
			all[node] = append(all[node], TroubleRecord{millis(x.at), x.why})
		}
	}
	return all
}

func (j *Job) resumeTroubles(all map[string][]TroubleRecord) {
	for node, list := range all {
		for _, r := range list {
			j.nodeTrouble[node] = append(j.nodeTrouble[node], trouble{fromMilli(r.At), r.Why})
		}
	}
}
