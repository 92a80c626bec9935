package yarn

import (
	"sort"
	"strings"
	"time"

	wire "holdfast/internal/hadoop/wire/yarn"
)

// State is an application's state (YarnApplicationStateProto).
type State int32

// States of an application.
const (
	StateNew       = State(wire.YarnApplicationStateProto_NEW)
	StateNewSaving = State(wire.YarnApplicationStateProto_NEW_SAVING)
	StateSubmitted = State(wire.YarnApplicationStateProto_SUBMITTED)
	StateAccepted  = State(wire.YarnApplicationStateProto_ACCEPTED)
	StateRunning   = State(wire.YarnApplicationStateProto_RUNNING)
	StateFinished  = State(wire.YarnApplicationStateProto_FINISHED)
	StateFailed    = State(wire.YarnApplicationStateProto_FAILED)
	StateKilled    = State(wire.YarnApplicationStateProto_KILLED)
)

// String is YARN's name of the state.
func (s State) String() string { return wire.YarnApplicationStateProto(s).String() }

// Done reports whether the state is final.
func (s State) Done() bool { return s == StateFinished || s == StateFailed || s == StateKilled }

// Final is the result that an application reports (FinalApplicationStatusProto).
type Final int32

// Final states.
const (
	FinalUndefined = Final(wire.FinalApplicationStatusProto_APP_UNDEFINED)
	FinalSucceeded = Final(wire.FinalApplicationStatusProto_APP_SUCCEEDED)
	FinalFailed    = Final(wire.FinalApplicationStatusProto_APP_FAILED)
	FinalKilled    = Final(wire.FinalApplicationStatusProto_APP_KILLED)
)

// String is YARN's name, without its prefix.
func (f Final) String() string {
	return strings.TrimPrefix(wire.FinalApplicationStatusProto(f).String(), "APP_")
}

// Report is the RM's report of an application.
type Report struct {
	ID          ApplicationID
	Attempt     int32
	Name        string
	Type        string
	User        string
	Queue       string
	State       State
	Final       Final
	Host        string // of the AM, as it registered; empty or N/A before
	Port        int    // of the AM's RPC service, as it registered
	TrackingURL string // through the RM's proxy
	OriginalURL string // as the AM registered it
	Diagnostics string
	Started     time.Time
	Finished    time.Time // zero while it runs
	Containers  int       // in use
	Used        Resource
}

func report(p *wire.ApplicationReportProto) Report {
	r := Report{
		ID: applicationID(p.GetApplicationId()), Attempt: p.GetCurrentApplicationAttemptId().GetAttemptId(),
		Name: p.GetName(), Type: p.GetApplicationType(), User: p.GetUser(), Queue: p.GetQueue(),
		State: State(p.GetYarnApplicationState()), Final: Final(p.GetFinalApplicationStatus()),
		Host: p.GetHost(), Port: int(p.GetRpcPort()), TrackingURL: known(p.GetTrackingUrl()), OriginalURL: known(p.GetOriginalTrackingUrl()),
		Diagnostics: known(p.GetDiagnostics()), Started: milliseconds(p.GetStartTime()), Finished: milliseconds(p.GetFinishTime()),
		Containers: int(p.GetAppResource_Usage().GetNumUsedContainers()), Used: resource(p.GetAppResource_Usage().GetUsedResources()),
	}
	return r
}

// known returns an empty string for YARN's placeholder.
func known(s string) string {
	if s == "N/A" {
		return ""
	}
	return s
}

func milliseconds(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// Node is a NodeManager as the RM sees it.
type Node struct {
	ID         NodeID
	Rack       string
	State      string // RUNNING, LOST, UNHEALTHY, DECOMMISSIONING, ...
	Capability Resource
	Used       Resource
	Containers int
	Health     string // the report of an unhealthy node
	Label      string // the partition that it is in; empty: the default one
	// Timeout is what a node that is being decommissioned gets in all for its
	// containers to end; 0: not known.
	Timeout time.Duration
}

// Leaving reports whether the node is being decommissioned: it takes no more
// containers, and loses those that it has when its timeout is over.
func (n Node) Leaving() bool { return n.State == "DECOMMISSIONING" }

// Unhealthy reports whether the node has been given up, with all that it ran, since
// its NodeManager says that it cannot be relied on; Health says why.
func (n Node) Unhealthy() bool { return n.State == "UNHEALTHY" }

// Decommissioned reports whether the node was, or is being, taken out of service.
func (n Node) Decommissioned() bool { return n.Leaving() || n.State == "DECOMMISSIONED" }

// Running reports whether the node takes containers.
func (n Node) Running() bool { return n.State == "RUNNING" }

// All returns what the node has.
func (n Node) All() Resource { return n.Capability }

// Free returns what is not in use.
func (n Node) Free() Resource { return n.Capability.Minus(n.Used) }

func nodes(list []*wire.NodeReportProto) []Node {
	out := make([]Node, 0, len(list))
	for _, p := range list {
		out = append(out, Node{
			ID: nodeID(p.GetNodeId()), Rack: p.GetRackName(), State: strings.TrimPrefix(p.GetNodeState().String(), "NS_"),
			Capability: resource(p.GetCapability()), Used: resource(p.GetUsed()), Containers: int(p.GetNumContainers()),
			Health: p.GetHealthReport(), Label: first(p.GetNodeLabels()), Timeout: time.Duration(max(0, int32(p.GetDecommissioningTimeout()))) * time.Second,
		})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].ID.String() < out[j].ID.String() })
	return out
}

// Queue is a queue of the scheduler.
type Queue struct {
	Name        string
	Path        string
	Running     bool    // it takes applications
	Capacity    float64 // guaranteed, of the parent queue's, 0 to 1
	MaxCapacity float64 // of the parent queue's, 0 to 1
	AbsoluteMax float64 // of the cluster, 0 to 1; 0 if the scheduler does not tell
	Used        float64 // of its guaranteed capacity, 1 and more is full
	AMShare     float64 // that application masters may use, 0 to 1; 0 if unknown
	Available   int64   // MB
	Allocated   int64   // MB
	Pending     int64   // applications that wait for activation
	// Labels are the node labels that the queue may use; "*" stands for all.
	Labels       []string
	DefaultLabel string             // of requests without a label; empty: none
	LabelMax     map[string]float64 // of each partition, as AbsoluteMax
	// Most is what it may ever have of each partition, by label; the default one's is empty.
	// Schedulers need not tell.
	Most     map[string]Resource
	Children []Queue
}

func queue(p *wire.QueueInfoProto) Queue {
	q := Queue{
		Name: p.GetQueueName(), Path: p.GetQueuePath(), Running: p.GetState() == wire.QueueStateProto_Q_RUNNING,
		Capacity: float64(p.GetCapacity()), MaxCapacity: float64(p.GetMaximumCapacity()), Used: float64(p.GetCurrentCapacity()),
		Available: p.GetQueueStatistics().GetAvailableMemoryMB(), Allocated: p.GetQueueStatistics().GetAllocatedMemoryMB(),
		Pending: p.GetQueueStatistics().GetNumAppsPending(),
		Labels:  p.GetAccessibleNodeLabels(), DefaultLabel: p.GetDefaultNodeLabelExpression(), LabelMax: map[string]float64{}, Most: map[string]Resource{},
	}
	for _, m := range p.GetQueueConfigurationsMap() {
		if most := m.GetQueueConfigurations().GetEffectiveMaxCapacity(); most.GetMemory() > 0 {
			q.Most[m.GetPartitionName()] = resource(most)
		}
		if name := m.GetPartitionName(); name != "" {
			q.LabelMax[name] = float64(m.GetQueueConfigurations().GetAbsoluteMaxCapacity())
		} else {
			q.AbsoluteMax = float64(m.GetQueueConfigurations().GetAbsoluteMaxCapacity())
			q.AMShare = float64(m.GetQueueConfigurations().GetMaxAMPercentage())
		}
	}
	for _, c := range p.GetChildQueues() {
		q.Children = append(q.Children, queue(c))
	}
	return q
}

// Leaves returns the names of the queues that take applications.
func (q Queue) Leaves() []string {
	if len(q.Children) == 0 {
		return []string{q.Name}
	}
	var all []string
	for _, c := range q.Children {
		all = append(all, c.Leaves()...)
	}
	return all
}

// list joins names for people, a few of them.
func list(names []string) string {
	const most = 8
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}
