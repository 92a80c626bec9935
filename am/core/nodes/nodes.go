// Package nodes knows what speaks against bringing containers to a node: failures that are put
// down to it, and that it is taken out of service. What follows for tasks, package core
// decides. It reads no clock.
package nodes

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Nodes are those of a cluster, as far as something speaks against them. It is not safe for
// concurrent use.
type Nodes struct {
	window   time.Duration
	troubles map[string][]trouble // by node
	closing  map[string]Closing
}

// New returns nodes of which nothing bad is known. Window is how long a failure counts, and
// how long a node is avoided of whose way out of service nothing more is heard.
func New(window time.Duration) *Nodes {
	return &Nodes{window: window, troubles: map[string][]trouble{}, closing: map[string]Closing{}}
}

// trouble is a failure that is put down to a node.
type trouble struct {
	at  time.Time
	why string
}

// troublesToAvoid is how many failures within the window make a node one to avoid.
const troublesToAvoid = 2

// Blame puts a failure down to a node. One that is decisive makes it one to avoid by itself.
// It reports whether the node is one since this failure.
func (n *Nodes) Blame(now time.Time, node, why string, decisive bool) (avoid bool) {
	before, times := len(n.recent(now, node)), 1
	if decisive {
		times = troublesToAvoid
	}
	for range times {
		n.troubles[node] = append(n.troubles[node], trouble{now, why})
	}
	return before < troublesToAvoid && before+times >= troublesToAvoid
}

// recent returns a node's failures that count still, the oldest first.
func (n *Nodes) recent(now time.Time, node string) []trouble {
	return slices.DeleteFunc(slices.Clone(n.troubles[node]), func(x trouble) bool { return now.Sub(x.at) >= n.window })
}

// Avoided is a node to which containers are brought only if no other has room.
type Avoided struct {
	Node, Why string
	// Until is when the node is used again at the latest; zero: not before no task is there any
	// longer. One that is taken out of service is used again as soon as it is known to be back.
	Until time.Time
}

// Avoided returns those that have failed twice lately, and those that are taken out of
// service, in the order of their names. Of the latter Until is Forgotten, whether tasks are
// there or not, which only a Job knows.
func (n *Nodes) Avoided(now time.Time) []Avoided {
	var list []Avoided
	for node := range n.troubles {
		recent := n.recent(now, node)
		_, closing := n.closing[node]
		if k := len(recent); k >= troublesToAvoid && !closing {
			list = append(list, Avoided{node, recent[k-1].why, recent[k-troublesToAvoid].at.Add(n.window)})
		}
	}
	for node := range n.closing {
		list = append(list, Avoided{node, "it is taken out of service", n.Forgotten(node)})
	}
	slices.SortFunc(list, func(a, b Avoided) int { return strings.Compare(a.Node, b.Node) })
	return list
}

// Closing is how a node is taken out of service.
type Closing struct {
	Until  time.Time // zero: not known
	Told   time.Time // when that was said last
	Logged bool      // in the event log
}

// closesSoon is how long a node may take to close if no time is told.
const closesSoon = time.Minute

// Gone is when nothing may be on the node any longer, as far as is known.
func (c Closing) Gone() time.Time {
	if c.Until.IsZero() {
		return c.Told.Add(closesSoon)
	}
	return c.Until
}

// Close takes in that a node is taken out of service.
func (n *Nodes) Close(node string, c Closing) { n.closing[node] = c }

// Reopen takes in that a node is in service again, or is not heard of any longer.
func (n *Nodes) Reopen(node string) { delete(n.closing, node) }

// Closes reports whether a node is taken out of service, and how.
func (n *Nodes) Closes(node string) (c Closing, is bool) {
	c, is = n.closing[node]
	return c, is
}

// Closing returns the nodes that are taken out of service, in the order of their names.
func (n *Nodes) Closing() []string { return slices.Sorted(maps.Keys(n.closing)) }

// AnyCloses reports whether Closing returns any. It is fast.
func (n *Nodes) AnyCloses() bool { return len(n.closing) > 0 }

// Forgotten is when a node that is taken out of service, and on which there is no task, is not
// avoided any longer, unless more is heard of it: it is gone by then, or in service.
func (n *Nodes) Forgotten(node string) time.Time {
	c := n.closing[node]
	if c.Until.IsZero() {
		return c.Told.Add(n.window)
	}
	return c.Until.Add(n.window)
}

// Record is a failure that is put down to a node, in a journal.
type Record struct {
	At  int64  `json:"at"` // Unix milliseconds
	Why string `json:"why"`
}

// Records returns the failures that count still, by node; nil if there are none.
func (n *Nodes) Records(now time.Time) map[string][]Record {
	var all map[string][]Record
	for node := range n.troubles {
		for _, x := range n.recent(now, node) {
			if all == nil {
				all = map[string][]Record{}
			}
			all[node] = append(all[node], Record{x.at.UnixMilli(), x.why})
		}
	}
	return all
}

// Resume takes in the failures of a journal.
func (n *Nodes) Resume(all map[string][]Record) {
	for node, list := range all {
		for _, r := range list {
			n.troubles[node] = append(n.troubles[node], trouble{time.UnixMilli(r.At), r.Why})
		}
	}
}
