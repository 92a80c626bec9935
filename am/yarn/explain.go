package yarn

import (
	"fmt"
	"slices"
	"strings"

	"holdfast/am/core"
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
	occupied func(a core.Ask, host string) bool // table.occupied; nil: no role is spread
	held     int64                              // MB of the job's containers
}

// explain describes for a person why asks are not answered; empty if none is pending.
func explain(pending []core.Ask, v clusterView) string {
	if len(pending) == 0 {
		return ""
	}
	// The largest ask is the hardest to answer.
	a := slices.MaxFunc(pending, func(a, b core.Ask) int {
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
		need += p.MemoryMB
	}
	return fmt.Sprintf("waiting for %s: %s", countByRole(pending), why(a, need, v))
}

// countByRole describes asks by role: "2 containers for ps, 1 for worker".
func countByRole(pending []core.Ask) string {
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

// why describes what is missing for one ask of a job that needs a total of need MB.
func why(a core.Ask, need int64, v clusterView) string {
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
	if v.hasRoom && !headroomFits(r, v.headroom) {
		return fmt.Sprintf("the queue %s is full%s: it leaves this job %s%s, and %s asks for %s; %s",
			queueName(v), queueUse(v, label), availableMB(v.headroom), inPartition(of), a.Role, r,
			until("others in the queue end", need, queueMaxMB(v, label), "the queue may ever have: ask for less, or name another queue with --queue"))
	}
	closed := ""
	if v.occupied != nil && len(able) > 0 {
		before := len(able)
		if able = slices.DeleteFunc(able, func(n hadoop.Node) bool { return v.occupied(a, n.ID.Host) }); len(able) == 0 {
			return fmt.Sprintf("each node%s has a task already with which one of %s may share none (%s); it goes on when another node can take it", of, a.Role, v.place.rules(a.Role))
		}
		if len(able) < before {
			closed = fmt.Sprintf(", of those that it may be on (%s)", v.place.rules(a.Role))
		}
	}
	if len(able) == 0 {
		return "the ResourceManager has not given them yet"
	}
	free := slices.ContainsFunc(able, func(n hadoop.Node) bool { return fit(r, n.Free()) > 0 })
	if !free {
		event := until("other containers end", need, v.mostMB(able), "the nodes that could serve it have together: ask for less, or have nodes added")
		if name, most := scarce(r, able, hadoop.Node.Free); name != "" {
			return fmt.Sprintf("no node%s has %s of %s free now for %s%s; the most is %s; %s", of, r.Others[name], name, a.Role, closed, most, event)
		}
		most := slices.MaxFunc(able, func(a, b hadoop.Node) int { return int(a.Free().MemoryMB - b.Free().MemoryMB) })
		return fmt.Sprintf("no node%s has %s free now for %s%s; the most is %s on %s; %s",
			of, r, a.Role, closed, availableMB(most.Free()), most.ID.Host, event)
	}
	if slices.ContainsFunc(able, func(n hadoop.Node) bool { return v.avoided[n.ID.Host] }) {
		return "nodes where tasks of this job failed are avoided for the moment"
	}
	return "there is room, and the ResourceManager will give it with the nodes' next heartbeats"
}

// tooLarge describes that no node is large enough; of says of which partition they are.
func tooLarge(a core.Ask, r hadoop.Resource, running []hadoop.Node, of string) string {
	if r.GPUs > 0 && !slices.ContainsFunc(running, func(n hadoop.Node) bool { return n.Capability.GPUs >= r.GPUs }) {
		return fmt.Sprintf("no node%s has %d GPUs, which %s asks for", of, r.GPUs, a.Role)
	}
	if name, _ := scarce(r, running, func(n hadoop.Node) hadoop.Resource { return n.Capability }); name != "" {
		return fmt.Sprintf("no node%s has %s of %s, which %s asks for", of, r.Others[name], name, a.Role)
	}
	most := slices.MaxFunc(running, func(a, b hadoop.Node) int { return int(a.Capability.MemoryMB - b.Capability.MemoryMB) })
	return fmt.Sprintf("no node%s is large enough for %s, which asks for %s; the largest, %s, has %s in all", of, a.Role, r, most.ID.Host, most.Capability)
}

// scarce returns the first of the other resource types of which no node has as much as r, and
// the most that one has; empty: each has a node. of is what counts of a node.
func scarce(r hadoop.Resource, nodes []hadoop.Node, of func(hadoop.Node) hadoop.Resource) (string, hadoop.Amount) {
	var most hadoop.Resource
	for _, n := range nodes {
		most = most.Max(of(n))
	}
	name := r.Lacks(most)
	return name, most.Others[name]
}

// headroomFits compares the memory only: with the scheduler's default resource calculator,
// the vcores of the headroom mean nothing.
func headroomFits(r, headroom hadoop.Resource) bool { return r.MemoryMB <= headroom.MemoryMB }

func availableMB(r hadoop.Resource) string {
	if r.MemoryMB <= 0 {
		return "nothing"
	}
	return hadoop.Megabytes(r.MemoryMB)
}

func queueName(v clusterView) string { return fmt.Sprintf("%q", v.queue.Name) }

// queueUse describes how much of its limit a queue uses. What it uses of one partition
// is not known.
func queueUse(v clusterView, label string) string {
	most := queueMaxMB(v, label)
	if most == 0 {
		return ""
	}
	if v.place.partition(label) != "" {
		return fmt.Sprintf(" (it may have %s of these nodes at most)", hadoop.Megabytes(most))
	}
	return fmt.Sprintf(" (%s of at most %s in use)", hadoop.Megabytes(v.queue.Allocated), hadoop.Megabytes(most))
}

// queueMaxMB returns the memory of a partition that the queue may use, in MB; 0: it is not
// known.
func queueMaxMB(v clusterView, label string) int64 {
	if !v.hasQueue || v.place.several() {
		return 0
	}
	share, label := v.queue.AbsoluteMax, v.place.partition(label)
	if label != "" {
		share = v.queue.LabelMax[label]
	}
	return int64(share * float64(runningMB(slices.DeleteFunc(slices.Clone(v.nodes), func(n hadoop.Node) bool { return n.Label != label }))))
}

// inPartition is what words returns where no node is spoken of.
func inPartition(of string) string { return strings.Replace(of, " with", " of the nodes with", 1) }

// mostMB returns the memory of the nodes that may serve the job, in MB; 0 where some of it
// is to be on others.
func (v clusterView) mostMB(able []hadoop.Node) int64 {
	if v.place.several() {
		return 0
	}
	return runningMB(able)
}

// runningMB returns the memory of the running nodes, in MB.
func runningMB(nodes []hadoop.Node) int64 {
	var all int64
	for _, n := range nodes {
		if n.Running() {
			all += n.Capability.MemoryMB
		}
	}
	return all
}

// until describes when a job continues: after an event, or not at all where it needs more
// than most MB, which is 0 where it is not known.
func until(event string, need, most int64, what string) string {
	if most == 0 || need <= most {
		return "it goes on when " + event
	}
	return fmt.Sprintf("the job needs %s in all, more than the %s that %s", hadoop.Megabytes(need), hadoop.Megabytes(most), what)
}
