package submit

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"holdfast/client"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

// places are the nodes of a cluster, and which of them a queue may use.
type places struct {
	nodes      []yarn.Node
	partitions []yarn.Partition
	types      []yarn.ResourceType // unknown where no role asks for one
	queue      yarn.Queue
	hasQueue   bool     // else nothing is known of the queue
	refused    error    // why the queue takes no jobs
	avoid      []string // hosts
}

// lookUpPlaces asks the ResourceManager. The job is to be in the queue.
func lookUpPlaces(ctx context.Context, rm *yarn.Client, spec *proto.JobSpec, queue string) (places, error) {
	p := places{avoid: spec.AvoidNodes}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) { p.nodes, err = rm.Nodes(ctx); return err })
	g.Go(func() (err error) { p.partitions, err = rm.Partitions(ctx); return err })
	if slices.ContainsFunc(spec.Roles, func(r *proto.RoleSpec) bool { return len(r.Resources) > 0 }) {
		g.Go(func() (err error) { p.types, err = rm.ResourceTypes(ctx); return err })
	}
	g.Go(func() error {
		q, err := rm.Queue(ctx, queue)
		p.queue, p.hasQueue = q, err == nil
		if p.refused = rm.CheckQueue(ctx, queue); rpc.RemoteClass(p.refused) != "" {
			return p.refused
		}
		return nil
	})
	return p, g.Wait()
}

// ofAnyQueue returns the places without what is known of the queue.
func (p places) ofAnyQueue() places {
	p.queue, p.hasQueue, p.refused = yarn.Queue{}, false, nil
	return p
}

// judge returns an error if the queue or the nodes do not take the job.
func (p places) judge(spec *proto.JobSpec) error {
	if p.refused != nil {
		return p.refused
	}
	for _, check := range []func(*proto.JobSpec) error{p.checkLabels, p.checkNodes} {
		if err := check(spec); err != nil {
			return err
		}
	}
	return checksOf(spec).each(p.fit)
}

// spareLabel returns the node label of spare containers: that of all roles.
func spareLabel(spec *proto.JobSpec) string {
	for _, r := range spec.Roles {
		return cmp.Or(r.NodeLabel, spec.NodeLabel)
	}
	return spec.NodeLabel
}

// checkLabels returns an error if the job names a node label that the cluster does not have
// or the queue may not use: the scheduler would refuse it only later, or never answer.
func (p places) checkLabels(spec *proto.JobSpec) error {
	if err := p.checkLabel("--node-label", spec.NodeLabel); err != nil {
		return err
	}
	for _, r := range spec.Roles {
		if err := p.checkLabel("--"+r.Name+"-node-label", r.NodeLabel); err != nil {
			return err
		}
	}
	return nil
}

func (p places) checkLabel(flag, label string) error {
	if label == "" {
		return nil
	}
	known := slices.ContainsFunc(p.partitions, func(o yarn.Partition) bool { return o.Label == label })
	switch {
	case len(p.partitions) == 0:
		return fmt.Errorf("%s is %s, and the cluster has no node labels: leave it out, or have them enabled (yarn.node-labels.enabled) and the label added (yarn rmadmin -addToClusterNodeLabels)", flag, label)
	case !known:
		var all []string
		for _, o := range p.partitions {
			all = append(all, o.Label)
		}
		return fmt.Errorf("%s is %s, and the cluster has no such node label; it has %s", flag, label, strings.Join(all, ", "))
	case p.hasQueue && !p.queue.MayUse(label):
		return fmt.Errorf("%s is %s, and the queue %q may not use these nodes; %s: name another label, or another queue with --queue, or have the label added to the queue's accessible-node-labels", flag, label, p.queue.Name, p.usable())
	case p.hasQueue && !p.queue.HasRoom(label):
		return fmt.Errorf("%s is %s, and the queue %q has no share of these nodes (accessible-node-labels.%s.capacity is 0); %s: name another label, or another queue with --queue", flag, label, p.queue.Name, label, p.usable())
	}
	return nil
}

// resolveResources puts the roles' amounts of resource types into the units in which the
// cluster counts them. It returns an error if the cluster does not know a type, which the
// scheduler would refuse only later.
func (p places) resolveResources(spec *proto.JobSpec) error {
	for _, r := range spec.Roles {
		for _, name := range slices.Sorted(maps.Keys(r.Resources)) {
			i := slices.IndexFunc(p.types, func(t yarn.ResourceType) bool { return t.Name == name })
			if i < 0 {
				var known []string
				for _, t := range p.types {
					known = append(known, t.Name)
				}
				has := "it has none but memory and vcores"
				if len(known) > 0 {
					has = "it has " + strings.Join(known, ", ") + client.DidYouMean(name, known)
				}
				return fmt.Errorf("--%s-resource names %s, and the cluster has no such resource type (yarn.resource-types); %s", r.Name, name, has)
			}
			amount := yarn.Amounts(r.Resources)[name].In(p.types[i].Unit)
			r.Resources[name] = &proto.Amount{Value: amount.Value, Unit: amount.Unit}
		}
	}
	return nil
}

// checkNodes returns an error if the job names a node that the cluster does not have, or
// spreads a role over more nodes than there are.
func (p places) checkNodes(spec *proto.JobSpec) error {
	for _, host := range p.avoid {
		if !slices.ContainsFunc(p.nodes, func(n yarn.Node) bool { return n.ID.Host == host }) {
			var known []string
			for _, n := range p.nodes[:min(len(p.nodes), 8)] {
				known = append(known, n.ID.Host)
			}
			return fmt.Errorf("--avoid-node names %s, and the ResourceManager knows no such node: name nodes as it does (yarn node -list -all), as in %s", host, strings.Join(known, ", "))
		}
	}
	for i, r := range spec.Roles {
		there := p.nodesFor(spec, r)
		if need := int(cmp.Or(r.Min, r.Count)); r.Spread && there > 0 && need > there {
			return fmt.Errorf("the %d tasks of the role %s are to be on different nodes (--%s-spread), and the job may use %d: leave it out, or ask for fewer tasks", need, r.Name, r.Name, there)
		}
		for _, o := range spec.Roles[:i] {
			if need := nodesNeeded(r) + nodesNeeded(o); r.Apart(o) && cmp.Or(r.NodeLabel, spec.NodeLabel) == cmp.Or(o.NodeLabel, spec.NodeLabel) && there > 0 && need > there {
				return fmt.Errorf("the roles %s and %s are to share no node (--ROLE-anti-affinity), for which they need %d, and the job may use %d: leave it out", o.Name, r.Name, need, there)
			}
		}
	}
	return nil
}

// nodesFor returns how many nodes take tasks of a role.
func (p places) nodesFor(spec *proto.JobSpec, r *proto.RoleSpec) int {
	there := 0
	for _, n := range p.nodes {
		if p.takes(n, cmp.Or(r.NodeLabel, spec.NodeLabel)) {
			there++
		}
	}
	return there
}

// nodesNeeded returns on how many nodes a role is at least.
func nodesNeeded(r *proto.RoleSpec) int {
	need := int(cmp.Or(r.Min, r.Count))
	if r.Spread {
		return need
	}
	return min(need, 1)
}

// usable says which node labels the queue may use.
func (p places) usable() string {
	list := p.queue.Usable(p.partitions)
	if len(list) == 0 {
		return "it may use the nodes without a label only"
	}
	return "it may use " + strings.Join(list, ", ")
}

// takes reports whether a node takes containers that ask for a label. Without one, what
// nothing is known of may have any for a default.
func (p places) takes(n yarn.Node, label string) bool {
	fits := label == "" && !p.hasQueue
	if label == "" {
		label = p.queue.DefaultLabel
	}
	return (fits || yarn.Takes(p.partitions, n.Label, label)) && !slices.Contains(p.avoid, n.ID.Host)
}

// fit returns an error if a role fits no running node of its partition. Without any running
// node there is nothing to compare with, and the job waits.
func (p places) fit(demands []yarn.Demand) error {
	if !slices.ContainsFunc(p.nodes, yarn.Node.Running) {
		return nil
	}
	for _, d := range demands {
		if d.Master { // no host is ruled out for it
			p.avoid = nil
		}
		fits, exist, run := false, false, false
		var largest, most yarn.Resource // the node with the most memory, and the most of each resource
		for _, n := range p.nodes {
			if !p.takes(n, d.Label) {
				continue
			}
			if exist = true; !n.Running() {
				continue
			}
			fits = fits || d.Resource.Fits(n.Capability)
			most = most.Max(n.Capability)
			if !run || n.Capability.MemoryMB > largest.MemoryMB {
				largest, run = n.Capability, true
			}
		}
		of := "of the cluster"
		if d.Label != "" {
			of = fmt.Sprintf("with the label %q", d.Label)
		}
		switch {
		case !exist && d.Label == "":
			return fmt.Errorf("%s on nodes without a label, and all nodes have labels that containers must name: name one with %s; of them, the queue %q: %s", d, labelFlags(d), p.queue.Name, p.usable())
		case !exist:
			return fmt.Errorf("%s on nodes with the label %q, and none has it (yarn rmadmin -replaceLabelsOnNode)", d, d.Label)
		case !run: // they may come back, and the job waits
		case !fits && d.Resource.Lacks(most) != "":
			name := d.Resource.Lacks(most)
			return fmt.Errorf("%s, and no node %s has more than %s of %s: ask for less with %s", d, of, most.Others[name], name, d.Flag("resource"))
		case !fits:
			return fmt.Errorf("%s, and no node %s has that much (the largest has %s): ask for less with %s", d, of, largest, amountFlags(d))
		}
	}
	return nil
}

// labelFlags names the flags that choose the nodes for a container.
func labelFlags(d yarn.Demand) string {
	if d.Master {
		return "--node-label"
	}
	return d.Flag("node-label") + " or --node-label"
}

// amountFlags names the flags that say how large a container is.
func amountFlags(d yarn.Demand) string {
	if d.Master {
		return d.Flag("memory") + " or " + d.Flag("vcores")
	}
	return fmt.Sprintf("%s, %s or %s", d.Flag("memory"), d.Flag("vcores"), d.Flag("gpus"))
}
